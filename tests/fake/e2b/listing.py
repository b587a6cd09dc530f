# SPDX-License-Identifier: ISC
"""Lists of sandboxes: the metadata filter's encoding, states, pages and their tokens, the entries."""
import base64
import datetime
import re
from urllib.parse import unquote_plus

STATES = ("running", "paused")
MAX_LIMIT = 100
BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def iso(seconds):
    """RFC 3339 with microseconds."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def unescape(text):
    """Go's url.QueryUnescape, which refuses a broken escape."""
    if BAD_ESCAPE.search(text):
        raise ValueError(f"invalid URL escape in {text!r}")
    return unquote_plus(text)


def parse_metadata(text):
    """The filter, already decoded once as part of the query: unescaped whole, split, then each part unescaped again."""
    wanted = {}
    for pair in unescape(text).split("&"):
        parts = pair.split("=")
        if len(parts) != 2:
            raise ValueError("invalid key value pair in query")
        wanted[unescape(parts[0])] = unescape(parts[1])
    return wanted


def wanted_states(query):
    """The `state` parameter: one comma-joined value (a repeated one is accepted too)."""
    states = [state for value in query.getall("state", []) for state in value.split(",")] or list(STATES)
    for state in states:
        if state not in STATES:
            raise ValueError(f'validation error: parameter "state" in query has an error: value {state!r}')
    return states


class Page:
    """Which part of a list a request wants: limit, order and the place where the last page ended."""

    def __init__(self, query):
        self.order = query.get("order", "desc")
        if self.order not in ("asc", "desc"):
            raise ValueError(f"Invalid order parameter: {self.order}")
        text = query.get("limit", str(MAX_LIMIT))
        if not text.isdigit() or not 1 <= int(text) <= MAX_LIMIT:
            raise ValueError('validation error: parameter "limit" in query has an error: number must be at least 1 '
                             f"and at most {MAX_LIMIT}")
        self.limit = int(text)
        self.after = self._parse(query["nextToken"]) if query.get("nextToken") else None

    def _parse(self, token):
        try:
            parts = base64.urlsafe_b64decode(token).decode().split("__")
            order = "asc" if parts[2:] == ["asc"] else "desc"
            if len(parts) not in (2, 3) or order != self.order:
                raise ValueError
            return parts[0], parts[1]
        except ValueError:
            raise ValueError("Invalid next token") from None

    def cut(self, sandboxes):
        """The page's sandboxes and the token of the next page, or None."""
        sign = 1 if self.order == "asc" else -1
        ordered = sorted(sandboxes, key=lambda sandbox: (sandbox.created_at, sandbox.id), reverse=sign < 0)
        if self.after:
            mark = (self.after[0], self.after[1])
            ordered = [sandbox for sandbox in ordered
                       if ((iso(sandbox.created_at), sandbox.id) > mark) == (sign > 0)
                       and (iso(sandbox.created_at), sandbox.id) != mark]
        shown = ordered[:self.limit]
        return shown, self._token(shown[-1]) if len(ordered) > self.limit else None

    def _token(self, last):
        text = f"{iso(last.created_at)}__{last.id}" + ("__asc" if self.order == "asc" else "")
        return base64.urlsafe_b64encode(text.encode()).decode()


def entry(sandbox):
    """`ListedSandbox`. For a paused one endAt is when it was paused."""
    return {"templateID": sandbox.template, "alias": sandbox.template, "sandboxID": sandbox.id, "clientID": "6532622b",
            "startedAt": iso(sandbox.started_at), "endAt": iso(sandbox.end_at), "cpuCount": 2, "memoryMB": 512,
            "diskSizeMB": 8192, "metadata": sandbox.metadata, "state": sandbox.state,
            "envdVersion": sandbox.version}
