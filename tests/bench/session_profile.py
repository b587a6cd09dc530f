# SPDX-License-Identifier: ISC
"""Where the session process spends its time while bytes go through exec, and on which system calls."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from servers import wait_until

TOP_OBJECTS = 6
TOP_FUNCTIONS = 25
SECONDS = 4


@contextlib.contextmanager
def flow(server, direction):
    """Bytes that go through exec until the block is left."""
    if direction == "output":
        command, source = "cat /dev/zero", subprocess.DEVNULL
    else:
        command, source = "cat >/dev/null", open("/dev/zero", "rb")
    client = subprocess.Popen(
        server.ssh(command),
        stdin=source,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield client
    finally:
        client.kill()
        client.wait()
        if direction == "input":
            source.close()


def session_of(server):
    """The session process that serves our one connection."""

    def find():
        found = server.gateway.pids("session", f"session {server.user}")
        return found[0] if len(found) == 1 else None

    pid = wait_until(find, what="a session")
    time.sleep(1)  # past the windows' growth
    return pid


def transferred(pid):
    """Bytes that the process has moved through pipes so far: the kernel counts no sockets here."""
    with open(f"/proc/{pid}/io", encoding="ascii") as counts:
        return sum(int(count) for count in re.findall(r"^[rw]char: (\d+)", counts.read(), re.M))


def report(data, columns):
    """perf's table of these columns, largest first."""
    text = subprocess.run(
        ["perf", "report", "-q", "--stdio", "--no-children", "-s", columns, "-i", data],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ).stdout.decode(errors="replace")
    return [line.rstrip(" -") for line in text.splitlines() if line.strip()]


def functions(server, direction):
    with tempfile.TemporaryDirectory() as directory, flow(server, direction):
        pid = session_of(server)
        data = f"{directory}/perf.data"
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "1000", "-o", data, "-p", str(pid)]
        subprocess.run(
            [*record, "--", "sleep", str(SECONDS)], check=True, stderr=subprocess.DEVNULL
        )
        return report(data, "dso")[:TOP_OBJECTS] + report(data, "dso,symbol")[:TOP_FUNCTIONS]


def system_calls(server, direction):
    """Calls by name, for each MiB that is moved (a traced process is slow, but its counts are right)."""
    with tempfile.NamedTemporaryFile("r") as output, flow(server, direction):
        pid = session_of(server)
        tracer = subprocess.Popen(["strace", "-q", "-c", "-o", output.name, "-p", str(pid)])
        before = transferred(pid)
        time.sleep(SECONDS)
        after = transferred(pid)
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        rows = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", output.read(), re.M)
    mebibytes = max(after - before, 1) / (1 << 20)
    return [
        f"{int(count) / mebibytes:10.1f} {name}"
        for count, name in sorted(rows, key=lambda row: -int(row[0]))
        if name != "total"
    ]


def profile(server):
    for direction in ("output", "input"):
        if shutil.which("perf"):
            print(f"exec {direction}: where the session spends its time (perf, cpu-clock)")
            print("\n".join(functions(server, direction)))
        else:
            print("perf is not installed: no profile of functions (package linux-perf)")
        if shutil.which("strace") and os.geteuid() == 0:
            print(f"exec {direction}: system calls of the session for each MiB moved (strace -c)")
            print("\n".join(system_calls(server, direction)))
        print(flush=True)
