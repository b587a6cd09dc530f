# SPDX-License-Identifier: ISC
"""E2B misbehaves: what the client sees is the right result or one clear line, in time, and nothing is done twice."""

import hashlib
import itertools
import os
import time

import pytest
from clients import TIMEOUT, expect_line, ssh, ssh_start
from gateway import processes_with, wait_until

DRIVERS = ("e2b",)

# s; what is silent for so long is given up
PATIENCE = 4

LOGINS = {"sandbox": {"request_timeout": f"{PATIENCE}s", "max_instances": 1000}}

pytestmark = pytest.mark.usefixtures("no_faults_left")

numbers = itertools.count()


def commands(provider):
    """How many commands of clients were started, what the gateway runs for itself aside."""
    return len([
        request for request in provider.requests()
        if request["path"].endswith("/Start") and "rws-leader" in request["body"]
    ])


# Getting a sandbox


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("unauthorized", r"e2b: create sandbox: 401: unauthorized access"),
        ("too_many_sandboxes", r"e2b: create sandbox: 429: you have reached the maximum number"),
    ],
)
def test_a_refused_create_is_told_and_not_repeated(gateway, provider, login, error, line):
    provider.forget_requests()
    provider.fault("^/sandboxes$", {"error": error}, count=0)
    expect_line(ssh(gateway, "true", login=login), line)
    assert provider.count("POST", "/sandboxes") == 1


def test_a_create_that_is_told_to_wait_waits(gateway, provider, login):
    provider.forget_requests()
    provider.fault("^/sandboxes$", {"error": "rate_limited"}, method="POST")
    started = time.monotonic()
    assert ssh(gateway, "true", login=login).returncode == 0
    assert time.monotonic() - started >= 1
    assert provider.count("POST", "/sandboxes") == 2


@pytest.mark.parametrize(
    "action",
    [
        {"drop": "after"},
        {"drop": "after", "how": "fin"},
        {"drop": "before"},
        {"error": "internal", "after": True},
        {"error": "html"},
        {"error": "empty"},
        {"error": "no_capacity"},
        {"error": "placement_timeout", "after": True},
        {"after_bytes": 10},
    ],
)
def test_a_create_of_unknown_outcome_leaves_one_sandbox(gateway, provider, login, action):
    before = len(provider.sandboxes())
    provider.fault("^/sandboxes$", action, method="POST")
    done = ssh(gateway, "echo here", login=login)
    assert (done.returncode, done.stdout) == (0, b"here\n"), done.stderr
    assert len(provider.sandboxes()) == before + 1


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ({"error": "html"}, r"list sandboxes: 502: 502 Server Error"),
        ({"error": "empty"}, r"list sandboxes: 502: bad gateway"),
        ({"error": "route_failed"}, r"list sandboxes: 502: Failed to route request to sandbox"),
        ({"status": 200, "body": "no json"}, r"the list of sandboxes is malformed"),
        ({"status": 200, "body": {"a": 1}}, r"the list of sandboxes is malformed"),
        ({"then": "stall", "after_bytes": 0}, r"list sandboxes: no answer within 4 s"),
    ],
)
def test_a_list_that_cannot_be_had_is_one_line(gateway, provider, login, action, line):
    before = len(provider.sandboxes())
    provider.fault("^/v2/sandboxes$", action, method="GET", count=0)
    expect_line(ssh(gateway, "true", login=login), line)
    assert len(provider.sandboxes()) == before


def test_a_list_that_fails_once_is_asked_for_again(gateway, provider, login):
    provider.fault("^/v2/sandboxes$", {"drop": "after"}, method="GET")
    assert ssh(gateway, "true", login=login).returncode == 0


def test_an_old_envd_is_refused_in_words_and_not_left_behind(gateway, provider, login):
    provider.expects_faults = False
    before = len(provider.sandboxes())
    provider.config(envd_version="0.5.1")
    expect_line(ssh(gateway, "true", login=login), r"envd 0\.5\.1 .* cannot end a command's input")
    wait_until(lambda: len(provider.sandboxes()) == before, what="end of the useless sandbox")


def test_a_sandbox_whose_envd_answers_late_is_waited_for(gateway, provider, login):
    provider.fault("Process/Start", {"error": "port_closed"}, count=2)
    assert ssh(gateway, "true", login=login).returncode == 0


