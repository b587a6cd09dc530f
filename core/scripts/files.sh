#!/bin/sh
# SPDX-License-Identifier: ISC
# The far end of core/files_script.c: serves file operations, one after another, until its input
# ends.
#
# Arguments: the root (absolute, symlinks resolved); the age in minutes at which leftovers are
# removed.
#
# Input, a line each: NUMBER VERB FIELD... Fields are parted by one space. A text starts with "="
# and has what is not plain ASCII as \0ooo. After "feed" so many raw bytes follow as it says.
# Output: lines, the last of a request is "ok" or "fail":
#	attr NUMBER MODE USER GROUP LINKS SIZE DEVICE INODE ACCESSED MODIFIED   (MODE in hexadecimal)
#	vfs NUMBER BLOCK FRAGMENT BLOCKS FREE AVAILABLE FILES FILES-FREE ID NAME-MAX
#	data NUMBER SIZE, and so many raw bytes
#	ok NUMBER
#	fail NUMBER CODE SIZE, and a text of so many bytes; with "-" the text tells the code
# Exit status: 0 at the end of input.
#
# Nothing leaves the root: a directory is entered with every symlink followed, as the kernel does
# it, and only then asked where it is; from there on only names in it are used, and no symlink of
# such a name is followed. A second directory is held by descriptor 3.
#
# The functions of core/scripts/files_place.sh come first; both are one script where they run.
#
# shellcheck disable=SC2034 # what is set here is used there
# shellcheck disable=SC2154 # and the other way round
set -u
LC_ALL=C
export LC_ALL
umask 022

root=$1
age=$2
base=${TMPDIR:-/tmp}
notes=$base/.rws-$(id -u)

# Our own directories: one for notes of unfinished files, shared by all of us, and one of this
# process.
mkdir -m 700 -- "$notes" 2>/dev/null
if [ -L "$notes" ] || [ "$(stat -c %u -- "$notes")" != "$(id -u)" ]; then
	notes=$(mktemp -d "$base/.rws-XXXXXXXX") || exit 1
fi
own=$(mktemp -d "$notes/agent-XXXXXXXX") || exit 1
trap 'rm -rf -- "$own"' EXIT
trap 'exit 0' HUP INT TERM PIPE

serve_resolve() {
	decode "$1"
	resolved=$(realpath -m -- "$text" && printf x)
	resolved=${resolved%?x}
	path=$text
	is_inside "$resolved" || fail OUTSIDE_ROOT "$path is outside the root $root" || return 1
	if [ -e "$resolved" ] && place "$resolved" >/dev/null; then
		put_attributes || return 1
	fi
	put_text "$resolved" && say_ok
}

serve_stat() {
	decode "$1"
	place "$text" "$2" && put_attributes && say_ok
}

# open PATH LIMIT SIZE: its attributes and real path; of one within the limit also its first SIZE
# bytes. The rest comes by "get".
serve_open() {
	decode "$1"
	place "$text" follow && check_there && check_regular || return 1
	[ -r "./$name" ] || fail DENIED "$path: Permission denied" || return 1
	put_attributes && put_text "$real" || return 1
	if [ "$(stat -c %s -- "./$name")" -le "$2" ]; then
		copy_piece 0 "$3" && put_file "$own/piece" || return 1
	fi
	say_ok
}

# A piece of the place to a private file: one that shrinks meanwhile must not leave the reader
# waiting.
copy_piece() {
	quiet dd if="./$name" of="$own/piece" bs=1M skip="$1" count="$2" status=none \
	    iflag=nofollow,fullblock,skip_bytes,count_bytes
}

# get PATH OFFSET SIZE DEVICE INODE: a piece of what must be the file that was opened.
serve_get() {
	decode "$1"
	place "$text" && copy_piece "$2" "$3" || return 1
	[ "$(stat -c '%d %i' -- "./$name" 2>/dev/null)" = "$4 $5" ] ||
		fail UNAVAILABLE "$path was replaced while it was read" || return 1
	put_file "$own/piece" && say_ok
}

