#!/bin/sh
# SPDX-License-Identifier: ISC
# The checks of layers.sh and rules.sh find what they are for: each line below is a violation, planted
# in a tree of its own.
set -eu

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# expect SCRIPT FILE LINE: SCRIPT refuses a tree whose FILE holds LINE.
expect() {
	rm -rf "$tree/core" "$tree/conf" "$tree/keys" "$tree/drivers" "$tree/gateway"
	mkdir -p "$tree/core/base" "$tree/conf" "$tree/keys" "$tree/drivers" "$tree/gateway"
	for floor in core/base core conf keys drivers gateway; do
		echo '/* SPDX-License-Identifier: ISC */' >"$tree/$floor/clean.c"
	done
	sh "$1" "$tree" >/dev/null || {
		echo "$1 refuses a clean tree"
		failed=1
	}
	printf '/* SPDX-License-Identifier: ISC */\n%s\n' "$3" >"$tree/$2"
	if sh "$1" "$tree" >/dev/null; then
		echo "$1 lets pass: $2: $3"
		failed=1
	fi
}

expect tests/layers.sh core/base/a.c '#include "core/driver.h"'
expect tests/layers.sh core/a.c '#include "conf/conf.h"'
expect tests/layers.sh drivers/a.c '#include "keys/decision.h"'
expect tests/layers.sh keys/a.c '#include "gateway/session.h"'
expect tests/layers.sh gateway/a.c '#include "session.h"'
expect tests/layers.sh core/a.c '#include <libssh/libssh.h>'
expect tests/layers.sh drivers/e2b.c '#include <curl/curl.h>'
expect tests/layers.sh gateway/a.c '# include <archive.h>'
expect tests/layers.sh conf/a.c '#include <openssl/evp.h>'
expect tests/layers.sh core/a.c '#include <sqlite3.h>'

expect tests/lint/rules.sh core/a.c '	strcpy(a, b);'
expect tests/lint/rules.sh core/a.c '	if (system (command) != 0)'
expect tests/lint/rules.sh core/a.c 'typedef struct x x;'
expect tests/lint/rules.sh core/a.c 'handle_message(void)'
expect tests/lint/rules.sh core/util.c '/* A file. */'
expect tests/lint/rules.sh core/a.c 'int x; '
expect tests/lint/rules.sh core/a.c "/* TO""DO */"
expect tests/lint/rules.sh core/a.c "$(seq 600)"
exit $failed
