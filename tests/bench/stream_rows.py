# SPDX-License-Identifier: ISC
"""Connecting, and bytes through exec: near, and through a line of 50 ms."""

import os
import subprocess
import tempfile

from measure import MIB, timed
from servers import CIPHER, LongLine, wait_until

CHACHA = "chacha20-poly1305@openssh.com"
SHORT = {CIPHER: "aes128-gcm", CHACHA: "chacha20"}
ROUND_TRIP = 50  # ms


def connect(bench):
    """The whole life of an ssh, the client's own start included."""
    bench.compare(
        "connect, authenticate, exec true",
        "ms",
        ("<=", 0.5, "x"),
        bench.pick(100, 15),
        lambda server: timed(server.ssh("true")) * 1000,
    )


def download(server, size, cipher, port=None):
    command = server.ssh(f"head -c {size} /dev/zero", port, cipher)
    return size / MIB / timed(command, stdout=subprocess.DEVNULL)


def upload(server, size, cipher, source, port=None):
    """Input comes from a file of zeroes: a pipe would be one process more on few cores."""
    source.truncate(size)
    source.seek(0)
    return size / MIB / timed(server.ssh("cat >/dev/null", port, cipher), stdin=source)


def throughput(bench):
    size = bench.pick(1024, 192) * MIB
    rounds = bench.pick(4, 2)
    with tempfile.TemporaryFile() as source:
        for cipher in (CIPHER, CHACHA):
            bench.compare(
                f"exec output, {SHORT[cipher]}",
                "MiB/s",
                (">=", 1.3, "x"),
                rounds,
                lambda server, cipher=cipher: download(server, size, cipher),
            )
            bench.compare(
                f"exec input, {SHORT[cipher]}",
                "MiB/s",
                (">=", 1.2, "x"),
                rounds,
                lambda server, cipher=cipher: upload(server, size, cipher, source),
            )


def cost(bench):
    """
    Processor time of all processes of a server, the command's included: what a busy machine blurs in
    the rows of speed shows here. It is counted once no connection is left.
    """
    size = bench.pick(1024, 256) * MIB
    rounds = bench.pick(4, 2)
    connections = bench.pick(50, 20)

    def spent(server, work):
        started = server.cpu_seconds()
        work()
        wait_until(lambda: server.connections() == 0, what="the end of the connections")
        return (server.cpu_seconds() - started) * 1000

    def connecting(server):
        command = server.ssh("true")
        return spent(server, lambda: [timed(command) for _ in range(connections)]) / connections

    with tempfile.TemporaryFile() as source:
        bench.compare("server's CPU for a connection", "ms", None, rounds, connecting)
        bench.compare(
            "server's CPU for exec output",
            "ms/MiB",
            None,
            rounds,
            lambda server: spent(server, lambda: download(server, size, CIPHER)) * MIB / size,
        )
        bench.compare(
            "server's CPU for exec input",
            "ms/MiB",
            None,
            rounds,
            lambda server: spent(server, lambda: upload(server, size, CIPHER, source)) * MIB / size,
        )


def far_away(bench):
    size = bench.pick(384, 64) * MIB
    rounds = bench.pick(3, 1)
    with (
        LongLine(bench.tools["delay"], bench.ours, ROUND_TRIP) as near,
        LongLine(bench.tools["delay"], bench.theirs, ROUND_TRIP) as other,
        tempfile.TemporaryFile() as source,
    ):
        ports = {bench.ours.name: near.port, bench.theirs.name: other.port}
        bench.compare(
            f"exec true, {ROUND_TRIP} ms round trip",
            "ms",
            None,
            bench.pick(10, 3),
            lambda server: timed(server.ssh("true", ports[server.name])) * 1000,
        )
        bench.compare(
            f"exec output, {SHORT[CIPHER]}, {ROUND_TRIP} ms round trip",
            "MiB/s",
            (">=", 1.0, "x"),
            rounds,
            lambda server: download(server, size, CIPHER, ports[server.name]),
        )
        bench.compare(
            f"exec input, {SHORT[CIPHER]}, {ROUND_TRIP} ms round trip",
            "MiB/s",
            (">=", 1.5, "x"),
            rounds,
            lambda server: upload(server, size, CIPHER, source, ports[server.name]),
        )


def parallel(bench):
    """Ten at once: how the servers share the machine among connections."""
    size = bench.pick(128, 16) * MIB
    count = 10

    def sample(server):
        command = server.ssh(f"head -c {size} /dev/zero")
        started = os.times().elapsed
        running = [
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            for _ in range(count)
        ]
        failed = [process for process in running if process.wait() != 0]
        if failed:
            raise subprocess.SubprocessError(f"{len(failed)} of {count} connections failed")
        return count * size / MIB / (os.times().elapsed - started)

    bench.compare(
        f"exec output, {SHORT[CIPHER]}, {count} at once", "MiB/s", None, bench.pick(2, 1), sample
    )


ROWS = (connect, throughput, cost, parallel, far_away)