# Starting commands


def test_a_start_whose_answer_is_lost_is_not_repeated_and_is_undone(gateway, provider, warm):
    provider.fault("Process/Start", {"drop": "after"})
    mark = f"31536{next(numbers):09}"
    expect_line(ssh(gateway, f"sleep {mark}", login=warm), r"start command: the connection broke")
    assert commands(provider) == 1
    wait_until(lambda: not processes_with(mark), what="end of the command")
    assert ssh(gateway, "echo on", login=warm).stdout == b"on\n"


@pytest.mark.parametrize("action", [{"drop": "after"}, {"after_events": 1}, {"status": 502, "after": True}])
def test_a_start_that_may_have_worked_is_not_repeated_in_the_next_sandbox(gateway, provider, warm, action):
    """Only who is told that nothing ran may run it again, though the sandbox is gone with what it did."""
    provider.fault("Process/Start", {**action, "kill_sandbox": True}, count=0)
    expect_line(ssh(gateway, "echo lost", login=warm), "UNAVAILABLE: ")
    assert provider.count("POST", "/v2/sandboxes") == provider.count("POST", "/sandboxes") == 0
    provider.end_faults()
    provider.expects_faults = False
    assert ssh(gateway, "echo on", login=warm).stdout == b"on\n"


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ({"error": "html"}, r"start command: 502: 502 Server Error"),
        ({"error": "empty"}, r"start command: 502: bad gateway"),
        ({"error": "too_many_connections"}, r"start command: 429: Too many incoming connections"),
        ({"error": "unauthorized"}, r"start command: 401: unauthorized access"),
    ],
)
def test_a_refused_start_is_one_line(gateway, provider, warm, action, line):
    provider.fault("Process/Start", action)
    expect_line(ssh(gateway, "true", login=warm), line)
    assert commands(provider) == 1


def test_a_start_without_an_answer_ends_in_time(gateway, provider, warm):
    provider.fault("Process/Start", {"answer_delay_ms": 60000})
    started = time.monotonic()
    expect_line(ssh(gateway, "true", login=warm), rf"no answer within {PATIENCE} s")
    assert time.monotonic() - started < 4 * PATIENCE


# Streams of commands


PRINTING = "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); sleep 0.01; done; exit 7"


@pytest.mark.parametrize(
    ("action", "line"),
    [
        ({"after_events": 20}, r"output may be lost"),
        ({"after_events": 20, "how": "fin"}, r"output may be lost"),
        ({"after_events": 20, "how": "end"}, r"output may be lost"),
        ({"after_bytes": 1001}, r"output may be lost"),
        ({"frame": {"n": 20, "kind": "cut"}}, r"output may be lost"),
        ({"frame": {"n": 20, "kind": "compressed"}}, r"a compressed message that was not asked for"),
        ({"frame": {"n": 20, "kind": "oversized"}}, r"a message of \d+ bytes"),
        ({"frame": {"n": 20, "kind": "garbage"}}, r"JSON"),
        ({"after_events": 20, "then": "stall"}, rf"nothing was heard for {PATIENCE} s"),
        ({"after_events": 20, "kill_sandbox": True}, r"sandbox \w+ is gone"),
        ({"after_events": 20, "expire_sandbox": True}, r"sandbox \w+ is gone"),
    ],
)
def test_a_broken_stream_is_never_taken_for_an_end(gateway, provider, warm, action, line):
    provider.fault("Process/Start", action)
    done = ssh(gateway, PRINTING, login=warm)
    expect_line(done, line)
    expected = b"".join(b"line %d\n" % i for i in range(200))
    assert expected.startswith(done.stdout) and len(done.stdout) < len(expected)
    assert ssh(gateway, "echo on", login=warm).stdout == b"on\n"


@pytest.mark.parametrize(
    "action",
    [
        {"dribble_bytes": 1, "dribble_ms": 0},
        {"coalesce": 2},
        {"answer_delay_ms": 300},
        {"no_end_event": True},
        {"end_stream": "none"},
    ],
)
def test_an_odd_but_complete_stream_is_complete(gateway, provider, warm, action):
    provider.fault("Process/Start", action)
    done = ssh(gateway, "seq 1 300; echo problem >&2; exit 7", login=warm)
    assert done.returncode == 7
    assert done.stdout == b"".join(b"%d\n" % i for i in range(1, 301))
    assert done.stderr == b"problem\n"


