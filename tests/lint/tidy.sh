#!/bin/sh
# SPDX-License-Identifier: ISC
# clang-tidy with the checks and the size limits of .clang-tidy. LINT=quick leaves out those that follow
# paths, which take nine tenths of the time: "make check" has gcc's analyzer for that.
set -eu
mkdir -p build/lint
# The file is read in its own directory, where -I. would be another one.
make -s --no-print-directory lint-flags | sed "s,-I\.,-I$PWD," | tr ' ' '\n' >build/lint/compile_flags.txt
checks=
[ "${LINT:-}" != quick ] || checks='--checks=-clang-analyzer-*'
exec sh tests/lint/cached tidy clang-tidy --quiet ${checks:+"$checks"} -p build/lint
