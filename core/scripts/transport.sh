#!/bin/sh
# SPDX-License-Identifier: ISC
# One half of a byte-exact transport out of two raw terminals (the other is transport_side.sh): runs a command
# whose stdin comes, and whose stdout goes, through this terminal.
#
# Arguments: MEETING MODE COMMAND [ARGUMENT ...]
#	MEETING     a directory for the two halves alone; whoever comes first makes it
#	MODE        pipe, or verdict: the command is terminal.sh and tells on descriptor 6 how it ended
#
# Standard input: a token on a line of its own, then stdin in frames: a length in decimal, a newline, and
# so many bytes. Length 0 is its end.
#
# Standard output: between marker lines as command.sh has them, with this token, what the command wrote. No more is
# under way than was granted: the other half passes on a line for each turn, which is at most 4 pieces of at most
# 64 KiB, and after each turn comes a line "\036rws:TOKEN turn". Whatever the pipe holds is one piece, so a
# producer faster than the turns makes few and big ones, and a prompt passes at once. (head -c would hold
# it back: its output is buffered.)
#
# The command's environment is ours too, so our variables have names that it will not use.
#
# Exit status: that of the last of its pipes; the end marker is what counts.
set -u

stty raw -echo
# bash takes a terminal for one that gives lines, and reads on behind them; head takes what it is told.
_rws_token=$(head -c 33)
_rws_meeting=$1
_rws_mode=$2
shift 2
_rws_umask=$(umask)
umask 077
mkdir "$_rws_meeting" 2>/dev/null
mkfifo "$_rws_meeting/turns" "$_rws_meeting/errors" 2>/dev/null
echo "$$" >"$_rws_meeting/new" && mv "$_rws_meeting/new" "$_rws_meeting/leader"
exec 3<"$_rws_meeting/turns" 4>"$_rws_meeting/errors"
umask "$_rws_umask"

frames() {
	while read -r _rws_length && [ "$_rws_length" -gt 0 ]; do
		head -c "$_rws_length" || return
	done
}

run() {
	if [ "$_rws_mode" = verdict ]; then
		exec 7>&1
		_rws_end=$("$@" 6>&1 >&7 2>&4 3<&- 4>&- 5<&- 7>&-)
	else
		"$@" 2>&4 3<&- 4>&- 5<&-
		_rws_end="exited $?"
	fi
	printf '\036rws:%s end %s\n' "$_rws_token" "$_rws_end"
	printf '\036rws:%s end %s\n' "$_rws_token" "$_rws_end" >&4
}

turns() {
	while read -r _rws_word <&3; do
		dd bs=65536 count=4 2>/dev/null
		printf '\036rws:%s turn\n' "$_rws_token"
	done
}

read -r _rws_stat <"/proc/$$/stat"
# The time when we were started is field 22 of proc(5), the 20th behind our name.
_rws_started=$(
	# shellcheck disable=SC2086 # they are parted by blanks
	set -- ${_rws_stat##*) }
	echo "${20}"
)
printf '\036rws:%s start %s %s\n' "$_rws_token" "$$" "$_rws_started"
# For the same reason frames reads from a pipe. Nobody waits for cat: it ends with the terminal.
exec 5<&0
{ cat <&5 3<&- 4>&- 5<&- & } | frames 3<&- 4>&- 5<&- | run "$@" | turns 4>&- 5<&-
