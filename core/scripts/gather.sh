#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs a command to its end and prints its outputs in base64, for providers whose answers hold text
# only.
#
# Arguments: WORK MAX PIECES PIECE ... WORD ...
#	WORK        a directory to be made for this, of a name that is nobody else's: see gather_cancel.sh
#	MAX         bytes kept of each output
#	PIECES      how many arguments with stdin follow, each in base64
#	WORD ...    the command, each word in base64 behind an equals sign
#
# Output: a line "rws-result KIND NUMBER CUT OUTPUT ERRORS": KIND is exited or signaled, NUMBER the
# status or the signal, CUT 1 when there was more than MAX of either output, else 0; the outputs are
# in base64 with a dot before.
# Exit status: 0, or 1 when WORK cannot be made.
set -u

work=$1
max=$2
pieces=$3
shift 3
mkdir -m 700 "$work" 2>/dev/null || exit 1
trap 'rm -rf "$work"' EXIT

: >"$work/input"
while [ "$pieces" -gt 0 ]; do
	printf %s "$1" | base64 -d >>"$work/input"
	shift
	pieces=$((pieces - 1))
done
# The dot keeps newlines at the end of a word.
count=$#
while [ "$count" -gt 0 ]; do
	word=$(printf %s "${1#=}" | base64 -d && printf .)
	shift
	set -- "$@" "${word%.}"
	count=$((count - 1))
done

keep() {
	head -c "$max"
	[ "$(head -c 1 | wc -c)" -eq 0 ] || : >"$work/cut"
	cat >/dev/null
}

# Whoever cancels waits for the number to be there. It is moved, as it must not be seen half
# written.
# shellcheck disable=SC2016 # expanded by the leader's shell, not by this one
leader='
echo "$$" >"$1/number" && mv "$1/number" "$1/leader"
shift
exec 2>&4 4>&-
exec "$@"
'

# setsid says so on its stderr when the command died by a signal, as in command.sh.
{
	{
		said=$(setsid -f -w sh -c "$leader" rws-leader "$work" "$@" <"$work/input" 2>&1 >&3 3>&-)
		status=$?
		if [ -n "$said" ]; then
			[ "$status" -lt 128 ] || status=$((status - 128))
			echo "signaled $status" >"$work/status"
		else
			echo "exited $status" >"$work/status"
		fi
	} 3>&1 | keep >"$work/output" 4>&-
} 4>&1 | keep >"$work/errors"

cut=0
[ ! -e "$work/cut" ] || cut=1
printf 'rws-result %s %s .%s .%s\n' "$(cat "$work/status")" "$cut" \
    "$(base64 "$work/output" | tr -d '\n')" "$(base64 "$work/errors" | tr -d '\n')"
