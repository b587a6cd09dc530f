#!/bin/sh
# SPDX-License-Identifier: ISC
# Writes C source that holds the scripts named as arguments, for core/scripts.c: bytes rather than
# text, which has length limits, and without comments, as they are sent over the line each time.
set -eu

printf '/* Made by core/embed.sh. */\n#include "core/scripts_embedded.h"\n'
for file in "$@"; do
	name=$(basename "$file" .sh | tr '-' '_')
	printf '\nstatic const unsigned char %s[] = {\n' "$name"
	sed -e '/^[[:space:]]*#/d' -e '/^$/d' "$file" | od -An -v -tx1 | sed -e 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
	printf '};\n'
done
printf '\nconst struct embedded_script embedded_scripts[] = {\n'
for file in "$@"; do
	name=$(basename "$file" .sh | tr '-' '_')
	printf '\t{ "%s", %s, sizeof(%s) },\n' "$name" "$name" "$name"
done
printf '\t{ 0, 0, 0 },\n};\n'