# edit PATH FLAGS: may it be written to? FLAGS has c for create and x for exclusive.
serve_edit() {
	decode "$1"
	place "$text" follow || return 1
	if is_there; then
		case $2 in
		*x*) fail EXISTS "$path exists" || return 1 ;;
		esac
		check_regular || return 1
		[ -w "./$name" ] || fail DENIED "$path: Permission denied" || return 1
		put_attributes || return 1
	else
		case $2 in
		*c*) ;;
		*) check_there || return 1 ;;
		esac
		[ -w . ] || fail DENIED "$path: Permission denied" || return 1
	fi
	put_text "$real" && say_ok
}

# feed SIZE UPLOAD: takes bytes from the input, to be used by "put". All of them are taken, even
# when there is no room for them: "put" sees what is missing.
serve_feed() {
	head -c "$1" | tee -a -- "$own/up-$2" >/dev/null 2>&1
	say_ok
}

# drop UPLOAD
serve_drop() {
	rm -f -- "$own/up-$1"
	say_ok
}

# A name beside the target that nobody can guess, and a note of it.
make_unfinished() {
	unfinished=$(mktemp -u .rws-XXXXXXXXXXXX)
	printf '%s' "$PWD/$unfinished" >"$notes/$unfinished"
}

# finish FLAGS: moves the unfinished file to its name in one step; x: unless something is there.
finish() {
	case $1 in
	*x*)
		quiet ln -T -- "./$unfinished" "./$name" || return 1
		rm -f -- "./$unfinished"
		;;
	*) quiet mv -fT -- "./$unfinished" "./$name" || return 1 ;;
	esac
}

# store FILE FLAGS: a copy of the private FILE, mode and times and all, becomes the place.
store() {
	make_unfinished
	quiet cp -p --reflink=auto -T -- "$1" "./$unfinished" && finish "$2"
	stored=$?
	[ "$stored" -eq 0 ] || rm -f -- "./$unfinished"
	rm -f -- "$notes/$unfinished"
	return "$stored"
}

# dress FILE MODE ACCESSED MODIFIED OWNER; "-" for none.
dress() {
	[ "$2" = - ] || quiet chmod "$2" -- "$1" || return 1
	[ "$5" = - ] || quiet chown "$5" -- "$1" || return 1
	[ "$3" = - ] || quiet touch -a -d "@$3" -- "$1" || return 1
	[ "$4" = - ] || quiet touch -m -d "@$4" -- "$1"
}

# put PATH UPLOAD SIZE FLAGS MODE ACCESSED MODIFIED OWNER: what was fed becomes PATH. FLAGS: x for
# exclusive, p for parents, c when MODE is only for a file that is created.
serve_put() {
	decode "$1"
	upload=$own/up-$2
	[ -e "$upload" ] || : >"$upload"
	put_upload "$@"
	status=$?
	rm -f -- "$upload"
	return "$status"
}

put_upload() {
	path=$text
	[ "$(stat -c %s -- "$upload")" = "$3" ] ||
		fail UNAVAILABLE "$path: not all of it arrived" || return 1
	case $4 in
	*p*)
		wanted=$text
		make_parents "$wanted" || return 1
		text=$wanted
		;;
	esac
	place "$text" follow && check_name || return 1
	mode=$5
	owner=$8
	if is_there; then
		case $4 in
		*x*) fail EXISTS "$path exists" || return 1 ;;
		esac
		check_regular || return 1
		old=$(stat -c '%a %u:%g' -- "./$name")
		case $4$5 in
		*c* | *-) mode=${old% *} ;;
		esac
		[ "$owner" != - ] || [ "$(id -u)" != 0 ] || owner=${old#* }
	elif [ "$mode" = - ]; then
		mode=644
	fi
	dress "$upload" "$mode" "$6" "$7" "$owner" && store "$upload" "$4" || return 1
	put_attributes && put_text "$real" && say_ok
}

# mkdir PATH MODE FLAGS
serve_mkdir() {
	decode "$1"
	wanted=$text
	case $3 in
	*p*)
		make_parents "$wanted" && place "$wanted" follow || return 1
		if [ -d "./$name" ]; then
			say_ok
			return 0
		fi
		;;
	*) place "$wanted" || return 1 ;;
	esac
	# As mkdir(2) has it: the mode is what the umask leaves.
	quiet mkdir -m "$2" -- "./$name" && say_ok
}

