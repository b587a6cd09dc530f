#!/bin/sh
# SPDX-License-Identifier: ISC
# Makes its terminal raw, says so, and waits there to be told a command.
#
# Arguments: MARK LAUNCH
#	MARK        what is said, behind the character 036
#	LAUNCH      the text of launch.sh
#
# Output: a line "PID STARTTIME" of the process that becomes the command, as signal.sh wants them, and the mark.
# Exit status: that of the command.
set -u

stty raw -echo
_rws_mark=$1
_rws_launch=$2
read -r _rws_stat <"/proc/$$/stat"
# starttime: field 22 of proc(5), and the 20th behind the name
# shellcheck disable=SC2086 # they are parted by blanks
set -- ${_rws_stat##*) }
shift 19
printf '%s %s\n\036%s\n' "$$" "$1" "$_rws_mark"
exec sh -c "$_rws_launch" rws-launch 3<&0
