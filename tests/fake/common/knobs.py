# SPDX-License-Identifier: ISC
"""Fault knobs: rules that a test sets and that strike chosen requests.

A rule says which requests it means (method, path, sandbox), from which match on it strikes (nth, 1-based), how often
(count, 0 = for ever) and what happens (action). The first rule that strikes wins. README.md lists the actions.
"""
import re

MATCH_KEYS = {"method", "path", "sandbox", "query"}
ACTION_KEYS = {
    "error", "status", "headers", "body", "after",
    "drop", "how", "delay_ms", "answer_delay_ms", "request_bytes",
    "after_bytes", "after_events", "after_ms", "then", "kill_sandbox", "expire_sandbox",
    "frame", "end_stream", "no_end_event", "dribble_bytes", "dribble_ms", "coalesce",
    "close_code", "close_reason", "handshake", "ping_every",
}
VALUES = {"drop": {"before", "after"}, "how": {"reset", "fin", "end"}, "then": {"cut", "stall", "go on", "close"},
          "handshake": {"accept", "protocol", "extension"}}
FRAMES = {"compressed", "oversized", "garbage", "cut",                  # of envelopes and of WebSockets
          "fragmented", "masked", "opcode", "text", "long_length",      # of WebSockets
          "error", "blank", "null_exit"}                                # of lines of JSON


class KnobError(ValueError):
    """A rule that makes no sense: a misspelt test must not pass because its fault never happened."""


class Rule:
    """One knob."""

    def __init__(self, number, spec, errors, values):
        unknown = set(spec) - {"match", "nth", "count", "action"}
        match, action = spec.get("match", {}), spec.get("action", {})
        unknown |= (set(match) - MATCH_KEYS) | (set(action) - ACTION_KEYS - set(values))
        if unknown or not action:
            raise KnobError(f"unknown or missing keys: {sorted(unknown) or ['action']}")
        for key, allowed in {**VALUES, **values}.items():
            if key in action and action[key] not in allowed:
                raise KnobError(f"{key} must be one of {sorted(allowed)}")
        if "frame" in action and action["frame"].get("kind") not in FRAMES:
            raise KnobError(f"frame.kind must be one of {sorted(FRAMES)}")
        if action.get("error", None) not in (None, *errors):
            raise KnobError(f"error must be one of {sorted(errors)}")
        self.number = number
        self.match, self.action = match, {**errors.get(action.get("error"), {}), **action}
        self.path = re.compile(match.get("path", ""))
        self.nth, self.count = int(spec.get("nth", 1)), int(spec.get("count", 1))
        self.seen = self.struck = 0

    def means(self, entry):
        """Is this journal entry one of the requests the rule is about?"""
        return (self.match.get("method", entry["method"]) == entry["method"]
                and self.match.get("sandbox", entry["sandbox"]) == entry["sandbox"]
                and self.match.get("query", "") in entry["query"]
                and self.path.search(entry["path"]) is not None)

    def strikes(self, entry):
        if not self.means(entry):
            return False
        self.seen += 1
        if self.seen < self.nth or (self.count and self.struck >= self.count):
            return False
        self.struck += 1
        return True

    def show(self):
        return {"id": self.number, "match": self.match, "nth": self.nth, "count": self.count,
                "action": self.action, "seen": self.seen, "struck": self.struck}


class Knobs:
    """All rules of one fake.

    `errors` are the provider's named answers: {name: {"status", "body", "headers"}}; `values` the actions that only it
    has: {key: the values allowed}.
    """

    def __init__(self, errors, values):
        self.errors, self.values = errors, values
        self.rules = []
        self.last = 0

    def add(self, spec):
        self.last += 1
        rule = Rule(self.last, spec, self.errors, self.values)
        self.rules.append(rule)
        return rule

    def strike(self, entry):
        """The rule that strikes this request, or None. Every rule counts its matches, struck or not."""
        struck = [rule for rule in self.rules if rule.strikes(entry)][:1]
        return struck[0] if struck else None

    def clear(self):
        """Lift all rules, also from the connections they are about to strike."""
        for rule in self.rules:
            rule.action.clear()         # which the exchanges share
        self.rules.clear()
