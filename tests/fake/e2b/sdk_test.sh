#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs the official SDK against a fresh fake. Usage: tests/fake/e2b/sdk_test.sh [node --test options]
# Packages stay in build/npm/e2b.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/fake/common/sdk.sh
. "$here/../common/sdk.sh"
FAKE_URL=$url E2B_API_URL=$url E2B_SANDBOX_URL=$url E2B_API_KEY=e2b_0123456789abcdef0123456789abcdef01234567
export FAKE_URL E2B_API_URL E2B_SANDBOX_URL E2B_API_KEY
node --test "$@" sdk_test.mjs
