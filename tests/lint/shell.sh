#!/bin/sh
# SPDX-License-Identifier: ISC
# Reads every shell script; those that run in sandboxes must please dash and busybox too.
set -eu
scripts=$(find .ci core conf keys drivers gateway tests docker -type f -exec \
	awk 'FNR == 1 && /^#!.*\/(ba|da)?sh$/ { print FILENAME } FNR == 1 { nextfile }' {} + 2>/dev/null || true)
# shellcheck disable=SC2086 # a list of words
shellcheck $scripts
for script in core/scripts/*.sh; do
	[ -e "$script" ] || continue
	shellcheck -s sh "$script"
	dash -n "$script"
	busybox sh -n "$script"
done
