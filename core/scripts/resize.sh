#!/bin/sh
# SPDX-License-Identifier: ISC
# Gives the terminal of a command another size, if it still is that command's.
#
# Arguments: PID STARTTIME ROWS COLUMNS, the first two as command.sh reported them.
# Output: "resized", or "gone" when there is no such command or terminal any more.
# Exit status: 0.
set -u

rows=$3
columns=$4
read -r stat 2>/dev/null <"/proc/$1/stat" || stat=
started=$2
# state ppid pgrp session tty ... starttime: fields 3 to 22 of proc(5)
# shellcheck disable=SC2086 # they are parted by blanks
set -- ${stat##*) }
if [ "$#" -lt 20 ] || [ "${20}" != "$started" ]; then
	echo gone
	exit 0
fi
# A terminal's number has its low 8 bits where a minor number has them, and the rest from bit 20 on.
number=$((($5 & 255) | (($5 >> 12) & 1048320)))
if stty -F "/dev/pts/$number" rows "$rows" columns "$columns" 2>/dev/null; then
	echo resized
else
	echo gone
fi
