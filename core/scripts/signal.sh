#!/bin/sh
# SPDX-License-Identifier: ISC
# Sends signals to the process group of a command, if it still is that command's.
#
# Arguments: PID STARTTIME SIGNAL ..., the first two as command.sh reported them.
# A number that the system gave to another process meanwhile is left alone: the process of that
# number must lead its session and have been started at that time. When the leader is gone, its
# number cannot be in use again while the group has members.
# Output: "sent", or "gone" when there is no such group any more.
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

pid=$1
if started_at "$pid"; then
	if [ "$session" != "$pid" ] || [ "$started" != "$2" ]; then
		echo gone
		exit 0
	fi
fi
shift 2
for signal in "$@"; do
	if ! kill "-$signal" "-$pid" 2>/dev/null; then
		echo gone
		exit 0
	fi
done
echo sent