def test_a_silent_command_is_not_taken_for_a_dead_one(gateway, provider, warm):
    provider.expects_faults = False
    done = ssh(gateway, f"sleep {PATIENCE + 2}; echo late", login=warm)
    assert (done.returncode, done.stdout) == (0, b"late\n")


def test_a_terminal_that_breaks_before_its_command_started_is_one_line(gateway, provider, warm):
    """Its start would be among what is lost, and all that follows be taken for noise before it."""
    provider.fault("Process/Start", {"after_events": 1})
    with ssh_start(gateway, "-tt", "echo lost; sleep 86396", login=warm) as client:
        output, errors = client.communicate(timeout=TIMEOUT)
    assert (client.returncode, output) == (255, b"")
    assert b"the command's stream broke before it was known to have started" in errors
    wait_until(lambda: not processes_with("sleep 86396"), what="the end of the command")


def test_a_terminal_goes_on_after_its_stream_broke(gateway, provider, warm):
    provider.fault("Process/Start", {"after_events": 20})
    start = gateway.log_length()
    script = "i=0; while [ $i -lt 60 ]; do echo line $i; i=$((i+1)); sleep 0.02; done; read x; echo got $x; exit 9"
    with ssh_start(gateway, "-tt", script, login=warm) as client:
        gateway.wait_log("connected to process .* again", start=start)
        client.stdin.write(b"this\n")
        client.stdin.flush()
        output = client.stdout.read()
    assert output.startswith(b"line 0\r\n")
    assert b"line 59\r\n" in output
    assert output.endswith(b"got this\r\n")
    assert client.returncode == 9


def test_a_sandbox_that_went_away_is_logged_and_replaced(gateway, provider, warm):
    provider.expects_faults = False
    for sandbox in provider.sandboxes():
        provider.call("POST", f"sandboxes/{sandbox['id']}/kill")
    before = gateway.log_length()
    assert ssh(gateway, "echo new", login=warm).stdout == b"new\n"
    gateway.wait_log(r"is lost: sandbox \w+ is gone: it was killed", start=before)


# Input


DATA = os.urandom(1 << 20)


def expect_digest(done):
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0].decode() == hashlib.sha256(DATA).hexdigest()


@pytest.mark.parametrize("status", [404, 405, 415, 501])
def test_without_streamed_input_pieces_are_sent(gateway, provider, warm, status):
    provider.fault("Process/StreamInput", {"status": status}, count=0)
    expect_digest(ssh(gateway, "sha256sum", stdin=DATA, login=warm))


def test_streamed_input_that_is_unimplemented_is_sent_in_pieces(gateway, provider, warm):
    action = {"status": 501, "body": {"code": "unimplemented", "message": "no"}}
    provider.fault("Process/StreamInput", action, count=0)
    expect_digest(ssh(gateway, "sha256sum", stdin=DATA, login=warm))


@pytest.mark.parametrize(
    ("path", "action"),
    [
        ("Process/StreamInput", {"drop": "after"}),
        ("Process/StreamInput", {"request_bytes": 1000}),
        ("Process/SendInput", {"drop": "after"}),
        ("Process/SendInput", {"drop": "before"}),
        ("Process/SendInput", {"error": "html", "after": True}),
    ],
)
def test_input_of_unknown_outcome_fails_the_command(gateway, provider, warm, path, action):
    """It is not sent again: the command would get it twice."""
    provider.fault(path, action)
    expect_line(
        ssh(gateway, "sha256sum", stdin=DATA, login=warm),
        r"it is not known how much of the input arrived",
    )
    assert provider.struck() == 1


def test_an_end_of_input_that_is_lost_is_told_again(gateway, provider, warm):
    provider.fault("Process/CloseStdin", {"drop": "before"})
    expect_digest(ssh(gateway, "sha256sum", stdin=DATA, login=warm))


def test_a_sandbox_that_dies_while_it_is_fed_is_one_line(gateway, provider, warm):
    # the first stream is short: it proves that there are any
    provider.fault("Process/StreamInput", {"request_bytes": 300000, "kill_sandbox": True}, nth=2)
    expect_line(
        ssh(gateway, "cat >/dev/null", stdin=DATA * 8, login=warm), r"sandbox \w+ is gone"
    )
