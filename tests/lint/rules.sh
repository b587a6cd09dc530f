#!/bin/sh
# SPDX-License-Identifier: ISC
# rules.sh [TREE]: rules that need no parser: licence lines, banned calls, names, lengths.
set -eu
cd "${1:-.}"

FILE_LINES=600
BANNED='v?sprintf|strcpy|stpcpy|strcat|strncpy|strncat|strtok|ato[il]|atoll|system|popen|gets|alloca|tmpnam|mktemp'
# In two parts, so that this file may stand beside those that it reads.
UNFINISHED='TO''DO|FIX''ME|XX''X|HA''CK'

# Says what is wrong with the lines on standard input, when there are any.
refuse() {
	sed "s/^/$1: /"
}

sources() {
	find .ci core conf keys drivers gateway tests docker -type f \( -name '*.[ch]' -o -name '*.sh' \
	    -o -name '*.py' \) 2>/dev/null | sort
}

# Greps in the C files with comments and strings taken out; prints FILE:LINE:TEXT.
grep_code() {
	sources | grep '\.[ch]$' | while read -r file; do
		sed 's/"\([^"\\]\|\\.\)*"/""/g; s,/\*.*\*/,,; s,^[[:space:]]*/\*.*,,; s,^[[:space:]]*\* .*,,' \
		    "$file" | grep -nE "$1" | sed "s,^,$file:," || true
	done
}

check_licences() {
	sources | while read -r file; do
		head -n 2 "$file" |
			grep -q '^\(/\* \|# \)SPDX-License-Identifier: ISC\( \*/\)\?$' || echo "$file"
	done
}

check_lengths() {
	sources | while read -r file; do
		lines=$(wc -l <"$file")
		[ "$lines" -le $FILE_LINES ] || echo "$file: $lines"
	done
}

check() {
	check_licences | refuse 'no SPDX line at the top'
	check_lengths | refuse "over $FILE_LINES lines"
	grep_code "(^|[^_[:alnum:].>])($BANNED)[[:space:]]*\\(" | refuse 'banned call'
	grep_code '(^|[^_[:alnum:]])typedef (struct|union|enum)' | refuse 'typedef of a struct'
	grep_code '(^|[^[:alnum:]])(handle|do)_[a-z]+[[:space:]]*\(' | refuse 'name that says nothing'
	sources | grep -E '(^|[/_])(util|helper|manager|misc)s?\.[ch]$' | refuse 'name that says nothing'
	sources | xargs -r grep -nE '[[:space:]]+$' | refuse 'space at the end of a line'
	sources | xargs -r grep -nwE "$UNFINISHED" | refuse 'unfinished work'
}

found=$(check)
[ -z "$found" ] || {
	printf '%s\n' "$found"
	exit 1
}
