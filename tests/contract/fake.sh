#!/bin/sh
# SPDX-License-Identifier: ISC
# fake.sh PROVIDER CONTRACT [ARGUMENT...]: runs the driver contract test against a fake of the provider of its own.
set -eu
provider=$1
contract=$2
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
vercel) set -- "$@" vercel token=tok_test team_id=team_test project_id=prj_test "api_url=$url/api" ;;
daytona) set -- "$@" daytona api_key=dtn_test "api_url=$url/api" ;;
esac
"$contract" "$@"
