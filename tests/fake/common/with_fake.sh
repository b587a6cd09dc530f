#!/bin/sh
# SPDX-License-Identifier: ISC
# with_fake.sh NAME COMMAND [ARGUMENT]...: installs what the package-lock.json of tests/fake/NAME pins, starts that fake
# and runs the command beside the modules and the *.mjs of the fake, with the fake's address in FAKE_URL and a directory
# that goes at the end in WORK. Packages come from the registry that npm is configured for and stay in build/npm/NAME.
set -eu
name=$1
shift
here=$(cd "$(dirname "$0")/../$name" && pwd)
top=$(cd "$here/../../.." && pwd)
modules=$top/build/npm/$name
WORK=$(mktemp -d)
fake=

finish() {
	status=$?
	if [ -n "$fake" ]; then
		kill "$fake" 2>/dev/null || :
		wait "$fake" 2>/dev/null || :
	fi
	rm -rf "$WORK"
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
cp "$here"/*.mjs "$modules/"

cd "$top"
mkfifo "$WORK/ready"
/usr/bin/python3 -m "tests.fake.$name" --root "$WORK/root" >"$WORK/ready" &
fake=$!
read -r _ _ FAKE_URL <"$WORK/ready"
export FAKE_URL WORK
cd "$modules"
"$@"
