#!/bin/sh
# SPDX-License-Identifier: ISC
# clang-tidy with the checks and the size limits of .clang-tidy.
set -eu
mkdir -p build/lint
printf '%s\n' -std=c11 -D_GNU_SOURCE -DLIBSSH_LEGACY_0_4 "-I$PWD" >build/lint/compile_flags.txt
exec sh tests/lint/cached tidy clang-tidy --quiet -p build/lint
