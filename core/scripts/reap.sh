#!/bin/sh
# SPDX-License-Identifier: ISC
# Ends commands that nobody keeps any more: HUP and TERM, then KILL.
#
# Arguments: GRACE PID STARTTIME [PID STARTTIME ...]
#	GRACE           seconds between TERM and KILL
#	PID STARTTIME   as in signal.sh: a number that was given to another process is left alone
# Exit status: 0.
set -u

started_at() {
	read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
	# state ppid pgrp session ... starttime: fields 3 to 22 of proc(5)
	# shellcheck disable=SC2086 # they are parted by blanks
	set -- ${stat##*) }
	session=$4
	shift 19
	started=$1
}

grace=$1
shift
groups=
while [ "$#" -ge 2 ]; do
	if ! started_at "$1" || { [ "$session" = "$1" ] && [ "$started" = "$2" ]; }; then
		groups="$groups $1"
	fi
	shift 2
done

# To each group by itself: kill stops at the first that is gone.
send() {
	for group in $groups; do
		kill "-$1" "-$group" 2>/dev/null
	done
}

any_lives() {
	for group in $groups; do
		kill -0 "-$group" 2>/dev/null && return 0
	done
	return 1
}

send HUP
send CONT
send TERM
tenths=$((grace * 10))
while [ "$tenths" -gt 0 ] && any_lives; do
	sleep 0.1
	tenths=$((tenths - 1))
done
send KILL
exit 0
