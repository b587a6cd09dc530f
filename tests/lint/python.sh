#!/bin/sh
# SPDX-License-Identifier: ISC
# The Python of the tests: names that do not exist, imports that nothing uses.
set -eu
scripts=$(find tests -type f -exec \
	awk 'FNR == 1 && (/^#!.*python3$/ || FILENAME ~ /\.py$/) { print FILENAME } FNR == 1 { nextfile }' {} +)
# shellcheck disable=SC2086 # a list of words
exec pyflakes3 $scripts
