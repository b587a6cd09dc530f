# SPDX-License-Identifier: ISC
"""Vercel misbehaves: what the client sees is the right result or one clear line, in time, and nothing is done twice."""

import itertools
import re
import time

import pytest
from clients import expect_line, ssh, ssh_start
from gateway import processes_with, wait_until

DRIVERS = ("vercel",)

LOGINS = {"sandbox": {"max_instances": 1000, "kill_grace": "500ms"}}

pytestmark = pytest.mark.usefixtures("no_faults_left")

numbers = itertools.count()


def count(provider, method, path):
    return len([one for one in provider.requests() if one["method"] == method and re.search(path, one["path"])])


# Getting a sandbox


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("unauthorized", r"vercel: create sandbox: 401: The request is missing an authentication token"),
        ("forbidden", r"vercel: create sandbox: 403: Not authorized"),
        ("payment_required", r"vercel: create sandbox: 402: You have reached the usage limit"),
        ("timeout_invalid", r"vercel: create sandbox: 400: Sandbox timeout is above the maximum"),
    ],
)
def test_a_refused_create_is_told_and_not_repeated(gateway, provider, login, error, line):
    provider.forget_requests()
    provider.fault("/v3/sandboxes$", {"error": error}, count=0, method="POST")
    expect_line(ssh(gateway, "true", login=login), line)
    assert count(provider, "POST", "/v3/sandboxes$") == 1


def test_a_create_that_is_told_to_wait_waits(gateway, provider, login):
    provider.fault("/v3/sandboxes$", {"error": "rate_limited"}, method="POST")
    started = time.monotonic()
    assert ssh(gateway, "true", login=login).returncode == 0
    assert time.monotonic() - started >= 1


def test_an_image_that_is_made_ready_is_waited_for(gateway, provider, login):
    provider.fault("/v3/sandboxes$", {"error": "image_not_ready"}, method="POST")
    assert ssh(gateway, "echo on", login=login, timeout=60).stdout == b"on\n"


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
    provider.fault("/v3/sandboxes$", action, method="POST")
    done = ssh(gateway, "echo here", login=login)
    assert (done.returncode, done.stdout) == (0, b"here\n"), done.stderr
    assert len(provider.sandboxes()) == before + 1


def test_a_wrong_api_url_is_told_as_such(gateway, provider, login):
    provider.fault("/v2/sandboxes$", {"error": "html_200"}, method="GET", count=0)
    expect_line(ssh(gateway, "true", login=login), r"a web page answered: is api_url right\?")


@pytest.mark.parametrize("error", ["sandbox_stopping", "sandbox_snapshotting"])
def test_a_change_under_way_is_waited_for(gateway, provider, login, error):
    provider.fault("/sandboxes/rws-[^/]*$", {"error": error}, count=2, method="GET")
    assert ssh(gateway, "true", login=login).returncode == 0
    provider.fault("/sandboxes/sessions/[^/]*/cmd$", {"error": error}, count=1)
    provider.fault("/sandboxes/sessions/[^/]*/interactive$", {"error": error}, count=1)
    wait_until(lambda: ssh(gateway, "true", login=login).returncode == 0, what="a command")


# Scripts: commands that are run to their end


