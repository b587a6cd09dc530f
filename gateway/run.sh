#!/bin/sh
# SPDX-License-Identifier: ISC
# run.sh BUILD PORT: what "make run" does once all is built: a gateway on 127.0.0.1:PORT, in the
# foreground, with the login "sandbox" for the caller's own key. Its state and configuration are kept:
# as root in /var/lib/rwsd, for others in ~/.local/state/rwsd.
set -eu

build=$1
port=$2

# Through sudo the caller is the user who typed it.
caller=$(id -un)
[ "$(id -u)" != 0 ] || caller=${SUDO_USER:-$caller}
home=$(getent passwd "$caller" | cut -d : -f 6)

if [ "$(id -u)" = 0 ]; then
	state=/var/lib/rwsd
else
	state=$home/.local/state/rwsd
fi
configuration=$state/rwsd.conf

as_caller() {
	if [ "$caller" = "$(id -un)" ]; then
		"$@"
	else
		sudo -u "$caller" -H "$@"
	fi
}

make_key() {
	for key in "$home"/.ssh/id_*.pub; do
		[ ! -e "$key" ] || return 0
	done
	echo "make run: $caller has no ssh key yet; making $home/.ssh/id_ed25519"
	as_caller mkdir -p "$home/.ssh"
	as_caller chmod 700 "$home/.ssh"
	as_caller ssh-keygen -q -t ed25519 -N '' -f "$home/.ssh/id_ed25519"
}

write_configuration() {
	echo "# Written by \"make run\" for $caller, and not touched again: yours to edit. See rwsd.conf(5)."
	echo "host_keys = host_keys"
	echo "state = ."
	echo
	echo "[login sandbox]"
	echo "driver = local"
	for key in "$home"/.ssh/id_*.pub; do
		# Kinds of keys that rwsd refuses would keep it from starting.
		case $(cat "$key") in
		ssh-ed25519\ * | ecdsa-sha2-* | sk-* | ssh-rsa\ *) echo "key = $(cat "$key")" ;;
		esac
	done
}

# Does anything listen on the port at 127.0.0.1, or at every address?
port_is_taken() {
	awk -v port="$(printf '%04X' "$port")" '
		$4 == "0A" && $2 ~ "^(0100007F|0+):" port "$" { taken = 1 }
		END { exit !taken }' /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

case $port in
'' | *[!0-9]*)
	echo "make run: PORT is a number, not \"$port\"" >&2
	exit 64
	;;
esac
if port_is_taken; then
	echo "make run: port $port is taken; choose another one: make run PORT=$((port + 1))" >&2
	exit 1
fi
make_key
mkdir -p "$state"
chmod 700 "$state"
if [ ! -e "$configuration" ]; then
	(umask 077 && write_configuration >"$configuration.new")
	mv "$configuration.new" "$configuration"
fi
echo "configuration: $configuration"
# Said once it is true: making the first host keys takes a moment.
"$build/rwsd" -f "$configuration" -o "listen=127.0.0.1:$port" 2>&1 |
	sed -u "/ listening on /a in another terminal: ssh -p $port sandbox@127.0.0.1"
