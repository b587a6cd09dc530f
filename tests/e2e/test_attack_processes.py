# SPDX-License-Identifier: ISC
"""Whatever dies, and whatever runs out, the listener stays and the next connection works."""

import contextlib
import os
import random
import resource
import signal
import socket
import subprocess

import pytest
from clients import TIMEOUT, ssh, ssh_start
from gateway import children, processes, wait_until

MARK = "sleep 86399"


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_an_auth_process_that_is_killed_again_and_again_ends_nothing(make_gateway):
    """The second death within two seconds was the end of the listener."""
    gateway = make_gateway()
    with ssh_start(gateway, "echo there; cat") as client:
        assert client.stdout.readline() == b"there\n"
        for _ in range(3):
            (auth,) = wait_until(lambda: gateway.pids("auth"), what="an auth process")
            kill([auth])
            wait_until(lambda pid=auth: pid not in gateway.pids("auth"), what="its end")
        # Its key is asked about while there is nobody to ask.
        assert ssh(gateway, "echo well").stdout == b"well\n"
        client.stdin.write(b"still\n")
        client.stdin.close()
        assert client.stdout.read() == b"still\n"


def test_a_listener_without_descriptors_waits_in_peace_and_recovers(make_gateway):
    """It tried again at once, with a line of the log each time."""
    gateway = make_gateway()
    listener = gateway.process.pid
    limits = resource.prlimit(listener, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{listener}/fd"))
    start = gateway.log_length()
    resource.prlimit(listener, resource.RLIMIT_NOFILE, (used, limits[1]))
    with socket.create_connection(("127.0.0.1", gateway.port), TIMEOUT) as connection:
        for _ in range(3):
            gateway.wait_log("accept: Too many open files", start=start)
            start = gateway.log_length()
        assert gateway.log_length() < 20
        resource.prlimit(listener, resource.RLIMIT_NOFILE, limits)
        assert connection.recv(4) == b"SSH-"
    assert ssh(gateway, "echo well").stdout == b"well\n"


def victims(gateway, kind):
    """The processes below the listener of one kind."""
    lines = processes()
    below = {pid: lines.get(pid, "") for pid in children(gateway.process.pid)}
    patterns = {"init": " serve ", "bubblewrap": "/bwrap ", "command": MARK}
    return [pid for pid, line in below.items() if patterns.get(kind, f"rwsd: {kind}") in line]


@pytest.mark.parametrize("kind", ["auth", "session", "worker", "bubblewrap", "init", "command"])
def test_nothing_is_left_of_what_was_killed_and_the_next_connection_works(make_gateway, kind):
    gateway = make_gateway()
    with ssh_start(gateway, f"(trap '' HUP TERM; {MARK}) & {MARK} & echo started; wait") as client:
        assert client.stdout.readline() == b"started\n"
        kill(victims(gateway, kind))
        if kind != "auth":
            client.wait(TIMEOUT)
        else:
            client.kill()
    wait_until(lambda: not victims(gateway, "command"), what="the end of the commands")
    wait_until(lambda: ssh(gateway, "echo well").stdout == b"well\n", what="a command that works")
    assert gateway.process.poll() is None


@pytest.mark.stress
def test_random_deaths_leave_nothing(make_gateway):
    gateway = make_gateway()
    mounts = len(open("/proc/self/mounts", encoding="utf-8").readlines())
    for _ in range(200):
        with ssh_start(gateway, f"{MARK} & echo started; wait") as client:
            # At any moment: while it logs in, while the sandbox starts, while it runs.
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.wait(random.random() / 4)
            kill(random.sample(children(gateway.process.pid), 1))
            client.kill()
        assert gateway.process.poll() is None
        wait_until(lambda: ssh(gateway, "echo well").stdout == b"well\n", what="a command that works")
    wait_until(lambda: not victims(gateway, "command"), what="the end of the commands")
    assert len(open("/proc/self/mounts", encoding="utf-8").readlines()) == mounts
