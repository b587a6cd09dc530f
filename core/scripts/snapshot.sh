#!/bin/sh
# SPDX-License-Identifier: ISC
# Snapshots of a workspace: directories ROOT/.rws/snapshots/ID with archive.tar; entries, what it
# holds, as "TYPE ./PATH" ended by NUL each; skipped, as "./PATH" ended by NUL; patterns, the
# regular expressions of what was left out; counts, "FILES BYTES"; and record, one line of JSON that
# is not read here. What is being made is a directory .ID.part beside them.
#
# Arguments: VERB ROOT, and
#	create ID MAX_FILE MAX_TOTAL EXCLUDE HOLD   stdin: the record. Output: "FILES BYTES", then skipped
#	list                       output: "ID ARCHIVE_BYTES FILES BYTES RECORD" a line
#	show ID                    output: as list, then skipped
#	delete ID
#	read ID                    output: "ARCHIVE_BYTES", then the archive
#	look ID                    output: three sizes on a line, then so many bytes of record, entries and
#	                           skipped, and then the tree as it is: "TYPE SIZE ./PATH" ended by NUL, with
#	                           TYPE X for a directory that is left out, x for anything else that is,
#	                           and h for a directory whose contents are
#	apply ID FILES DIRECTORIES NAMES   stdin: so many bytes of paths to remove, of directories to remove
#	                           afterwards, and of names to restore (0: all)
#	receive ID                 stdin: an archive, into .ID.part
#	finish ID EXCLUDE HOLD COUNTS RECORD ENTRIES   stdin: so many bytes of each; makes .ID.part whole
#	drop ID                    forgets .ID.part
# EXCLUDE and HOLD are extended regular expressions for whole paths: what EXCLUDE matches is left
# out; of a directory that HOLD matches, the contents.
# On failure: a last line "error CODE TEXT" on stderr, exit status 1.
set -eu
LC_ALL=C
export LC_ALL
umask 077

fail() {
	printf 'error %s %s\n' "$1" "$2" >&2
	exit 1
}

# Goes into the directory of snapshots, which must be a real one below the root: a command could
# have put a symlink in its place. From there on, names are relative. Status 1: it is not there.
enter() {
	cd -P -- "$root" 2>/dev/null || fail NOT_FOUND 'the root is gone'
	root=$(pwd -P)
	for name in .rws snapshots; do
		[ "$1" = find ] || mkdir -- "$name" 2>/dev/null || :
		[ ! -L "$name" ] || fail DENIED "$name is a symlink, not a directory"
		[ -e "$name" ] || [ "$1" = make ] || return 1
		[ -d "$name" ] || fail NOT_DIRECTORY "$name is no directory, or cannot be made"
		cd -P -- "$name" || fail DENIED "$name cannot be entered"
	done
	# Not by pwd -P: in bash that is what the path was before it went there.
	# shellcheck disable=SC3013 # dash, bash and busybox all have it
	[ ../.. -ef "$root" ] || fail OUTSIDE_ROOT '.rws/snapshots is elsewhere'
}

# Is $1 a snapshot with all its parts?
is_whole() {
	[ ! -L "$1" ] && [ -d "$1" ] || return 1
	for name in archive.tar entries skipped patterns counts record; do
		[ ! -L "$1/$name" ] && [ -f "$1/$name" ] || return 1
	done
}

enter_snapshot() {
	if ! enter find || [ ! -d "./$id" ]; then
		fail NOT_FOUND "there is no snapshot $id"
	fi
	is_whole "./$id" || fail INVALID "snapshot $id is damaged"
}

# Begins .ID.part, which goes away again when this does not end well.
begin() {
	enter make
	find . -maxdepth 1 -name '.*.part' -mmin +60 -exec rm -rf {} + 2>/dev/null || :
	mkdir -- "./.$id.part" 2>/dev/null || fail BUSY "snapshot $id is in use"
	trap 'rm -rf -- "./.$id.part"' EXIT
	trap 'exit 143' HUP INT TERM
}

keep() {
	mv -T -- "./.$id.part" "./$id" || fail UNAVAILABLE 'the snapshot cannot be moved to its place'
	trap - EXIT
}

# Lists the tree into .ID.part: what goes into the archive, and what does not and stays. A file that
# vanishes meanwhile is no failure.
walk() {
	part=.rws/snapshots/.$id.part
	for name in entries names sizes skipped; do
		: >"./.$id.part/$name"
	done
	(
		cd -- "$root"
		find . -mindepth 1 -regextype posix-extended -regex "$exclude" -prune -o \
		    \( -type l -o -type d -readable -executable -o \
			-type f -readable -size "-$((max_file + 1))c" \) \
		    -fprintf "$part/entries" '%y %p\0' -fprintf "$part/names" '%p\0' \
		    \( ! -type f -o -fprintf "$part/sizes" '%s\n' \) \
		    \( ! -type d -o ! -regex "$hold" -o -prune \) \
		    -o -fprintf "$part/skipped" '%p\0' -prune
	) 2>"./.$id.part/complaints" || :
	while IFS= read -r line; do
		case $line in
		*': No such file or directory') ;;
		*) fail UNAVAILABLE "$line" ;;
		esac
	done <"./.$id.part/complaints"
}

add_up() {
	files=0
	bytes=0
	while read -r size; do
		files=$((files + 1))
		bytes=$((bytes + size))
	done <"./.$id.part/sizes"
}

