#!/bin/sh
# SPDX-License-Identifier: ISC
# The other half of a transport (transport.sh): the command's stderr, the grants of both streams, and a watch
# over the command, for the case that nobody is there any more who could end it.
#
# Arguments: MEETING SILENCE
#	MEETING     as in transport.sh
#	SILENCE     seconds without a "beat" after which the command is ended
#
# Standard input: a token on a line of its own, then lines of one word:
#	output      a turn for stdout
#	errors      a turn for stderr
#	beat        somebody is there
#	finish      all was received
#
# Standard output: stderr, as transport.sh does it with stdout.
set -u

stty raw -echo
token=$(head -c 33)
meeting=$1
silence=$2
umask 077
mkdir "$meeting" 2>/dev/null
mkfifo "$meeting/turns" "$meeting/errors" 2>/dev/null
exec 3>"$meeting/turns" 4<"$meeting/errors" 6>&1
read -r leader <"$meeting/leader"
rm -rf "$meeting"

# What has inherited the command's output may hold it open for ever, so at the end both halves are killed.
finish() {
	kill -KILL "-$leader"
	kill -KILL 0
}

control() {
	while read -r word; do
		case $word in
		output) echo turn >&3 ;;
		errors) echo turn ;;
		beat) printf . >&5 ;;
		finish) finish ;;
		esac
	done
}

turns() {
	while read -r word <&7; do
		dd bs=65536 count=4 <&4 2>/dev/null
		printf '\036rws:%s turn\n' "$token"
	done
}

# Adds to $tree the descendants of what is in it, and to $groups their process groups.
find_tree() {
	before=
	while [ "$before" != "$tree" ]; do
		before=$tree
		for file in /proc/[0-9]*/stat; do
			read -r stat 2>/dev/null <"$file" || continue
			pid=${stat%% *}
			# state ppid pgrp: fields 3 to 5 of proc(5)
			# shellcheck disable=SC2086 # they are parted by blanks
			set -- ${stat##*) }
			case $tree in
			*" $pid "*) ;;
			*" $2 "*)
				tree="$tree$pid "
				[ "$3" = "$leader" ] || groups="$groups -$3"
				;;
			esac
		done
	done
}

# Ends the command and, after it, the other half.
end_tree() {
	tree=" $leader "
	groups=
	find_tree
	for signal in HUP CONT TERM; do
		# shellcheck disable=SC2086 # a list
		[ -z "$groups" ] || kill "-$signal" $groups
	done
	sleep 2
	find_tree
	# shellcheck disable=SC2086 # a list
	kill -KILL $groups "-$leader"
}

watch() {
	trap '' HUP INT TERM
	while [ -n "$(timeout --foreground "$silence" dd bs=64 count=1 2>/dev/null)" ]; do
		:
	done
	end_tree >/dev/null 2>&1
}

read -r stat <"/proc/$$/stat"
# The time when we were started is field 22 of proc(5), the 20th behind our name.
# shellcheck disable=SC2086 # they are parted by blanks
set -- ${stat##*) }
printf '\036rws:%s start %s %s\n' "$token" "$$" "${20}"
{
	control 4<&- 6>&- | turns 3>&- 5>&- 7<&0 >&6 6>&-
} 5>&1 | watch 3>&- 4<&- 6>&-
