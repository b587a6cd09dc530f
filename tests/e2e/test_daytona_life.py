# SPDX-License-Identifier: ISC
"""The life of a Daytona sandbox: made, found again, started, kept awake, given back; and what it all costs."""

import itertools
import json
import os
import signal
import urllib.request

import pytest
from clients import ssh, ssh_start
from gateway import wait_until

DRIVERS = ("daytona",)

pytestmark = pytest.mark.usefixtures("nothing_left")

numbers = itertools.count()


# Making and finding


def test_a_sandbox_is_made_as_the_block_says(make_gateway, provider):
    gateway = make_gateway(
        options={"gateway": "gw-1"},
        logins={
            "sandbox": {
                "image": "debian:12.9",
                "resources": ["cpu=2", "memory=4", "disk=8"],
                "name": "box",
                "labels": ["team=blue"],
                "sandbox_env": ["A=b c"],
                "target": "eu",
                "auto_stop_interval": "90s",
            }
        },
    )
    assert ssh(gateway, "true").returncode == 0
    (body,) = provider.bodies("POST", "/api/sandbox")
    assert body == {
        "buildInfo": {"dockerfileContent": "FROM debian:12.9\n"},
        "cpu": 2,
        "memory": 4,
        "disk": 8,
        "name": "box",
        "target": "eu",
        "env": {"A": "b c"},
        "labels": {"team": "blue", "rws-managed": "true", "rws-instance": "gw-1/sandbox"},
        "autoStopInterval": 2,
        "autoDeleteInterval": -1,
    }


def test_credentials_may_come_from_the_environment(make_gateway, provider, monkeypatch):
    monkeypatch.setattr(provider, "login", lambda: {"driver": "daytona"})
    monkeypatch.setenv("DAYTONA_API_KEY", provider.key)
    monkeypatch.setenv("DAYTONA_API_URL", f"{provider.url}/api/")
    monkeypatch.setenv("DAYTONA_TARGET", "eu")
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    assert provider.bodies("POST", "/api/sandbox")[0]["target"] == "eu"
    assert provider.key not in gateway.log_text()


def test_a_sandbox_is_used_by_its_name_and_started(make_gateway, provider):
    first = make_gateway(logins={"sandbox": {"name": "mine", "on_dispose": "keep"}})
    assert ssh(first, "echo here >file").returncode == 0
    first.stop()
    provider.call("POST", f"sandboxes/{provider.only_sandbox()['id']}/expire")
    wait_until(lambda: provider.only_sandbox()["state"] == "stopped", what="auto-stop")
    second = make_gateway(logins={"sandbox": {"sandbox": "mine"}})
    assert ssh(second, "cat file").stdout == b"here\n"
    second.stop()
    assert provider.only_sandbox()["state"] == "started"  # what was only used is kept


def test_a_sandbox_that_stopped_in_between_is_started_again(make_gateway, provider):
    gateway = make_gateway()
    assert ssh(gateway, "echo here >file").returncode == 0
    provider.call("POST", f"sandboxes/{provider.only_sandbox()['id']}/expire")
    wait_until(lambda: provider.only_sandbox()["state"] == "stopped", what="auto-stop")
    wait_until(lambda: "is lost" in gateway.log_text() or
               ssh(gateway, "true").returncode == 0, what="the loss")
    assert ssh(gateway, "cat file").stdout == b"here\n"


def test_an_unknown_sandbox_is_one_line(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"sandbox": "nosuch"}})
    done = ssh(gateway, "true")
    assert done.returncode == 255
    assert b"rws: NOT_FOUND: daytona: sandbox nosuch: 404" in done.stderr
    assert provider.sandboxes() == []


def test_a_slow_start_is_waited_for_and_told(make_gateway, provider):
    provider.config(create_ms=1500, create_waits=False, held_polls=1)
    gateway = make_gateway()
    done = ssh(gateway, "-tt", "echo on")
    assert b"starting sandbox..." in done.stdout + done.stderr and b"sandbox-id: " in done.stdout + done.stderr
    assert b"on" in done.stdout


def test_a_start_that_takes_too_long_is_given_up(make_gateway, provider):
    provider.config(create_ms=60000, create_waits=False)
    gateway = make_gateway(logins={"sandbox": {"start_timeout": "2s"}})
    done = ssh(gateway, "true")
    assert done.returncode == 255
    assert b"rws: TIMEOUT: daytona: the sandbox did not start within 2 s; it is creating" in done.stderr