# Files may come and go meanwhile; then the lists would not say what the archive holds. Status 1.
pack() {
	rm -f -- "./.$id.part/archive.tar"
	status=0
	tar -c -f "./.$id.part/archive.tar" -C "$root" --format=gnu --sparse --numeric-owner \
	    --no-recursion --null --no-unquote -T "./.$id.part/names" 2>"./.$id.part/complaints" ||
		status=$?
	[ $status != 0 ] || return 0
	[ "$(tar -t -f "./.$id.part/archive.tar" 2>/dev/null | wc -l)" = \
	    "$(tr -dc '\0' <"./.$id.part/entries" | wc -c)" ] && [ $status = 1 ]
}

create() {
	max_file=$1 max_total=$2 exclude=$3 hold=$4
	find / -maxdepth 0 -regextype posix-extended -regex "$exclude" -regex "$hold" >/dev/null 2>&1 ||
		fail INVALID 'the excludes are too long or damaged'
	begin
	cat >"./.$id.part/record"
	printf '%s\n%s\n' "$exclude" "$hold" >"./.$id.part/patterns"
	tries=0
	while :; do
		walk
		add_up
		[ "$bytes" -le "$max_total" ] ||
			fail TOO_LARGE "the files have $bytes bytes, over max_snapshot_bytes ($max_total)"
		! pack || break
		tries=$((tries + 1))
		[ $tries -lt 3 ] || fail UNAVAILABLE "tar: $(tail -n 1 "./.$id.part/complaints")"
	done
	printf '%s %s\n' "$files" "$bytes" >"./.$id.part/counts"
	rm -f -- "./.$id.part/names" "./.$id.part/sizes" "./.$id.part/complaints"
	keep
	cat "./$id/counts" "./$id/skipped"
}

describe() {
	printf '%s %s %s ' "${1#./}" "$(stat -c %s -- "$1/archive.tar")" "$(head -n 1 "$1/counts")"
	printf '%s\n' "$(head -n 1 "$1/record")"
}

list() {
	enter find || return 0
	for snapshot in ./[!.]*; do
		! is_whole "$snapshot" || describe "$snapshot"
	done
}

# Sets exclude and hold to those of the snapshot.
read_patterns() {
	{
		IFS= read -r exclude
		IFS= read -r hold
	} <"./$id/patterns" || fail INVALID "snapshot $id is damaged"
}

look() {
	read_patterns
	printf '%s %s %s\n' "$(stat -c %s "./$id/record")" "$(stat -c %s "./$id/entries")" \
	    "$(stat -c %s "./$id/skipped")"
	cat "./$id/record" "./$id/entries" "./$id/skipped"
	cd -- "$root"
	find . -mindepth 1 -regextype posix-extended \
	    -regex "$exclude" -type d -printf 'X 0 %p\0' -prune -o \
	    -regex "$exclude" -printf 'x 0 %p\0' -prune -o \
	    -type d -regex "$hold" -printf 'h 0 %p\0' -prune -o \
	    -printf '%y %s %p\0' 2>/dev/null || :
}

# The next $1 bytes of stdin into the file $2 of the part: a worker that dies sends less.
take() {
	head -c "$1" >"./.$id.part/$2"
	[ "$(stat -c %s "./.$id.part/$2")" = "$1" ] || fail INVALID "only a part of $2 came"
}

# Nothing is touched before the archive was read once to its end; from then on there is no stopping.
apply() {
	begin
	is_whole "./$id" || fail INVALID "snapshot $id is damaged"
	take "$1" files
	take "$2" directories
	take "$3" names
	tar -t -f "./$id/archive.tar" >/dev/null 2>&1 || fail INVALID "the archive of $id is damaged"
	trap '' HUP INT TERM
	here=$(pwd -P)
	part=$here/.$id.part
	set -- tar -x -p -f "$here/$id/archive.tar" --numeric-owner
	[ ! -s "$part/names" ] || set -- "$@" --no-recursion --null --no-unquote -T "$part/names"
	status=0
	(
		cd -- "$root"
		status=0
		xargs -0 -r rm -f -- <"$part/files" || status=1
		xargs -0 -r rmdir -- <"$part/directories" || status=1
		"$@" || status=1
		exit $status
	) >/dev/null 2>"$part/complaints" || status=1
	[ $status = 0 ] || fail UNAVAILABLE "only a part was done: $(head -n 1 "$part/complaints")"
}

receive() {
	begin
	cat >"./.$id.part/archive.tar" || fail UNAVAILABLE 'the archive cannot be stored'
	trap - EXIT
}

finish() {
	enter find || fail NOT_FOUND 'the import is gone'
	[ -d "./.$id.part" ] || fail NOT_FOUND 'the import is gone'
	trap 'rm -rf -- "./.$id.part"' EXIT
	printf '%s\n%s\n' "$1" "$2" >"./.$id.part/patterns"
	take "$3" counts
	take "$4" record
	take "$5" entries
	: >"./.$id.part/skipped"
	keep
}

verb=$1 root=$2 id=${3:-}
shift "$(($# < 3 ? $# : 3))"
case $verb in
create | apply | receive | finish) "$verb" "$@" ;;
list) list ;;
show)
	enter_snapshot
	describe "./$id"
	cat "./$id/skipped"
	;;
delete)
	enter_snapshot
	mv -T -- "./$id" "./.$id.part"
	rm -rf -- "./.$id.part"
	;;
read)
	enter_snapshot
	stat -c %s "./$id/archive.tar"
	cat "./$id/archive.tar"
	;;
look)
	enter_snapshot
	look
	;;
drop)
	! enter find || rm -rf -- "./.$id.part"
	;;
esac
