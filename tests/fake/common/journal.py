# SPDX-License-Identifier: ISC
"""The request log and counter of a fake: what was asked, in order, so that a test can count trips and read bodies."""
import re
import time
from collections import Counter

BODY_LIMIT = 4096


class Journal:
    """Every request but those to /_fake/. `id_pattern` is what a sandbox id looks like in a path."""

    def __init__(self, id_pattern):
        self.id_pattern = re.compile(id_pattern)
        self.entries = []

    def add(self, request, sandbox):
        entry = {
            "n": len(self.entries) + 1, "time": time.time(), "method": request.method, "path": request.path,
            "route": self.id_pattern.sub("{id}", request.path), "query": request.query_string, "sandbox": sandbox,
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "body": "", "bytes_in": 0, "bytes_out": 0, "status": None, "ended": None, "knob": None,
        }
        self.entries.append(entry)
        return entry

    def select(self, method=None, path=None, sandbox=None):
        """Entries by method, path (a regular expression) and sandbox id; None means any."""
        return [entry for entry in self.entries
                if method in (None, entry["method"]) and sandbox in (None, entry["sandbox"])
                and (path is None or re.search(path, entry["path"]))]

    def report(self, **selection):
        """The answer to GET /_fake/requests."""
        entries = self.select(**selection)
        counts, by_sandbox = Counter(), {}
        for entry in entries:
            name = f'{entry["method"]} {entry["route"]}'
            counts[name] += 1
            by_sandbox.setdefault(entry["sandbox"] or "-", Counter())[name] += 1
        return {"total": len(entries), "counts": counts, "by_sandbox": by_sandbox, "requests": entries}

    def clear(self):
        self.entries.clear()


def note_body(entry, data):
    """Count request bytes and keep the first few, as text, for tests that look at them."""
    entry["bytes_in"] += len(data)
    room = BODY_LIMIT - len(entry["body"])
    if room > 0:
        entry["body"] += bytes(data[:room]).decode("utf-8", "replace")
