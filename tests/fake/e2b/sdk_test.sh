#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs the official SDK against a fresh fake. Usage: tests/fake/e2b/sdk_test.sh [node --test options]
set -eu
if [ -z "${FAKE_URL:-}" ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	exec "$here/../common/with_fake.sh" e2b "$here/sdk_test.sh" "$@"
fi
E2B_API_URL=$FAKE_URL E2B_SANDBOX_URL=$FAKE_URL E2B_API_KEY=e2b_0123456789abcdef0123456789abcdef01234567
export E2B_API_URL E2B_SANDBOX_URL E2B_API_KEY
exec node --test "$@" sdk_test.mjs
