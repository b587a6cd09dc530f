#!/bin/sh
# SPDX-License-Identifier: ISC
# run.sh BUILD PORT: what "make run" does once all is built: a gateway on 127.0.0.1:PORT, in the
# foreground, with the login "sandbox" for the caller's own key. Its state and configuration are kept:
# as root in /var/lib/rwsd, for others in ~/.local/state/rwsd. Another port than 2222 has its own, in
# a directory with -PORT at the end: two gateways cannot share theirs. Its exit status is the gateway's.
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
[ "$port" = 2222 ] || state=$state-$port
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
'' | *[!0-9]* | ??????*)
	echo "make run: PORT is a number, not \"$port\"" >&2
	exit 64
	;;
esac
if [ "$port" -lt 1 ] || [ "$port" -gt 65535 ]; then
	echo "make run: PORT is 1 to 65535, not $port" >&2
	exit 64
fi
if "$build/rws" admin -s "$state/admin.sock" status >/dev/null 2>&1; then
	echo "make run: this gateway runs already: ssh -p $port sandbox@127.0.0.1" >&2
	exit 1
fi
if port_is_taken; then
	echo "make run: another program has port $port; choose one that is free: make run PORT=..." >&2
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
echo "what goes on: $build/rws admin -s $state/admin.sock sessions --watch"
# Said once it is true: making the first host keys takes a moment. The gateway takes this shell's place,
# with its exit status and signals; sed, which ^C would end first, sees the log to its end.
log=$state/log.$$
mkfifo -m 600 "$log"
trap '' INT TERM HUP
sed -u "/ listening on /a in another terminal: ssh -p $port sandbox@127.0.0.1" <"$log" &
trap - INT TERM HUP
exec 3>"$log"
rm -f "$log"
exec "$build/rwsd" -f "$configuration" -o "listen=127.0.0.1:$port" >&3 2>&3 3>&-
