#!/bin/sh
# SPDX-License-Identifier: ISC
# sudo of a fake sandbox, first in PATH there: the only real user gets another name in a user namespace of its own.
set -eu
caller=$(id -un)
user=root
while [ $# -gt 0 ]; do
	case $1 in
	-u) user=$2 && shift 2 ;;
	-E | -H | -n | -S) shift ;;
	--) shift && break ;;
	-*) echo "sudo: option not known to the fake: $1" >&2 && exit 1 ;;
	*=*)
		# shellcheck disable=SC2163 # NAME=VALUE
		export "$1" && shift
		;;
	*) break ;;
	esac
done
home=
while IFS=: read -r name _ uid gid _ directory _; do
	[ "$name" = "$user" ] && home=$directory && break
done </etc/passwd
[ -n "$home" ] || {
	echo "sudo: unknown user $user" >&2
	exit 1
}
HOME=$home USER=$user LOGNAME=$user SUDO_USER=$caller
export HOME USER LOGNAME SUDO_USER
exec unshare --map-user="$uid" --map-group="$gid" -- "$@"
