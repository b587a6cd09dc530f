# SPDX-License-Identifier: ISC
"""Rows of the table: measured in turns, medians with their spread, printed and kept as JSON."""

import os
import pathlib
import statistics
import subprocess
import time

BUILD = pathlib.Path(os.environ.get("RWSD_BUILD", "build"))
MIB = 1 << 20
HEADINGS = ("what", "ours", "sshd", "ratio", "target", "reached")


class Bench:
    """One run: the servers, how long it may take, and the rows so far."""

    def __init__(self, ours, theirs, tools, quick):
        self.ours = ours
        self.theirs = theirs
        self.tools = tools
        self.quick = quick
        self.rows = []

    @property
    def servers(self):
        return (self.ours, self.theirs)

    def pick(self, full, quick):
        return quick if self.quick else full

    def add(self, row):
        self.rows.append(row)
        print(format_row(row), flush=True)

    def compare(self, what, unit, target, rounds, sample):
        """
        Takes samples in turns (ours, theirs, ours, ...), so that both meet the same noise, and adds
        the row. sample(server) returns a number; of units that are times, less is better.
        """
        found = {"ours": [], "theirs": []}
        problem = None
        for _ in range(rounds):
            for side, server in (("ours", self.ours), ("theirs", self.theirs)):
                try:
                    found[side].append(sample(server))
                except (subprocess.SubprocessError, OSError) as error:
                    problem = f"{server.name}: {describe(error)}"
            if problem is not None:
                break
        self.add(make_row(what, unit, target, found["ours"], found["theirs"], problem))

    def missing(self, what, target, why):
        self.add({"what": what, "target": target, "note": why, "reached": None})


def describe(error):
    """One line about a command that failed, without its arguments."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"{error.cmd[0]} ended with {error.returncode}"
    return str(error)


def summary(samples):
    """Median and the range that the middle half of the samples lies in."""
    if not samples:
        return None
    low, high = min(samples), max(samples)
    if len(samples) >= 4:
        low, _, high = statistics.quantiles(samples, n=4)
    return {"median": statistics.median(samples), "low": low, "high": high, "samples": samples}


def make_row(what, unit, target, ours, theirs, problem=None):
    """target: ("<=" or ">=", number, "x" for a ratio to theirs or the unit for an amount of ours)."""
    row = {"what": what, "unit": unit, "target": target, "note": problem, "reached": None}
    row["ours"], row["theirs"] = summary(ours), summary(theirs)
    if ours and theirs and row["theirs"]["median"]:
        row["ratio"] = row["ours"]["median"] / row["theirs"]["median"]
    if problem is not None:
        row["reached"] = False
    elif target is not None:
        relation, bound, kind = target
        value = row.get("ratio") if kind == "x" else row["ours"]["median"]
        if value is not None:
            row["reached"] = value <= bound if relation == "<=" else value >= bound
    return row


def format_number(value):
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def format_summary(found, unit):
    if found is None:
        return "-"
    text = format_number(found["median"])
    if found["low"] != found["high"]:
        text += f" ({format_number(found['low'])}-{format_number(found['high'])})"
    return f"{text} {unit}"


def format_row(row):
    target = row["target"]
    cells = [
        row["what"],
        format_summary(row.get("ours"), row.get("unit", "")),
        format_summary(row.get("theirs"), row.get("unit", "")),
        f"{row['ratio']:.2f}" if "ratio" in row else "-",
        "-" if target is None else f"{target[0]} {target[1]:g} {target[2]}",
        {True: "yes", False: "NO", None: "-"}[row["reached"]],
    ]
    line = format_cells(cells)
    return f"{line}\n    {row['note']}" if row.get("note") else line


def format_cells(cells):
    widths = (52, 24, 24, 6, 12, 7)
    return "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths)).rstrip()


def timed(command, **arguments):
    """Runs a command to its end; returns the seconds it took."""
    arguments.setdefault("stdin", subprocess.DEVNULL)
    started = time.monotonic()
    subprocess.run(command, check=True, timeout=300, **arguments)
    return time.monotonic() - started


def succeeds(command):
    result = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    return result.returncode == 0
