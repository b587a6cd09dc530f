#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs a command to its end and prints its outputs in base64, for providers whose answers hold text only.
#
# Arguments: MAX PIECES PIECE ... WORD ...
#	MAX         bytes kept of each output
#	PIECES      how many arguments with stdin follow, each in base64
#	WORD ...    the command, each word in base64 behind an equals sign
#
# Output: a line "rws-result STATUS CUT OUTPUT ERRORS", the outputs in base64 with a dot before them, CUT 1 when
# there was more than MAX of either, else 0.
# Exit status: 0, or 1 when there is no temporary directory.
set -u

max=$1
pieces=$2
shift 2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

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
[ -e "$work/input" ] || : >"$work/input"

keep() {
	head -c "$max"
	[ "$(head -c 1 | wc -c)" -eq 0 ] || : >"$work/cut"
	cat >/dev/null
}

{
	{
		(exec "$@") <"$work/input" 2>&4 4>&-
		echo "$?" >"$work/status"
	} | keep >"$work/output" 4>&-
} 4>&1 | keep >"$work/errors"

cut=0
[ ! -e "$work/cut" ] || cut=1
printf 'rws-result %s %s .%s .%s\n' "$(cat "$work/status")" "$cut" \
    "$(base64 "$work/output" | tr -d '\n')" "$(base64 "$work/errors" | tr -d '\n')"
