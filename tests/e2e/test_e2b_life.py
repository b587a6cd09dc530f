# SPDX-License-Identifier: ISC
"""The life of an E2B sandbox: made, found again, resumed, kept alive, given back; and what it all costs."""

import itertools

import pytest
from clients import ssh, ssh_start
from gateway import wait_until

DRIVERS = ("e2b",)

pytestmark = pytest.mark.usefixtures("nothing_left")

numbers = itertools.count()


# Making and finding


def test_a_sandbox_is_made_as_the_block_says(make_gateway, provider):
    gateway = make_gateway(
        options={"gateway": "gw-1"},
        logins={
            "sandbox": {
                "template": "code-interpreter-v1",
                "lifetime": "20m",
                "metadata": ["team=blue", "note=a b&c"],
            }
        },
    )
    assert ssh(gateway, "true", login="sandbox+x").returncode == 0
    (body,) = provider.bodies("POST", "/sandboxes")
    assert body == {
        "templateID": "code-interpreter-v1",
        "timeout": 1200,
        "secure": True,
        "metadata": {
            "team": "blue",
            "note": "a b&c",
            "rws-managed": "true",
            "rws-instance": "gw-1_2fsandbox_2bx",
        },
    }


def test_the_key_comes_from_the_environment_too(make_gateway, provider, monkeypatch):
    for name, value in {
        "E2B_API_KEY": provider.key,
        "E2B_API_URL": provider.url,
        "E2B_SANDBOX_URL": provider.url,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(provider, "login", lambda: {"driver": "e2b"})
    gateway = make_gateway()
    assert ssh(gateway, "echo $E2B_API_KEY", login="sandbox").stdout == b"\n"


def test_a_restarted_gateway_adopts_and_does_not_make(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"on_dispose": "keep"}})
    assert ssh(gateway, "echo kept >file").returncode == 0
    sandbox = provider.only_sandbox()["id"]
    gateway.end()
    gateway.start()
    assert ssh(gateway, "cat file; echo $RWS_SANDBOX_ID").stdout.split() == [b"kept", sandbox.encode()]


def test_a_paused_sandbox_is_resumed(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"on_dispose": "stop", "idle_timeout": "100ms"}})
    assert ssh(gateway, "echo kept >file").returncode == 0
    wait_until(lambda: provider.only_sandbox()["state"] == "paused", what="a pause")
    assert ssh(gateway, "cat file").stdout == b"kept\n"
    assert provider.only_sandbox()["state"] in ("running", "paused")


def test_an_attached_sandbox_is_used_and_never_destroyed(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"on_dispose": "keep"}})
    assert ssh(gateway, "echo mine >file").returncode == 0
    sandbox = provider.only_sandbox()["id"]
    gateway.end()
    other = make_gateway(
        logins={
            "byid": {"instances": "attach", "idle_timeout": "100ms"},
            "fixed": {"sandbox_id": sandbox, "idle_timeout": "100ms"},
        }
    )
    for login in (f"byid={sandbox}", "fixed"):
        assert ssh(other, "cat file", login=login).stdout == b"mine\n"
    other.end()
    assert provider.only_sandbox()["id"] == sandbox
    assert not [r for r in provider.requests() if r["method"] == "DELETE"]


def test_an_unknown_sandbox_is_not_found(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"instances": "attach"}})
    done = ssh(gateway, "true", login="sandbox=inosuchsandbox")
    assert done.returncode == 255
    assert b"rws: NOT_FOUND: e2b: connect to sandbox inosuchsandbox: 404" in done.stderr
    assert not provider.sandboxes()


@pytest.mark.parametrize(("dispose", "state"), [("destroy", None), ("keep", "running"), ("stop", "paused")])
def test_what_the_block_says_becomes_of_it(make_gateway, provider, dispose, state):
    gateway = make_gateway(logins={"sandbox": {"on_dispose": dispose, "idle_timeout": "100ms"}})
    assert ssh(gateway, "true").returncode == 0
    wait_until(lambda: not gateway.pids("worker"), what="the end of the worker")
    wait_until(
        lambda: [sandbox["state"] for sandbox in provider.sandboxes()] == ([state] if state else []),
        what=f"the sandbox to be {state}",
    )


def test_a_sandbox_that_is_gone_already_counts_as_destroyed(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"idle_timeout": "300ms"}})
    assert ssh(gateway, "true").returncode == 0
    provider.end_sandbox()
    wait_until(lambda: [r for r in provider.requests() if r["method"] == "DELETE"], what="a release")
    assert "release of" not in gateway.log_text()


# Staying alive


def test_a_running_command_keeps_its_sandbox_alive(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"lifetime": "15s"}})
    done = ssh(gateway, "sleep 20; echo alive")
    assert (done.returncode, done.stdout) == (0, b"alive\n")
    assert provider.bodies("POST", "/connect") == [{"timeout": 15}] * 2


# What it costs, in trips: requests to the provider


@pytest.fixture(name="warm")
def warm_fixture(make_gateway, provider):
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    provider.forget_requests()
    return gateway


def routes(provider):
    return sorted(request["path"].rpartition("/")[2] for request in provider.requests())


def test_a_new_workspace_takes_four_trips_to_be_ready(make_gateway, provider):
    """List, create, and two commands: where are we, and is all there that is needed?"""
    gateway = make_gateway()
    provider.forget_requests()
    with ssh_start(gateway, "true") as client:
        client.communicate(timeout=60)
    paths = [request["path"] for request in provider.requests()]
    start = "/process.Process/Start"
    assert paths[:4] == ["/v2/sandboxes", "/sandboxes", start, start]


def test_a_command_takes_one_trip_more_than_its_start(warm, provider):
    """Its wrapper waits for one piece of input; the end of it is no trip to wait for."""
    assert ssh(warm, "echo $((1+1))", stdin=b"").stdout == b"2\n"
    wait_until(lambda: len(routes(provider)) >= 3, what="the end of the input")
    assert routes(provider) == ["CloseStdin", "SendInput", "Start"]


def test_much_input_takes_no_trip_a_piece(warm, provider):
    small, big = bytes(1 << 20), bytes(16 << 20)
    assert ssh(warm, "cat", stdin=small).stdout == small
    provider.forget_requests()
    assert ssh(warm, "cat", stdin=big).stdout == big
    assert len(routes(provider)) <= 12, routes(provider)


def test_keys_typed_are_one_trip_each(warm, provider):
    with ssh_start(warm, "-tt", "stty -echo; echo ready; cat") as client:
        assert client.stdout.readline() == b"ready\r\n"
        provider.forget_requests()
        for line in (b"one\n", b"two\n"):
            client.stdin.write(line)
            client.stdin.flush()
            assert client.stdout.readline().strip() == line.strip()
        assert routes(provider) == ["SendInput", "SendInput"]
        client.stdin.write(b"\4")
        client.stdin.flush()
        client.wait(30)
