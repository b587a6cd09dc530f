#!/bin/sh
# SPDX-License-Identifier: ISC
# The static analyzer of gcc, which follows memory and descriptors on other paths than clang's does.
set -eu
# shellcheck disable=SC2046 # a list of words
exec sh tests/lint/cached analyzer gcc $(make -s --no-print-directory lint-flags) -O1 -fanalyzer -Werror -S -o /dev/null
