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

# The C files without comments and strings, as FILE:LINE:TEXT.
code() {
	# shellcheck disable=SC2016 # the program is awk's
	sources | grep '\.[ch]$' | xargs -r awk '{
		gsub(/"([^"\\]|\\.)*"/, "\"\"")
		gsub(/\/\*.*\*\//, "")
		if (!/^[[:space:]]*(\/\*|\* )/)
			print FILENAME ":" FNR ":" $0
	}'
}

check_licences() {
	sources | xargs -r awk '
		FNR <= 2 && /^(\/\* |# )SPDX-License-Identifier: ISC( \*\/)?$/ { found = 1 }
		FNR == 2 { if (!found) print FILENAME; found = 0; nextfile }'
}

check_lengths() {
	# A test reads like a list, and a script for the sandbox is sent whole: these may be longer.
	# shellcheck disable=SC2016 # the program is awk's
	sources | xargs -r awk -v most=$FILE_LINES '
		FNR == (FILENAME ~ /^(tests|core\/scripts)\// ? most * 3 / 2 : most) + 1 { print FILENAME }'
}

check() {
	check_licences | refuse 'no SPDX line at the top'
	check_lengths | refuse "over $FILE_LINES lines"
	code | grep -E "[^_[:alnum:].>]($BANNED)[[:space:]]*\\(" | refuse 'banned call'
	code | grep -E '[^_[:alnum:]]typedef (struct|union|enum)' | refuse 'typedef of a struct'
	code | grep -E '[^_[:alnum:]](handle|do)_[a-z]+[[:space:]]*\(' | refuse 'name that says nothing'
	sources | grep -E '(^|[/_])(util|helper|manager|misc)s?\.[ch]$' | refuse 'name that says nothing'
	sources | xargs -r grep -nE '[[:space:]]+$' | refuse 'space at the end of a line'
	sources | xargs -r grep -nwE "$UNFINISHED" | refuse 'unfinished work'
}

found=$(check)
[ -z "$found" ] || {
	printf '%s\n' "$found"
	exit 1
}
