#!/bin/sh
# SPDX-License-Identifier: ISC
# layers.sh [TREE]: who may include what. Includes point down: gateway, then conf, keys and drivers,
# then core, then core/base; each library has one door.
set -eu
cd "${1:-.}"

grep -rnE '^[[:space:]]*#[[:space:]]*include' --include='*.[ch]' core conf keys drivers gateway 2>/dev/null |
awk -F '[:"<>]' '
function refuse(header, why) {
	print file ":" $2 ": " header ": " why
	failed = 1
}

# Own headers, by the floor of the file that includes them.
function check_own(header) {
	if (header !~ /^(core|conf|keys|drivers|gateway)\//) {
		refuse(header, "own headers are named by their path from the top")
	} else if (file ~ /^core\/base\//) {
		if (header !~ /^core\/base\//) refuse(header, "core/base includes core/base only")
	} else if (file ~ /^core\//) {
		if (header !~ /^core\//) refuse(header, "core includes core only")
	} else if (file !~ /^gateway\// && header !~ /^core\//) {
		split(file, mine, "/")
		split(header, other, "/")
		if (mine[1] != other[1]) refuse(header, mine[1] " includes itself and core only")
	}
}

# One file of a floor may be the door; a second one is refused.
function check_single(header, library, floor) {
	if ((library, floor) in door && door[library, floor] != file)
		refuse(header, library " comes in through " door[library, floor] " already")
	door[library, floor] = file
}

function check_library(header) {
	if (header ~ /^libssh\// && file !~ /^(gateway|keys)\// && file !~ /^drivers\/ssh/)
		refuse(header, "libssh is for gateway, keys and the ssh driver")
	if (header ~ /^curl\// && file !~ /^drivers\/(http(_[a-z]+)?\.[ch]|socket\.c)$/)
		refuse(header, "libcurl is for drivers/http and drivers/socket.c")
	if (header ~ /^archive(_entry)?\.h$/) {
		if (file ~ /^core\/[^\/]*\.c$/) check_single(header, "libarchive", "core")
		else if (file ~ /^drivers\/.*\.c$/) check_single(header, "libarchive", "drivers")
		else refuse(header, "libarchive is for one file of core and one of drivers")
	}
	if (header ~ /^openssl\// && file !~ /^keys\//) {
		if (file ~ /^core\/base\//) check_single(header, "OpenSSL", "core/base")
		else refuse(header, "OpenSSL is for keys and one file of core/base")
	}
	if (header ~ /^(sqlite3|libpq-fe)\.h$/ && file !~ /^gateway\/records/)
		refuse(header, "databases are for the records of gateway")
}

{
	file = $1
	if ($0 ~ /include[[:space:]]*"/) check_own($4)
	else check_library($4)
}

END { exit failed }
'
