# SPDX-License-Identifier: ISC
"""Many connections: what an idle one costs, and whether a thousand of them are in the way."""

import os
import pathlib
import subprocess
import tempfile
import time

from measure import MIB, make_row, timed
from servers import wait_until

KIB_A_MIB = 1024
REST = 2  # s after which a connection counts as idle again


def memory(pids):
    """
    Memory of the processes together, in KiB: private dirty, then with the share of each in what is
    dirty and shared (sshd forks, and its halves share pages that private dirty leaves out), then all.
    """
    total = [0, 0, 0]
    for pid in pids:
        try:
            lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        values = {line.split()[0]: int(line.split()[1]) for line in lines[1:]}
        for i, name in enumerate(("Private_Dirty:", "Pss_Dirty:", "Pss:")):
            total[i] += values.get(name, 0)
    return total


class Idle:
    """So many authenticated connections that do nothing."""

    def __init__(self, bench, server, count):
        command = [bench.tools["load"], str(server.port), server.user, str(server.key), "idle"]
        self.process = subprocess.Popen(
            [*command, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        words = self.process.stdout.readline().split()
        self.failed = int(words[2]) if len(words) == 3 else count

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def idle_memory(bench):
    """What all processes of a server grow by, for each connection; the first one's worker included."""
    count = bench.pick(50, 20)
    found = {}
    for server in bench.servers:
        before = memory(server.pids())
        with Idle(bench, server, count):
            after = memory(server.pids())
        found[server.name] = [(b - a) / count / KIB_A_MIB for a, b in zip(before, after)]
    ours, theirs = (found[server.name] for server in bench.servers)
    title = f"idle connection (each of {count})"
    for i, (what, target) in enumerate(
        (
            ("private dirty", ("<=", 1.0, "MiB")),
            ("dirty, what is shared by share", None),
            ("all, what is shared by share", None),
        )
    ):
        bench.add(make_row(f"{title}: {what}", "MiB", target, [ours[i]], [theirs[i]]))


def memory_after_use(bench):
    """The same of one connection that was busy and is idle again: what a shell left open costs."""
    size = bench.pick(256, 64) * MIB
    found = {}
    for server in bench.servers:
        before = memory(server.pids())
        with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile() as source:
            source.truncate(size)
            shared = [*server.client_options(), "-o", f"ControlPath={directory}/control"]
            master = subprocess.Popen(["ssh", "-M", "-N", *shared, server.host])
            wait_until(lambda: os.path.exists(f"{directory}/control"), what="the control socket")
            busy = ["ssh", *shared, server.host]
            timed([*busy, f"head -c {size} /dev/zero"], stdout=subprocess.DEVNULL)
            timed([*busy, "sleep 1; cat >/dev/null"], stdin=source)
            time.sleep(REST)
            after = memory(server.pids())
            master.terminate()
            master.wait()
        found[server.name] = [(b - a) / KIB_A_MIB for a, b in zip(before, after)]
    ours, theirs = (found[server.name] for server in bench.servers)
    title = "idle connection that was busy: private dirty"
    bench.add(make_row(title, "MiB", None, [ours[0]], [theirs[0]]))
    bench.add(make_row(f"{title}, shared by share", "MiB", None, [ours[1]], [theirs[1]]))


def rush(bench, server, rate, seconds):
    """Connections at a steady rate; returns how many failed and the times that load tells of."""
    command = [bench.tools["load"], str(server.port), server.user, str(server.key), "rate"]
    result = subprocess.run(
        [*command, str(rate), str(seconds)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=300,
        check=True,
    )
    words = result.stdout.split()
    return int(words[2]), [float(word) for word in words[3:]]


def crowd(bench):
    count, rate, seconds = bench.pick((1000, 200, 10), (50, 50, 3))
    failed, median, worst = {}, {}, {}
    for server in bench.servers:
        with Idle(bench, server, count) as idle:
            lost, times = rush(bench, server, rate, seconds)
            failed[server.name] = idle.failed + lost
            median[server.name], worst[server.name] = times[0], times[1]
    ours, theirs = bench.ours.name, bench.theirs.name
    title = f"{count} idle, then {rate}/s for {seconds} s"
    for what, unit, found, target in (
        ("failed", "", failed, ("<=", 0, "")),
        ("median to log in", "ms", median, None),
        ("99th percentile", "ms", worst, None),
    ):
        bench.add(make_row(f"{title}: {what}", unit, target, [found[ours]], [found[theirs]]))


ROWS = (idle_memory, memory_after_use, crowd)
