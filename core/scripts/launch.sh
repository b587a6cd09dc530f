#!/bin/sh
# SPDX-License-Identifier: ISC
# Becomes a command that is told on a descriptor rather than in arguments, so that it is in nobody's
# record of command lines and may hold any byte but NUL.
#
# On descriptor 3, and no byte more: the number of variables, then each as NAME=VALUE, then the
# number of words, then each. A number takes 8 characters, filled up with blanks in front (read
# would read on behind a line on a terminal, with bash); a text is its length in bytes as such a
# number, and so many bytes.
#
# Our variables have names that the command will not use.
#
# Exit status: that of the command; 125 when what is read is malformed.
set -eu
unset RWS_LAUNCH

take_number() {
	_rws_number=$(($(head -c 8 <&3)))
}
# The dot keeps newlines at the end of a text.
take_text() {
	take_number
	_rws_text=$(head -c "$_rws_number" <&3 && printf .)
	_rws_text=${_rws_text%.}
}

# Whoever wants a command may be gone before it is told.
_rws_number=$(($(timeout --foreground 600 head -c 8 <&3)))
_rws_count=$_rws_number
while [ "$_rws_count" -gt 0 ]; do
	take_text
	export "${_rws_text?}"
	_rws_count=$((_rws_count - 1))
done
take_number
_rws_count=$_rws_number
while [ "$_rws_count" -gt 0 ]; do
	take_text
	set -- "$@" "$_rws_text"
	_rws_count=$((_rws_count - 1))
done
exec 3<&-
exec "$@"
