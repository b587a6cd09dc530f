#!/bin/sh
# SPDX-License-Identifier: ISC
# deps.sh SET...: installs the packages of the sets "build" and "test" with the system's package
# manager. When nothing is missing it does nothing, so it needs no network then. This is the one
# list of what building and testing need. "a|b" means that either will do, and the first is installed;
# "a?" is a part that some releases have as a package of its own.
set -eu

build='gcc|clang make libc6-dev libssh-dev libssl-dev libseccomp-dev libcurl4-openssl-dev|libcurl4-gnutls-dev
libjson-c-dev libarchive-dev libsqlite3-dev libpq-dev bubblewrap openssh-client'
test='clang libclang-rt-dev? clang-format clang-tidy cppcheck shellcheck mandoc
libcmocka-dev dash busybox|busybox-static python3 python3-pytest python3-pytest-xdist python3-asyncssh
python3-paramiko python3-aiohttp pyflakes3 dropbear-bin putty-tools rsync git procps
postgresql sshfs lftp rclone? curl nodejs npm python3-venv nghttp2-proxy'

packages=
for set in "$@"; do
	case $set in
	build) packages="$packages $build" ;;
	test) packages="$packages $test" ;;
	*) echo "deps.sh: no set \"$set\"; there are build and test" >&2 && exit 64 ;;
	esac
done

if ! command -v dpkg-query >/dev/null; then
	for tool in dnf pacman apk zypper; do
		command -v $tool >/dev/null || continue
		echo "deps.sh: this system has $tool, and the list is of Debian's names;" \
			"install what corresponds to:" >&2
		echo "$packages" | tr -s ' \n' ' ' >&2
		echo >&2
		# What is there cannot be told by name here: the build will say what it misses.
		exit 0
	done
	echo "deps.sh: no package manager that is known here (apt, dnf, pacman, apk, zypper)" >&2
	exit 1
fi

installed() {
	dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -q '^installed$'
}

# Succeeds when one of the alternatives in $1 is there, or when it is a part that this release has not.
# A program counts from wherever it is: the npm that came with another nodejs excludes Debian's.
satisfied() {
	for name in $(echo "${1%\?}" | tr '|' ' '); do
		installed "$name" && return 0
		command -v "$name" >/dev/null && return 0
	done
	[ "$1" != "${1%\?}" ] && ! known "${1%\?}"
}

# "apt-cache show" knows names too that other packages only mention.
known() {
	LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'
}

# Sets missing to the packages to install.
find_missing() {
	missing=
	for entry in $packages; do
		satisfied "$entry" || missing="$missing $(echo "${entry%%|*}" | tr -d '?')"
	done
}

find_missing
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "deps.sh: missing:$missing" >&2
		echo "deps.sh: not root, and there is no sudo; as root: apt-get install$missing" >&2
		exit 1
	}
	as_root=sudo
fi
$as_root apt-get update -qq
# Only now is it known for sure what this release has.
find_missing
echo "installing:$missing" >&2
# shellcheck disable=SC2086 # a list of words
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing
