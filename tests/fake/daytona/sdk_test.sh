#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs the official SDK against a fresh fake. Usage: tests/fake/daytona/sdk_test.sh [node --test options]
set -eu
if [ -z "${FAKE_URL:-}" ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	exec "$here/../common/with_fake.sh" daytona "$here/sdk_test.sh" "$@"
fi
DAYTONA_API_URL=$FAKE_URL/api DAYTONA_API_KEY=dtn_0123456789abcdef DAYTONA_TARGET=us
export DAYTONA_API_URL DAYTONA_API_KEY DAYTONA_TARGET
exec node --test "$@" sdk_test.mjs
