#!/bin/sh
# SPDX-License-Identifier: ISC
# The static analyzer of gcc, which follows memory and descriptors on other paths than clang's does.
set -eu
exec sh tests/lint/cached analyzer gcc -std=c11 -D_GNU_SOURCE -DLIBSSH_LEGACY_0_4 -I. -O1 -fanalyzer -Werror -c -o /dev/null
