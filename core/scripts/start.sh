#!/bin/sh
# SPDX-License-Identifier: ISC
# The start check: is there what a workspace needs, and where is its root?
#
# Arguments: the root (absolute), and "create" or "find": make it when it is missing?
# Output, a line each:
#	missing NAMES   commands that the image lacks
#	problem TEXT    why the root cannot be used
#	root PATH       the root with every symlink resolved
#	shell PATH      the login shell: $SHELL, else bash, else sh
# Exit status: 0 when the check itself worked, whatever it found.
set -eu

missing=
for name in base64 cat chmod cp cut head ln ls mkdir mktemp mv od readlink realpath rm rmdir sort \
    stat tail tee touch tr wc find tar setsid; do
	command -v "$name" >/dev/null 2>&1 || missing="$missing $name"
done
# Other programs of that name cannot wait for what they start.
setsid -f -w true 2>/dev/null || missing="$missing util-linux-setsid"
if [ -n "$missing" ]; then
	printf 'missing%s\n' "$missing"
	exit 0
fi

if [ "$2" = create ] && [ ! -d "$1" ]; then
	mkdir -p -- "$1" 2>/dev/null || true
fi
if [ ! -d "$1" ]; then
	printf 'problem the root %s is not a directory\n' "$1"
	exit 0
fi
printf 'root %s\n' "$(realpath -- "$1")"

for shell in "${SHELL:-}" bash sh; do
	if [ -n "$shell" ] && path=$(command -v "$shell" 2>/dev/null); then
		printf 'shell %s\n' "$path"
		break
	fi
done
