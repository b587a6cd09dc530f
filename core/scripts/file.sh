#!/bin/sh
# SPDX-License-Identifier: ISC
# What reading and writing a file need beside the moving of its bytes, for providers whose file
# interface knows neither the user's rights nor a rename.
#
# Arguments: one of
#	check PATH         may this be read? Only files can, and a pipe must hold nobody up
#	prepare PATH       makes an empty private file beside the one that PATH means
#	append TEMP        adds what is in TEMP.part to that file, and removes TEMP.part
#	place TEMP PATH    moves that file over it
#	drop TEMP          removes it, and TEMP.part
# Output: "ok", from prepare "ok TEMP" with the name in base64; or the code of an error and a text.
# Exit status: 0 whatever the outcome.
set -u

refuse() {
	printf '%s %s\n' "$1" "$2"
	exit 0
}

# Sets $target to what $1 means with every symlink followed. The dot keeps newlines at its end.
resolve() {
	[ ! -d "$1" ] || refuse IS_DIRECTORY 'it is a directory'
	target=$(realpath -m -- "$1" && printf .)
	target=${target%??}
	directory=${target%/*}
	directory=${directory:-/}
}

case $1 in
check)
	[ -e "$2" ] || refuse NOT_FOUND 'there is no such file'
	[ ! -d "$2" ] || refuse IS_DIRECTORY 'it is a directory'
	[ -f "$2" ] || refuse INVALID 'it is not a regular file'
	[ -r "$2" ] || refuse DENIED 'it may not be read'
	;;
prepare)
	resolve "$2"
	[ -d "$directory" ] || refuse NOT_FOUND 'there is no such directory'
	[ ! -e "$target" ] || [ -f "$target" ] || refuse INVALID 'it is not a regular file'
	temp=$(mktemp "$directory/.rws-XXXXXXXXXX" 2>/dev/null && printf .) ||
		refuse DENIED 'its directory may not be written'
	temp=${temp%??}
	printf 'ok %s\n' "$(printf %s "$temp" | base64 | tr -d '\n')"
	exit 0
	;;
append)
	cat -- "$2.part" >>"$2" || refuse UNAVAILABLE 'a part of it could not be added'
	rm -f -- "$2.part"
	;;
place)
	resolve "$3"
	mv -fT -- "$2" "$target" 2>/dev/null || {
		rm -f -- "$2"
		refuse DENIED 'it may not be replaced'
	}
	;;
drop)
	rm -f -- "$2" "$2.part"
	;;
esac
echo ok
