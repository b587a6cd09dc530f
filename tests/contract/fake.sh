#!/bin/sh
# SPDX-License-Identifier: ISC
# fake.sh CONTRACT PROVIDER [ARGUMENT...]: runs the driver contract test against a fake of a provider's own.
set -eu
contract=$1
provider=$2
shift 2
directory=$(mktemp -d "${TMPDIR:-/tmp}/contract-$provider-XXXXXX")
mkfifo "$directory/said"
# It ends when its standard input does, which is this script's end of a pipe.
mkfifo "$directory/life"
/usr/bin/python3 -m "tests.fake.$provider" --root "$directory" <"$directory/life" >"$directory/said" &
fake=$!
exec 9>"$directory/life"
trap 'exec 9>&-; wait "$fake" || true; rm -rf "$directory"' EXIT
read -r line <"$directory/said"
url=${line##* }
case $provider in
e2b) set -- "$@" e2b api_key=e2b_test "api_url=$url" "sandbox_url=$url" ;;
daytona) set -- "$@" daytona api_key=dtn_test "api_url=$url/api" ;;
vercel) set -- "$@" vercel token=tok_test team_id=team_test project_id=prj_test "api_url=$url/api" ;;
esac
"$contract" "$@"
