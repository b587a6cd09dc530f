#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs one command as the leader of a session and process group of its own, and reports its start
# and end in marker lines that carry a token, for providers that cannot tell these things
# themselves.
#
# Arguments: MODE BACKGROUND GRACE DIRECTORY COMMAND [ARGUMENT ...]
#	MODE        pipe, or pty: stdin is a terminal and we lead its session already
#	BACKGROUND  kill or keep: what becomes of processes that the command leaves behind
#	GRACE       seconds between TERM and KILL for these
#	DIRECTORY   where the command runs; when it is missing, in $HOME or /
#
# Standard input: the token on a line of its own, twice with pipe (once for us, once for the
# leader), once with pty; the rest is the command's, byte for byte. The token is in no
# argument, no environment and no file, and no longer in memory when the command runs.
#
# Standard output: what the command writes, between
#	\036rws:TOKEN start PID STARTTIME
#	\036rws:TOKEN end exited|signaled NUMBER     (pipe only; on standard error too)
#
# The command's environment is ours too, so our variables have names that it will not use.
#
# Exit status: that of the command as the shell sees it; the end marker is exact.
set -u

_rws_mode=$1
_rws_background=$2
_rws_grace=$3
shift 3

# What the leader does before it becomes the command. Its stderr is still ours: there it says who it
# is.
# shellcheck disable=SC2016 # expanded by the leader's shell, not by this one
_rws_leader='
IFS= read -r _rws_token || exit 125
start_time() {
	read -r _rws_stat <"/proc/$$/stat"
	set -- ${_rws_stat##*) }
	shift 19
	_rws_started=$1
}
start_time
[ "$1" = pty ] || printf "%s %s\n" "$$" "$_rws_started" >&2
[ "$1" = pty ] || exec 2>&4 3>&- 4>&-
if ! cd -- "$2" 2>/dev/null; then
	printf "rws: %s is not there; starting in %s\n" "$2" "${HOME:-/}" >&2
	cd -- "${HOME:-/}" 2>/dev/null || cd /
fi
printf "\036rws:%s start %s %s\n" "$_rws_token" "$$" "$_rws_started"
unset _rws_token _rws_stat _rws_started
shift 2
exec "$@"
'

if [ "$_rws_mode" = pty ]; then
	# Not every provider sets it, and without it the terminal erases half characters.
	stty iutf8 2>/dev/null
	exec sh -c "$_rws_leader" rws-leader pty "$@"
fi

IFS= read -r _rws_token || exit 125
exec 3>&1 4>&2

# setsid waits for the leader and passes its status on. For a death by signal it says so on
# its own stderr, which we catch together with the leader's first line, and exits with the signal's
# number.
_rws_said=$(setsid -f -w sh -c "$_rws_leader" rws-leader pipe "$@" 2>&1 >&3)
_rws_status=$?

_rws_leader_pid=${_rws_said%% *}
_rws_kind=exited
case $_rws_said in
*'
'*)
	_rws_kind=signaled
	# 128 is the flag of a core dump in a wait status.
	[ "$_rws_status" -lt 128 ] || _rws_status=$((_rws_status - 128))
	;;
esac
printf '\036rws:%s end %s %s\n' "$_rws_token" "$_rws_kind" "$_rws_status"
printf '\036rws:%s end %s %s\n' "$_rws_token" "$_rws_kind" "$_rws_status" >&2
exec >/dev/null 2>&1 3>&- 4>&- </dev/null

# The group outlives its leader as long as it has members, and so does its number. busybox knows no
# "--" before the number.
group_lives() {
	kill -0 "-$_rws_leader_pid" 2>/dev/null
}

if [ "$_rws_background" = kill ] && group_lives; then
	kill -HUP "-$_rws_leader_pid"
	kill -CONT "-$_rws_leader_pid"
	kill -TERM "-$_rws_leader_pid"
	_rws_tenths=$((_rws_grace * 10))
	while [ "$_rws_tenths" -gt 0 ] && group_lives; do
		sleep 0.1
		_rws_tenths=$((_rws_tenths - 1))
	done
	group_lives && kill -KILL "-$_rws_leader_pid"
fi
while group_lives; do
	sleep 0.5
done
[ "$_rws_kind" = exited ] || _rws_status=$((_rws_status + 128))
exit "$_rws_status"
