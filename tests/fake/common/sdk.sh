# SPDX-License-Identifier: ISC
# For the sdk_test.sh of a fake, which sets $here to its own directory and sources this: installs what package-lock.json
# there pins, copies the tests beside it and starts a fresh fake. Sets $url (of the fake), $work (a directory that goes at
# the end) and stays in the directory with the modules. Packages come from the registry that npm is configured for.
name=$(basename "$here")
top=$(cd "$here/../../.." && pwd)
modules=$top/build/npm/$name
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
cp "$here"/*.mjs "$modules/"

cd "$top"
mkfifo "$work/ready"
/usr/bin/python3 -m "tests.fake.$name" --root "$work/root" >"$work/ready" &
fake=$!
read -r _ _ url <"$work/ready"
cd "$modules"