move_to_trash() {
	case $real in
	"${root%/}"/.rws | "${root%/}"/.rws/*)
		fail INVALID "$path cannot go to the trash: it holds it" || return 1
		;;
	esac
	hold_directory || return 1
	moved=$(date -u +%Y%m%dT%H%M%SZ)
	cd -P -- "$root" || return 1
	for part in .rws trash; do
		[ -d "./$part" ] || mkdir -- "./$part" 2>/dev/null
		if [ -L "./$part" ] || ! cd -P -- "./$part" 2>/dev/null; then
			fail NOT_DIRECTORY "$part of the root is no directory" || return 1
		fi
	done
	# A symlink may have been swapped in: the trash is two below the root, whatever PWD says.
	# shellcheck disable=SC3013 # dash, bash and busybox all have it
	[ ../.. -ef "$root" ] || fail OUTSIDE_ROOT "the trash is outside the root" || return 1
	count=0
	while [ -e "./$moved-$count-$name" ]; do
		count=$((count + 1))
	done
	moved=$moved-$count-$name
	quiet mv -T -- "/proc/self/fd/3/$name" "./$moved" || return 1
	put_text "$PWD/$moved" && say_ok
}

# remove PATH FLAGS: r for recursive, t for trash, d and f for nothing but a directory or a file.
serve_remove() {
	decode "$1"
	check_idle "$2" || return 1
	place "$text" && check_name && check_there || return 1
	if [ -d "./$name" ] && [ ! -L "./$name" ]; then
		case $2 in
		*f*) fail IS_DIRECTORY "$path is a directory" || return 1 ;;
		*r*) ;;
		*t*)
			[ -z "$(find "./$name" -mindepth 1 -maxdepth 1 -print -quit 2>/dev/null)" ] ||
				fail NOT_EMPTY "$path is not empty" || return 1
			;;
		esac
	else
		case $2 in
		*d*) fail NOT_DIRECTORY "$path is not a directory" || return 1 ;;
		esac
	fi
	case $2 in
	*t*)
		move_to_trash
		return
		;;
	esac
	if [ ! -d "./$name" ] || [ -L "./$name" ]; then
		quiet rm -f -- "./$name" || return 1
	elif [ "$2" != "${2#*r}" ]; then
		quiet rm -rf -- "./$name" || return 1
	else
		quiet rmdir -- "./$name" || return 1
	fi
	say_ok
}

# two PATH OTHER FLAGS: descriptor 3 is the directory of PATH, $first its name there; the place is
# OTHER's.
two() {
	decode "$2"
	other=$text
	case $3 in
	*p*) make_parents "$other" || return 1 ;;
	esac
	decode "$1"
	place "$text" && check_name && check_there && hold_directory || return 1
	first=$name
	first_real=$real
	first_path=$path
	place "$other" && check_name
}

# rename PATH OTHER FLAGS: o for overwrite, p for parents.
serve_rename() {
	check_idle "$3" || return 1
	two "$@" || return 1
	if [ "$real" = "$first_real" ]; then
		say_ok
		return 0
	fi
	case $real in
	"$first_real"/*) fail INVALID "$path is inside $first_path" || return 1 ;;
	esac
	case $3 in
	*o*) quiet mv -fT -- "/proc/self/fd/3/$first" "./$name" || return 1 ;;
	*)
		! is_there || fail EXISTS "$path exists" || return 1
		mv -nT -- "/proc/self/fd/3/$first" "./$name" 2>"$own/errors"
		# Some say nothing when they leave it.
		if [ -e "/proc/self/fd/3/$first" ] || [ -L "/proc/self/fd/3/$first" ]; then
			if [ ! -s "$own/errors" ] || is_there; then
				fail EXISTS "$path exists" || return 1
			fi
			fail_command || return 1
		fi
		;;
	esac
	say_ok
}

serve_link() {
	two "$@" && quiet ln -PT -- "/proc/self/fd/3/$first" "./$name" && say_ok
}

serve_symlink() {
	decode "$1"
	place "$text" || return 1
	decode "$2"
	quiet ln -sT -- "$text" "./$name" && say_ok
}

serve_readlink() {
	decode "$1"
	place "$text" && check_there || return 1
	[ -L "./$name" ] || fail INVALID "$path is not a symlink" || return 1
	target=$(readlink -n -- "./$name" && printf x)
	put_text "${target%x}" && say_ok
}

# chmod follows symlinks: what it is given is an open file whose place was checked.
change_mode() {
	if [ -L "./$name" ]; then
		fail UNSUPPORTED "$path is a symlink" || return 1
	elif [ ! -r "./$name" ] || [ -p "./$name" ]; then
		quiet chmod "$1" -- "./$name" || return 1
	else
		exec 4<"./$name"
		[ "$name" = . ] || [ "$(readlink /proc/self/fd/4)" = "$real" ] ||
			fail NOT_FOUND "$path was replaced" || return 1
		quiet chmod "$1" /proc/self/fd/4 || return 1
		exec 4<&-
	fi
}

# setstat PATH FOLLOW SIZE OWNER MODE ACCESSED MODIFIED; "-" for none.
serve_setstat() {
	decode "$1"
	place "$text" "$2" && check_there || return 1
	if [ "$3" != - ]; then
		check_regular || return 1
		quiet dd if=/dev/null of="./$name" bs=1 seek="$3" count=0 status=none \
		    oflag=nofollow,seek_bytes conv=nocreat || return 1
	fi
	[ "$4" = - ] || quiet chown -h "$4" -- "./$name" || return 1
	[ "$5" = - ] || change_mode "$5" || return 1
	[ "$6" = - ] || quiet touch -h -c -a -d "@$6" -- "./$name" || return 1
	[ "$7" = - ] || quiet touch -h -c -m -d "@$7" -- "./$name" || return 1
	say_ok
}

serve_statvfs() {
	decode "$1"
	place "$text" follow || return 1
	try stat -f --printf "vfs $number %s %S %b %f %a %c %d %i %l\n" -- "./$name" && say_ok
}

# copy PATH OTHER FLAGS MODE: o for overwrite, p for parents.
serve_copy() {
	decode "$1"
	place "$text" follow && check_there && check_regular && hold_directory || return 1
	from=$name
	quiet dd if="/proc/self/fd/3/$from" of="$own/copy" bs=1M iflag=nofollow status=none || return 1
	mode=$4
	[ "$mode" != - ] || mode=$(stat -c %a -- "/proc/self/fd/3/$from")
	decode "$2"
	other=$text
	flags=x
	case $3 in
	*o*) flags= ;;
	esac
	case $3 in
	*p*) make_parents "$other" || return 1 ;;
	esac
	place "$other" follow && check_name || return 1
	if is_there; then
		[ -z "$flags" ] || fail EXISTS "$path exists" || return 1
		check_regular || return 1
	fi
	dress "$own/copy" "$mode" - - - && store "$own/copy" "$flags" || return 1
	rm -f -- "$own/copy"
	put_attributes && put_text "$real" && say_ok
}

# hash PATH ALGORITHM OFFSET SIZE BLOCK: hexadecimal lines.
serve_hash() {
	decode "$1"
	place "$text" follow && check_there && check_regular || return 1
	command -v "$2sum" >/dev/null 2>&1 || fail UNSUPPORTED "$2sum is not in the image" || return 1
	end=$(stat -c %s -- "./$name")
	[ "$3" -le "$end" ] || fail INVALID "$path: the offset is past the end" || return 1
	[ "$4" -eq 0 ] || [ "$4" -ge $((end - $3)) ] || end=$(($3 + $4))
	block=$5
	[ "$block" -ne 0 ] || block=$((end - $3))
	from=$3
	: >"$own/hashes"
	while :; do
		size=$block
		[ "$size" -le $((end - from)) ] || size=$((end - from))
		dd if="./$name" bs=1M skip="$from" count="$size" status=none \
		    iflag=nofollow,fullblock,skip_bytes,count_bytes 2>"$own/errors" </dev/null |
			"$2sum" >>"$own/hashes"
		from=$((from + size))
		[ "$from" -lt "$end" ] || break
	done
	put_file "$own/hashes" && say_ok
}

# find_name FILE ID: the name of a number in passwd or group, in $found.
find_name() {
	found=
	[ -r "$1" ] || return 0
	while IFS=: read -r entry _ id _; do
		if [ "$id" = "$2" ]; then
			found=$entry
			break
		fi
	done <"$1"
}

# names USERS NUMBER...: a line each; the first USERS of them are users.
serve_names() {
	users=$1
	shift
	list=
	for id in "$@"; do
		file=/etc/group
		if [ "$users" -gt 0 ]; then
			file=/etc/passwd
			users=$((users - 1))
		fi
		find_name "$file" "$id"
		list="$list$found
"
	done
	put_text "$list" && say_ok
}

# list PATH FLAGS LIMIT PATTERN [SKIP...]: records PATH//TYPE MODE USER GROUP LINKS SIZE DEVICE
# INODE ACCESSED MODIFIED, each ended by NUL. FLAGS: r for recursive, h for hidden ones as well. To
# sort a directory's contents right after it, "/" is made the lowest byte for a while.
serve_list() {
	decode "$1"
	flags=$2
	limit=$3
	place "$text" follow && check_there || return 1
	[ -d "./$name" ] || fail NOT_DIRECTORY "$path: Not a directory" || return 1
	cd -P -- "./$name" 2>/dev/null || fail DENIED "$path: Permission denied" || return 1
	is_here_inside || fail OUTSIDE_ROOT "$path is outside the root $root" || return 1
	name=.
	put_attributes || return 1
	[ -r . ] || fail DENIED "$path: Permission denied" || return 1
	decode "$4"
	pattern=$text
	shift 4
	list_entries "$@"
	if [ "$(stat -c %s -- "$own/list")" -gt 67108864 ]; then
		fail TOO_LARGE "the listing is over 64 MiB: narrow it with skip_dirs, glob or limit"
	else
		put_file "$own/list" && say_ok
	fi
	: >"$own/list"
}

list_entries() {
	record='%P//%y %m %U %G %n %s %D %i %A@ %T@\0'
	skips=$#
	left=$skips
	while [ "$left" -gt 0 ]; do
		decode "$1"
		shift
		set -- "$@" -o -name "$text"
		left=$((left - 1))
	done
	if [ "$skips" -gt 0 ]; then
		shift
		set -- , -type d "(" "$@" ")" -prune
	fi
	set -- "(" -name "$pattern" -printf "$record" "$@" ")"
	[ "$flags" != "${flags#*h}" ] || set -- -name '.*' -prune -o "$@"
	[ "$flags" != "${flags#*r}" ] || set -- -maxdepth 1 "$@"
	find . -mindepth 1 "$@" 2>/dev/null </dev/null | tr '/\001' '\001/' | sort -z | cut_entries |
		tr '/\001' '\001/' | head -c 67108865 >"$own/list"
}

cut_entries() {
	if [ "$limit" -eq 0 ]; then
		cat
	else
		head -z -n "$limit"
	fi
}

while IFS= read -r line; do
	# Fields hold neither blanks nor wildcards; there is nothing else to expand.
	# shellcheck disable=SC2086
	set -f -- $line
	set +f
	[ $# -ge 2 ] || continue
	number=$1
	verb=$2
	shift 2
	case $verb in
	resolve) serve_resolve "$@" ;;
	stat) serve_stat "$@" ;;
	open) serve_open "$@" ;;
	get) serve_get "$@" ;;
	edit) serve_edit "$@" ;;
	feed) serve_feed "$@" ;;
	drop) serve_drop "$@" ;;
	put) serve_put "$@" ;;
	mkdir) serve_mkdir "$@" ;;
	remove) serve_remove "$@" ;;
	rename) serve_rename "$@" ;;
	link) serve_link "$@" ;;
	symlink) serve_symlink "$@" ;;
	readlink) serve_readlink "$@" ;;
	setstat) serve_setstat "$@" ;;
	statvfs) serve_statvfs "$@" ;;
	copy) serve_copy "$@" ;;
	hash) serve_hash "$@" ;;
	names) serve_names "$@" ;;
	list) serve_list "$@" ;;
	sweep)
		sweep >/dev/null
		say_ok
		;;
	*) fail UNSUPPORTED "the script knows no $verb" ;;
	esac
done
exit 0
