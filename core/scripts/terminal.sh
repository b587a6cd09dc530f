#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs a command on a terminal of its own, whose bytes go through our stdin and stdout: script(1) makes it.
#
# Arguments: ROWS COLUMNS LAUNCH COMMAND [ARGUMENT ...]
#	LAUNCH      the text of launch.sh, by which the command gets past the shell that script(1) runs
#
# Exit status: that of the command as the shell sees it.
set -u

if ! command -v script >/dev/null 2>&1; then
	printf 'rws: the image has no script(1), which a terminal needs here\r\n'
	exit 127
fi

_rows=$1
_columns=$2
_launch=$3
shift 3

# shellcheck disable=SC2016 # expanded on the terminal
_settle='stty sane iutf8 rows "$1" columns "$2"; shift 2; exec "$@"'

# What launch.sh reads. Lengths are in bytes whatever the locale.
words() (
	LC_ALL=C
	if [ -n "${SHELL+set}" ]; then
		printf '%8d%8dSHELL=%s' 1 "$((${#SHELL} + 6))" "$SHELL"
	else
		printf '%8d' 0
	fi
	printf '%8d' "$#"
	for word; do
		printf '%8d%s' "${#word}" "$word"
	done
)

exec 4<&0
words sh -c "$_settle" rws-terminal "$_rows" "$_columns" "$@" | {
	exec 3<&0 0<&4 4<&-
	# shellcheck disable=SC2016 # expanded on the terminal
	SHELL=/bin/sh RWS_LAUNCH=$_launch \
	    exec script -q -e -f -c 'exec sh -c "$RWS_LAUNCH" rws-launch' /dev/null
}
