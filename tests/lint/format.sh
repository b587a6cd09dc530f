#!/bin/sh
# SPDX-License-Identifier: ISC
# Every C file is as clang-format writes it; "make format" makes it so.
set -eu
files=$(find core conf keys drivers gateway tests -name '*.[ch]' 2>/dev/null || true)
# shellcheck disable=SC2086 # a list of words
exec clang-format --dry-run -Werror $files
