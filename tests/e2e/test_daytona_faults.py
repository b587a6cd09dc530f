# SPDX-License-Identifier: ISC
"""Daytona misbehaves: what the client sees is the right result or one clear line, in time, and nothing is done twice."""

import itertools
import re
import time

import pytest
from clients import expect_line, ssh, ssh_start
from gateway import processes_with, wait_until

DRIVERS = ("daytona",)

LOGINS = {"sandbox": {"start_timeout": "6s", "max_instances": 1000, "kill_grace": "500ms"}}

pytestmark = pytest.mark.usefixtures("no_faults_left")

numbers = itertools.count()


# Getting a sandbox


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("unauthorized", r"daytona: create sandbox: 401: Invalid credentials"),
        ("cpu_quota", r"daytona: create sandbox: 400: Total CPU limit exceeded"),
        ("create_failed", r"daytona: create sandbox: 400: Sandbox failed to start: no runner"),
    ],
)
def test_a_refused_create_is_told_and_not_repeated(gateway, provider, login, error, line):
    provider.forget_requests()
    provider.fault("^/api/sandbox$", {"error": error}, count=0, method="POST")
    expect_line(ssh(gateway, "true", login=login), line)
    assert provider.count("POST", "/api/sandbox") == 1


def test_a_create_that_is_told_to_wait_waits(gateway, provider, login):
    """Daytona says so in a header with the name of what is exhausted."""
    provider.forget_requests()
    provider.fault("^/api/sandbox$", {"error": "create_rate_limited"}, method="POST")
    started = time.monotonic()
    assert ssh(gateway, "true", login=login).returncode == 0
    assert time.monotonic() - started >= 2
    assert provider.count("POST", "/api/sandbox") == 2


@pytest.mark.parametrize(
    "action",
    [
        {"drop": "after"},
        {"drop": "after", "how": "fin"},
        {"drop": "before"},
        {"error": "internal", "after": True},
        {"error": "empty"},
        {"error": "html_502", "after": True},
        {"after_bytes": 10},
    ],
)
def test_a_create_of_unknown_outcome_leaves_one_sandbox(gateway, provider, login, action):
    before = len(provider.sandboxes())
    provider.fault("^/api/sandbox$", action, method="POST")
    done = ssh(gateway, "echo here", login=login)
    assert (done.returncode, done.stdout) == (0, b"here\n"), done.stderr
    assert len(provider.sandboxes()) == before + 1


def test_a_wrong_api_url_is_told_as_such(gateway, provider, login):
    provider.fault("^/api/sandbox$", {"error": "html"}, method="GET", count=0)
    expect_line(ssh(gateway, "true", login=login), r"a web page answered: is api_url right\?")


@pytest.mark.parametrize("error", ["empty", "not_started", "no_container", "no_public_status"])
def test_a_toolbox_that_lags_behind_is_waited_for(gateway, provider, login, error):
    provider.fault("process/execute", {"error": error}, count=2)
    assert ssh(gateway, "true", login=login).returncode == 0


def test_a_daemon_that_is_not_there_is_given_up_in_time(gateway, provider, login):
    provider.expects_faults = False
    provider.config(daemon_down=True)
    started = time.monotonic()
    expect_line(ssh(gateway, "true", login=login), r"not started within 6 s: 502")
    assert time.monotonic() - started < 30


def test_a_change_under_way_is_waited_for(gateway, provider, warm):
    (sandbox,) = [s for s in provider.sandboxes() if s["labels"]["rws-instance"].endswith(warm)]
    provider.call("POST", f"sandboxes/{sandbox['id']}/expire")
    provider.fault("/start$", {"error": "in_progress"}, count=2)
    wait_until(lambda: ssh(gateway, "true", login=warm).returncode == 0, what="a start")


# Terminals


@pytest.mark.parametrize(
    "action",
    [
        {"drop": "before"},
        {"drop": "after"},
        {"error": "empty"},
        {"status": 500, "body": {"error": "failed to start PTY session"}},
    ],
)
def test_a_terminal_that_cannot_be_had_is_one_line(gateway, provider, login, action):
    provider.fault("process/pty$", action, method="POST", count=0)
    expect_line(ssh(gateway, "true", login=login), r"make a terminal: ")


