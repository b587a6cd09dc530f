#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs the official SDK against a fresh fake. Usage: tests/fake/daytona/sdk_test.sh [node --test options]
# Packages come from the registry that npm is configured for and stay in build/npm/daytona.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
modules=$top/build/npm/daytona
work=$(mktemp -d)
fake=

finish() {
	status=$?
	if [ -n "$fake" ]; then
		kill "$fake" 2>/dev/null || :
		wait "$fake" 2>/dev/null || :
	fi
	rm -rf "$work"
	exit "$status"
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

# The lock file installed last says whether what is there is what we want.
mkdir -p "$modules"
if ! cmp -s "$here/package-lock.json" "$modules/installed.json"; then
	cp "$here/package.json" "$here/package-lock.json" "$modules/"
	(cd "$modules" && npm ci --no-audit --no-fund --ignore-scripts)
	cp "$modules/package-lock.json" "$modules/installed.json"
fi
cp "$here/sdk_test.mjs" "$modules/"

cd "$top"
mkfifo "$work/ready"
/usr/bin/python3 -m tests.fake.daytona --root "$work/root" >"$work/ready" &
fake=$!
read -r _ _ url <"$work/ready"
FAKE_URL=$url DAYTONA_API_URL=$url/api DAYTONA_API_KEY=dtn_0123456789abcdef DAYTONA_TARGET=us
export FAKE_URL DAYTONA_API_URL DAYTONA_API_KEY DAYTONA_TARGET
cd "$modules"
node --test "$@" sdk_test.mjs