def test_a_sandbox_in_error_is_told_with_its_reason(make_gateway, provider):
    provider.config(start_fails="no disk left", create_waits=False)
    gateway = make_gateway()
    done = ssh(gateway, "true")
    assert done.returncode == 255
    assert b"no disk left" in done.stderr


def test_the_toolbox_is_asked_for_when_it_is_not_told(make_gateway, provider):
    provider.config(toolbox_url_in_object=False)
    assert ssh(make_gateway(), "echo on").stdout == b"on\n"


@pytest.mark.parametrize(("dispose", "state"), [("destroy", None), ("stop", "stopped"), ("keep", "started")])
def test_a_sandbox_is_given_back_as_asked(make_gateway, provider, dispose, state):
    gateway = make_gateway(logins={"sandbox": {"on_dispose": dispose, "idle_timeout": "100ms"}})
    assert ssh(gateway, "true").returncode == 0
    wait_until(
        lambda: [s["state"] for s in provider.sandboxes()] == ([state] if state else [])
        and not [p for s in provider.sandboxes() for p in s["ptys"]],
        what=f"{dispose}, and no terminal left",
    )


# Secrets


def test_nothing_of_a_command_is_in_a_request(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"env": ["SECRET=hidden-value-1"]}})
    done = ssh(gateway, "echo $SECRET; echo hidden-value-2")
    assert done.stdout == b"hidden-value-1\nhidden-value-2\n"
    for request in provider.requests():
        if not request["path"].endswith("/connect"):
            assert "hidden-value" not in request["body"] + request["path"] + str(request["query"])


# What it costs, in trips: requests to the provider


def test_a_warm_command_waits_for_no_request(make_gateway, provider):
    """Its terminals are there already: it is told to them. What is asked for is the next command's."""
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    wait_until(
        lambda: len(provider.only_sandbox()["ptys"]) == 2 and "connect" in str(provider.counts()),
        what="terminals for the next command",
    )
    assert ssh(gateway, "true").returncode == 0
    provider.call("POST", "delay", {"ms": 20000})
    assert ssh(gateway, "echo quick", timeout=15).stdout == b"quick\n"
    provider.call("POST", "delay", {"ms": 0})


def test_newer_daemons_make_a_terminal_in_one_trip(make_gateway, provider):
    provider.config(create_connect=True, subprotocol_echo=True)
    gateway = make_gateway()
    assert ssh(gateway, "echo one; exit 3").returncode == 3
    assert not [name for name in provider.counts() if name == "POST /toolbox/{id}/process/pty"]


def test_input_takes_no_request_a_chunk(make_gateway, provider):
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    data = b"0123456789abcdef" * 65536
    provider.forget_requests()
    client = ssh_start(gateway, "cat")
    output, _ = client.communicate(data, timeout=60)
    assert output == data
    assert sum(provider.counts().values()) <= 6


# Killed while it creates


def test_a_second_sandbox_of_a_killed_create_is_destroyed(make_gateway, provider):
    """The create of a worker that was killed may come true long after the next one has made its own."""
    gateway = make_gateway()
    provider.fault("/sandbox$", {"delay_ms": 3000}, method="POST")
    with ssh_start(gateway, "true") as client:
        wait_until(lambda: provider.struck(), what="the create")
        for worker in gateway.pids("worker"):
            os.kill(worker, signal.SIGKILL)
        client.communicate(timeout=60)
    with ssh_start(gateway, "echo $RWS_SANDBOX_ID; cat") as client:
        sandbox = client.stdout.readline().decode().strip()
        (labels,) = [found["labels"] for found in provider.sandboxes() if found["id"] == sandbox]
        request = urllib.request.Request(
            f"{provider.url}/api/sandbox",
            data=json.dumps({"labels": labels}).encode(),
            headers={"Authorization": f"Bearer {provider.key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            second = json.load(answer)["id"]
        wait_until(lambda: [found["id"] for found in provider.sandboxes()] == [sandbox], 90, "one sandbox")
        assert second != sandbox
        client.stdin.write(b"still here\n")
        client.stdin.close()
        assert client.stdout.readline() == b"still here\n"
        client.kill()