@pytest.mark.parametrize("wrong", ["accept", "extension"])
def test_an_upgrade_that_is_none_is_one_line(gateway, provider, login, wrong):
    provider.fault("/connect$", {"handshake": wrong}, count=0)
    expect_line(ssh(gateway, "true", login=login), r"upgrade to a WebSocket is wrong")


@pytest.mark.parametrize(
    "action",
    [
        {"pty": "data_first"},
        {"pty": "no_connected"},
        {"pty": "tail_lost"},
        {"ping_every": 1},
        {"frame": {"n": 2, "kind": "fragmented"}},
        {"handshake": "protocol"},
        {"dribble_bytes": 7, "dribble_ms": 1},
    ],
)
def test_what_is_odd_but_allowed_changes_nothing(gateway, provider, login, action):
    provider.fault("/connect$", action, count=0)
    done = ssh(gateway, "seq 2000; echo err >&2; exit 6", login=login)
    assert done.returncode == 6
    assert done.stdout == b"".join(b"%d\n" % number for number in range(1, 2001))
    assert done.stderr == b"err\n"


@pytest.mark.parametrize(
    "action",
    [
        {"then": "cut"},
        {"then": "cut", "how": "fin"},
        {"then": "close", "close_code": 1008, "close_reason": "slow consumer"},
        {"then": "close", "close_code": 1011},
        {"then": "close", "close_code": 1006},
        {"frame": {"n": 20, "kind": "masked"}},
        {"frame": {"n": 20, "kind": "oversized"}},
    ],
)
def test_a_broken_terminal_is_an_unknown_end_and_the_command_is_killed(
    gateway, provider, login, action
):
    mark = f"31537{next(numbers):09}"
    if "then" in action:
        action = {**action, "after_bytes": 300000}
    provider.fault("/connect$", action, count=0)
    done = ssh(gateway, f"head -c 20000000 /dev/zero; exec sleep {mark}", login=login, timeout=60)
    assert done.returncode == 255
    assert re.search(rb"^rws: UNAVAILABLE: ", done.stderr, re.M), done.stderr
    assert len(done.stderr.splitlines()) == 1
    wait_until(lambda: not processes_with(mark), what="end of the command")
    provider.call("DELETE", "knobs")
    provider.expects_faults = False
    assert ssh(gateway, "echo on", login=login).stdout == b"on\n"


def test_a_reader_that_stops_loses_nothing(gateway, provider, warm):
    """Daytona drops a client of a terminal that is 256 pieces behind; ours is never so many behind."""
    provider.expects_faults = False
    client = ssh_start(gateway, "seq 3000000", login=warm)
    assert client.stdout.read(2) == b"1\n"
    size = len(b"".join(b"%d\n" % number for number in range(1, 3000001)))
    time.sleep(3)  # the network's buffers are full by then; a slow machine makes the test weaker, not wrong
    rest = client.stdout.read()
    assert client.wait() == 0
    assert len(rest) + 2 == size and rest.endswith(b"\n3000000\n")


def test_a_small_network_buffer_changes_nothing(gateway, provider, login):
    provider.expects_faults = False
    provider.config(pty_send_buffer=4096)
    done = ssh(gateway, "seq 300000; exit 2", login=login, timeout=120)
    assert done.returncode == 2
    assert done.stdout == b"".join(b"%d\n" % number for number in range(1, 300001))


# Files and scripts come with their own tests; signals are scripts


def test_a_signal_that_does_not_arrive_is_logged_and_the_next_one_does(gateway, provider, warm):
    provider.fault("process/execute", {"error": "empty"}, count=1)
    mark = f"31538{next(numbers):09}"
    client = ssh_start(gateway, f"echo ready; exec sleep {mark}", login=warm)
    assert client.stdout.readline() == b"ready\n"
    before = len(gateway.lines)
    client.kill()
    gateway.wait_log(r"was not delivered: 502", start=before)
    wait_until(lambda: not processes_with(mark), what="end of the command")
