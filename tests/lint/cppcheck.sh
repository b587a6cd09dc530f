#!/bin/sh
# SPDX-License-Identifier: ISC
# cppcheck over the whole tree. Left out are what the house does on purpose (locals at the top of a
# function, "continue" as the body of an empty loop), what does not see a value change through a
# pointer (knownConditionTrueFalse), what does not know the types of callbacks (constParameter), and what
# does not see a table's rows being used or a local named like a file's function (unusedStructMember,
# shadowFunction).
set -eu
mkdir -p build/lint/cppcheck
directories=
for directory in core conf keys drivers gateway; do
	[ -d "$directory" ] && directories="$directories $directory"
done
# shellcheck disable=SC2086 # a list of words
exec cppcheck --std=c11 --quiet -j 2 -I. -D_GNU_SOURCE -DLIBSSH_LEGACY_0_4 --error-exitcode=1 --inline-suppr \
	--cppcheck-build-dir=build/lint/cppcheck \
	--enable=warning,style,performance,portability \
	--suppress=variableScope --suppress=redundantContinue --suppress=knownConditionTrueFalse --suppress=constParameter \
	--suppress=unusedStructMember --suppress=shadowFunction \
	--suppress=missingIncludeSystem $directories
