#!/bin/sh
# SPDX-License-Identifier: ISC
# run.sh SECONDS [TARGET...]: looks for new inputs with each fuzz target (all of them by default), two
# at a time. What it learns stays in build/fuzz/corpus; an input that fails is kept in
# build/fuzz/crash-TARGET-* and belongs, once understood, into tests/fuzz/corpus.
set -eu

seconds=$1
shift
if [ $# -eq 0 ]; then
	for source in tests/fuzz/fuzz_*.c; do
		source=${source##*/fuzz_}
		set -- "$@" "${source%.c}"
	done
fi

export ASAN_OPTIONS=detect_leaks=1
# shellcheck disable=SC2016 # the inner shell expands them
printf '%s\n' "$@" | xargs -P 2 -I TARGET sh -c '
	target=$1 seconds=$2
	mkdir -p "build/fuzz/corpus/$target"
	log=build/fuzz/$target.log
	if "build/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -close_fd_mask=2 \
	    -artifact_prefix="build/fuzz/crash-$target-" "build/fuzz/corpus/$target" \
	    "tests/fuzz/corpus/$target" >"$log" 2>&1; then
		echo "$target: $(tail -n 1 "$log")"
	else
		tail -n 60 "$log"
		echo "$target: FAILED, see $log"
		exit 1
	fi' fuzz TARGET "$seconds"
