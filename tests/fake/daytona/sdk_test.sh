#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs the official SDK against a fresh fake. Usage: tests/fake/daytona/sdk_test.sh [node --test options]
# Packages stay in build/npm/daytona.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/fake/common/sdk.sh
. "$here/../common/sdk.sh"
FAKE_URL=$url DAYTONA_API_URL=$url/api DAYTONA_API_KEY=dtn_0123456789abcdef DAYTONA_TARGET=us
export FAKE_URL DAYTONA_API_URL DAYTONA_API_KEY DAYTONA_TARGET
node --test "$@" sdk_test.mjs
