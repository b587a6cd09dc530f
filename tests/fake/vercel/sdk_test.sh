#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs the official SDK and the official CLI against a fresh fake. Usage: tests/fake/vercel/sdk_test.sh [node --test options]
# Neither can be told another address than vercel.com: redirect.mjs, loaded before them, sends what they ask of it to the
# fake and lets nothing else out.
set -eu
if [ -z "${FAKE_URL:-}" ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	exec "$here/../common/with_fake.sh" vercel "$here/sdk_test.sh" "$@"
fi
VERCEL_TELEMETRY_DISABLED=1 SANDBOX_SKIP_VERSION_CHECK=1 NO_COLOR=1 HOME=$WORK
export VERCEL_TELEMETRY_DISABLED SANDBOX_SKIP_VERSION_CHECK NO_COLOR HOME
unset VERCEL_OIDC_TOKEN VERCEL_AUTH_TOKEN
status=0
node --import ./redirect.mjs --test "$@" sdk_test.mjs || status=1
node --test "$@" cli_test.mjs || status=1
exit $status
