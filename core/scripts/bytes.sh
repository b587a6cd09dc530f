#!/bin/sh
# SPDX-License-Identifier: ISC
# Runs a command whose arguments are not text, for providers that take nothing but UTF-8: each
# argument comes in base64. Nothing is evaluated; the last dot keeps newlines at the end of an
# argument.
#
# Arguments: the words of the command, each in base64; "env NAME=VALUE" is a way to give it
# variables.
# Exit status: that of the command.
set -eu

count=$#
while [ "$count" -gt 0 ]; do
	word=$(printf %s "$1" | base64 -d && printf .)
	shift
	set -- "$@" "${word%.}"
	count=$((count - 1))
done
exec "$@"
