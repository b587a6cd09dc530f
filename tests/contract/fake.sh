#!/bin/sh
# SPDX-License-Identifier: ISC
# e2b.sh CONTRACT [ARGUMENT...]: runs the driver contract test against a fake E2B of its own.
set -eu
contract=$1
shift
directory=$(mktemp -d "${TMPDIR:-/tmp}/contract-e2b-XXXXXX")
mkfifo "$directory/said"
# It ends when its standard input does, which is this script's end of a pipe.
mkfifo "$directory/life"
/usr/bin/python3 -m tests.fake.e2b --root "$directory" <"$directory/life" >"$directory/said" &
fake=$!
exec 9>"$directory/life"
trap 'exec 9>&-; wait "$fake" || true; rm -rf "$directory"' EXIT
read -r line <"$directory/said"
url=${line##* }
"$contract" "$@" e2b api_key=e2b_test "api_url=$url" "sandbox_url=$url"
