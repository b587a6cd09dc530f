#!/bin/sh
# SPDX-License-Identifier: ISC
# The manual pages are valid mdoc.
set -eu
pages=$(find conf gateway -name '*.[1-8]' 2>/dev/null || true)
[ -n "$pages" ] || exit 0
# shellcheck disable=SC2086 # a list of words
exec mandoc -T lint -W warning $pages
