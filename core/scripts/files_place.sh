#!/bin/sh
# SPDX-License-Identifier: ISC
# The first part of the files script, which core/scripts/files.sh goes on: finding places in the
# root and saying how it went. It defines functions and does nothing by itself; see there for all
# that is said.
#
# shellcheck disable=SC2034 # what it sets is used there
# shellcheck disable=SC2154 # and the other way round
set -u

# What an agent or server that was killed left, once it is old enough. A note of another root is for
# its agent.
sweep() {
	for note in "$notes"/.rws-*; do
		[ -f "$note" ] || continue
		[ -n "$(find "$note" -maxdepth 0 -mmin "+$age")" ] || continue
		left=$(cat "$note" && printf x)
		left=${left%x}
		case $left in
		/*) is_inside "$left" || continue ;;
		esac
		if [ "${left##*/}" = "${note##*/}" ] && place "$left" && [ -f "./$name" ] && [ ! -L "./$name" ]; then
			rm -f -- "./$name"
		fi
		rm -f -- "$note"
	done
	find "$notes" -mindepth 1 -maxdepth 1 -name 'agent-*' -mmin "+$age" ! -path "$own" -exec rm -rf {} +
}

# decode FIELD: the text of a field, in $text.
decode() {
	text=${1#=}
	case $text in
	*\\*)
		text=$(printf '%bx' "$text")
		text=${text%x}
		;;
	esac
}

say_ok() {
	printf 'ok %s\n' "$number"
}

# fail CODE TEXT
fail() {
	printf 'fail %s %s %s\n%s' "$number" "$1" "${#2}" "$2"
	return 1
}

# What the last command complained of.
fail_command() {
	complaint=$(head -c 400 "$own/errors")
	fail - "$path: ${complaint##*: }"
}

# try COMMAND...: runs it, its complaints kept; what it prints is part of the reply.
try() {
	"$@" 2>"$own/errors" </dev/null || fail_command
}

# check_idle FLAGS: with b, does any gateway's command run here, or has one left processes behind? All of them
# carry this variable, and nothing of our own does.
check_idle() {
	case $1 in
	*b*) ;;
	*) return 0 ;;
	esac
	variables=$(cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n')
	case "
$variables" in
	*"
RWS_SANDBOX_ID="*) fail BUSY "a command of the workspace runs or left processes" ;;
	esac
}

# quiet COMMAND...: the same for what prints nothing of use.
quiet() {
	"$@" >/dev/null 2>"$own/errors" </dev/null || fail_command
}

put_text() {
	printf 'data %s %s\n%s' "$number" "${#1}" "$1"
}

# put_file FILE: of our own directory.
put_file() {
	stat --printf "data $number %s\n" -- "$1" && cat -- "$1"
}

put_attributes() {
	try stat --printf "attr $number %f %u %g %h %s %d %i %.9X %.9Y\n" -- "./$name"
}

is_inside() {
	case $1/ in
	"${root%/}"/*) return 0 ;;
	esac
	return 1
}

# Is the current directory in the root? bash takes for PWD what the path was before it went there, and
# a symlink may have been swapped in meanwhile: so in bash the way up has to lead to the root.
is_here_inside() {
	is_inside "$PWD" || return 1
	[ -n "${BASH_VERSION-}" ] || return 0
	up=.
	# shellcheck disable=SC3013 # only bash comes here
	while ! [ "$up" -ef "$root" ]; do
		if [ ! -e "$up" ] || [ "$up" -ef / ]; then
			return 1
		fi
		up=$up/..
	done
}

# Why the directory cannot be entered.
fail_enter() {
	if [ ! -e "$1" ]; then
		fail NOT_FOUND "$path: No such file or directory"
	elif [ ! -d "$1" ]; then
		fail NOT_DIRECTORY "$path: Not a directory"
	else
		fail DENIED "$path: Permission denied"
	fi
}

# place PATH [follow]: enters the directory of PATH; its last name is in $name, its real path in
# $real. With follow a last symlink is followed, even one that leads to nothing.
place() {
	path=$1
	at=$1
	links=0
	while :; do
		while [ "$at" != / ] && [ "$at" != "${at%/}" ]; do
			at=${at%/}
		done
		if [ "$at" = "$root" ] || [ "$at" = / ]; then
			is_inside "$at" || break
			cd -P -- "$at" 2>/dev/null || fail_enter "$at" || return 1
			name=.
			real=$at
			return 0
		fi
		name=${at##*/}
		at=${at%/*}
		cd -P -- "${at:-/}" 2>/dev/null || fail_enter "${at:-/}" || return 1
		case $name in
		. | ..) fail NOT_FOUND "$path: No such file or directory" || return 1 ;;
		esac
		real=${PWD%/}/$name
		if [ "$real" = "$root" ]; then
			at=$root
			continue
		fi
		if [ "${2-}" = follow ] && [ -L "./$name" ]; then
			links=$((links + 1))
			[ "$links" -lt 40 ] || fail INVALID "$path: Too many levels of symbolic links" || return 1
			target=$(readlink -n -- "./$name" && printf x)
			target=${target%x}
			case $target in
			/*) at=$target ;;
			*) at=${PWD%/}/$target ;;
			esac
			continue
		fi
		is_here_inside || break
		return 0
	done
	fail OUTSIDE_ROOT "$path is outside the root $root"
}

# Refuses the root itself.
check_name() {
	[ "$name" != . ] || fail DENIED "$path is the root itself"
}

# Makes the directory descriptor 3.
hold_directory() {
	[ -r . ] || fail DENIED "$path: Permission denied" || return 1
	exec 3<.
}

is_there() {
	[ -e "./$name" ] || [ -L "./$name" ]
}

check_there() {
	is_there || fail NOT_FOUND "$path: No such file or directory"
}

# A regular file, and no symlink that took its place.
check_regular() {
	if [ -d "./$name" ] && [ ! -L "./$name" ]; then
		fail IS_DIRECTORY "$path is a directory"
	elif [ -L "./$name" ] || [ ! -f "./$name" ]; then
		fail INVALID "$path is not a regular file"
	fi
}

# make_parents PATH: the directories above it, one by one, so that none is made outside.
make_parents() {
	rest=${1#"${root%/}"/}
	[ "$rest" != "$1" ] || return 0
	made=${root%/}
	while [ "$rest" != "${rest#*/}" ]; do
		made=$made/${rest%%/*}
		rest=${rest#*/}
		place "$made" follow || return 1
		[ -d "./$name" ] || quiet mkdir -- "./$name" || return 1
	done
}