@pytest.mark.parametrize(
    "action",
    [
        {"drop": "after"},
        {"drop": "after", "how": "fin"},
        {"drop": "before"},
        {"error": "internal", "after": True},
        {"error": "html_504", "after": True},
        {"error": "empty"},
        {"after_bytes": 10},
        {"after_events": 1},
        {"after_events": 1, "how": "fin"},
        {"after_events": 1, "how": "end"},
        {"after_events": 2, "how": "end"},
        {"after_events": 1, "then": "stall"},
        {"frame": {"n": 1, "kind": "error"}},
        {"frame": {"n": 2, "kind": "error"}},
        {"frame": {"n": 2, "kind": "garbage"}},
        {"frame": {"n": 2, "kind": "cut"}},
        {"frame": {"n": 3, "kind": "null_exit"}},
        {"frame": {"n": 2, "kind": "blank"}},
        {"dribble_bytes": 1, "dribble_ms": 0},
        {"error": "rate_limited"},
    ],
)
def test_a_script_whose_answer_breaks_is_found_again_and_run_once(gateway, provider, login, action):
    """The first command of a workspace is such a script; what it says is the user's name."""
    provider.forget_requests()
    provider.fault("/cmd$", action, method="POST")
    done = ssh(gateway, "echo here", login=login, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"here\n"), done.stderr
    works = [word for sandbox in provider.sandboxes() for session in sandbox["sessions"]
             for command in session["commands"] for word in command["args"] if word.startswith("/tmp/.rws-run-")]
    assert len(works) == len(set(works))


def test_a_log_that_breaks_is_read_again(gateway, provider, login):
    provider.fault("/cmd$", {"after_events": 1}, method="POST")
    provider.fault("/logs$", {"after_bytes": 20}, count=2)
    assert ssh(gateway, "echo here", login=login, timeout=60).stdout == b"here\n"


def test_a_script_that_cannot_be_followed_is_one_line(gateway, provider, login):
    provider.fault("/cmd$", {"after_events": 1}, method="POST", count=0)
    provider.fault("/logs$", {"error": "unauthorized"}, count=0)
    expect_line(ssh(gateway, "true", login=login, timeout=120), r"first command: 401: ")


# Terminals


@pytest.mark.parametrize(
    "action",
    [
        {"error": "internal"},
        {"error": "empty"},
        {"error": "forbidden"},
        {"status": 200, "body": {"url": "ftp://here/", "token": "x"}},
        {"status": 200, "body": {"url": "ws://here/"}},
    ],
)
def test_a_terminal_that_cannot_be_had_is_one_line(gateway, provider, login, action):
    provider.fault("/interactive$", action, method="POST", count=0)
    expect_line(ssh(gateway, "true", login=login, timeout=60), r"make a terminal: ")


def test_a_server_of_terminals_is_waited_for(gateway, provider, login):
    provider.fault("^/health$", {"error": "empty"}, count=2)
    assert ssh(gateway, "echo on", login=login).stdout == b"on\n"


@pytest.mark.parametrize("wrong", ["accept", "extension"])
def test_an_upgrade_that_is_none_is_one_line(gateway, provider, login, wrong):
    provider.fault("^/ws/interactive$", {"handshake": wrong}, count=0)
    expect_line(ssh(gateway, "true", login=login), r"upgrade to a WebSocket is wrong")


@pytest.mark.parametrize(
    "action",
    [
        {"ping_every": 1},
        {"frame": {"n": 2, "kind": "fragmented"}},
        {"dribble_bytes": 7, "dribble_ms": 1},
    ],
)
def test_what_is_odd_but_allowed_changes_nothing(gateway, provider, login, action):
    provider.fault("^/ws/interactive$", action, count=0)
    done = ssh(gateway, "seq 2000; echo err >&2; exit 6", login=login, timeout=60)
    assert done.returncode == 6
    assert done.stdout == b"".join(b"%d\n" % number for number in range(1, 2001))
    assert done.stderr == b"err\n"


@pytest.mark.parametrize("on_drop", ["hangup", "keep"])
@pytest.mark.parametrize(
    "action",
    [
        {"then": "cut"},
        {"then": "close", "close_code": 1011},
        {"then": "close", "close_code": 1006},
    ],
)
def test_a_broken_terminal_is_an_unknown_end_and_the_command_is_killed(
    gateway, provider, login, action, on_drop
):
    """Nobody has said what becomes of a program whose socket drops: it may live on."""
    mark = f"31541{next(numbers):09}"
    provider.config(on_drop=on_drop)
    provider.fault("^/ws/interactive$", {**action, "after_bytes": 300000}, count=0)
    done = ssh(gateway, f"head -c 20000000 /dev/zero; exec sleep {mark}", login=login, timeout=60)
    assert done.returncode == 255
    assert re.search(rb"^rws: UNAVAILABLE: ", done.stderr, re.M), done.stderr
    assert len(done.stderr.splitlines()) == 1
    wait_until(lambda: not processes_with(mark), timeout=60, what="end of the command")
    provider.call("DELETE", "knobs")
    provider.expects_faults = False
    assert ssh(gateway, "echo on", login=login).stdout == b"on\n"


