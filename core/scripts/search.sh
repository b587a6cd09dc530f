#!/bin/sh
# SPDX-License-Identifier: ISC
# Looks for lines in the files below a directory.
#
# Arguments: ROOT DIRECTORY KIND CASE MAX PATTERN INCLUDE EXCLUDE HOLD: DIRECTORY below the root;
# KIND "text" or "expression" (extended); CASE "any" or "exact"; MAX matches in all; INCLUDE,
# EXCLUDE and HOLD extended regular expressions for "./PATH" from DIRECTORY, "" for all and none: of
# a directory that HOLD matches, the contents are left out.
# Output: "./PATH" NUL "LINE:TEXT" newline for each match, at most MAX + 1 of them and 4 MiB; binary
# files are passed over. On failure a last line "error CODE TEXT" on stderr, exit status 1.
set -eu
LC_ALL=C
export LC_ALL

fail() {
	printf 'error %s %s\n' "$1" "$2" >&2
	exit 1
}

command -v grep >/dev/null 2>&1 || fail UNSUPPORTED 'the sandbox has no grep'
root=$(realpath -- "$1")
directory=$(cd -- "$root" && realpath -m -- "$2")
case $directory/ in
"${root%/}"/*) ;;
*) fail OUTSIDE_ROOT 'the directory is outside of the root' ;;
esac
[ -e "$directory" ] || fail NOT_FOUND 'there is no such directory'
[ -d "$directory" ] || fail NOT_DIRECTORY 'it is not a directory'

kind=-F
[ "$3" = text ] || kind=-E
ignore=
[ "$4" = exact ] || ignore=-i
status=0
printf '' | grep $kind -e "$6" >/dev/null 2>&1 || status=$?
[ $status -le 1 ] || fail INVALID 'the pattern is no regular expression'
cd -- "$directory"
include=$7
[ -n "$include" ] || include='.*'
# shellcheck disable=SC2086 # no argument at all rather than an empty one
{ find . -regextype posix-extended -mindepth 1 -regex "$8" -prune -o \
    -type d -regex "$9" -prune -o -type f -regex "$include" \
    -print0 | sort -z | xargs -0 -r grep -nHIZ $kind $ignore -m "$(($5 + 1))" -e "$6" -- || :; } 2>/dev/null |
	head -n "$(($5 + 1))" | head -c 4194304