@pytest.mark.parametrize("body", ["", {}, {"command": {"id": "../../stop", "exitCode": None}}])
def test_a_command_that_is_taken_and_is_never_there_is_one_line(gateway, provider, login, body):
    provider.fault("/cmd$", {"status": 200, "body": body}, count=0)
    expect_line(ssh(gateway, "true", login=login, timeout=60), "UNAVAILABLE: .*not there")


def test_the_token_of_a_terminal_is_not_told_when_its_url_is_none(gateway, provider, login):
    place = {"url": f"{provider.url.replace('http', 'ws')}/a b", "token": "wstok_secret"}
    provider.fault("/interactive$", {"status": 200, "body": place}, count=0)
    expect_line(ssh(gateway, "true", login=login, timeout=60), "this is no URL")
    assert "wstok" not in gateway.log_text()


def test_what_a_provider_says_is_no_word_to_the_clients_terminal(gateway, provider, login):
    action = {"then": "close", "close_code": 1011, "close_reason": "\x1b]0;mine\x07\x9b2J\nrws: ok"}
    provider.fault("^/ws/interactive$", {**action, "after_ms": 1000}, count=0)
    done = ssh(gateway, "exec sleep 31543", login=login, timeout=60)
    assert done.returncode == 255
    (line,) = done.stderr.splitlines()
    assert line.startswith(b"rws: UNAVAILABLE: ") and b"mine" in line
    assert not re.search(rb"[\x00-\x1f\x7f-\x9f]", line)


@pytest.mark.parametrize("how", ["error_line", "eof", "reset"])
def test_a_session_that_is_stopped_by_somebody_else_is_an_unknown_end(gateway, provider, warm, how):
    provider.expects_faults = False
    provider.config(stream_on_stop=how)
    client = ssh_start(gateway, "echo ready; exec sleep 31542", login=warm)
    assert client.stdout.readline() == b"ready\n"
    (sandbox,) = [one for one in provider.sandboxes() if one["tags"]["rws-instance"].endswith(f"/{warm}")]
    provider.call("POST", f"sandboxes/{sandbox['name']}/expire")
    assert client.wait(60) == 255
    assert ssh(gateway, "echo on", login=warm, timeout=60).stdout == b"on\n"


# Signals are scripts


def test_a_signal_whose_request_breaks_arrives_all_the_same(gateway, provider, warm):
    mark = f"31543{next(numbers):09}"
    client = ssh_start(gateway, f"echo ready; exec sleep {mark}", login=warm)
    assert client.stdout.readline() == b"ready\n"
    provider.fault("/cmd$", {"drop": "after"}, method="POST")
    client.kill()
    wait_until(lambda: not processes_with(mark), what="end of the command")


# Giving it back


@pytest.mark.parametrize("error", ["sandbox_stopping", "sandbox_snapshotting"])
def test_a_release_waits_for_a_change_under_way(make_gateway, provider, error):
    before = {sandbox["name"] for sandbox in provider.sandboxes()}
    provider.fault("/sandboxes/rws-[^/]*$", {"error": error}, count=2, method="DELETE")
    other = make_gateway(logins={"sandbox": {"idle_timeout": "100ms"}})
    assert ssh(other, "true").returncode == 0
    wait_until(
        lambda: provider.struck() == 2 and {one["name"] for one in provider.sandboxes()} <= before,
        what="destruction",
    )
