# SPDX-License-Identifier: ISC
"""The operator starts, stops and destroys sandboxes, by the rules that hold for their users."""

import concurrent.futures

import pytest
from clients import TIMEOUT, ssh
from gateway import processes_with, wait_until
from rws_client import Rws
from test_admin import admin, answer, refusal, rows, start

DRIVERS = ("local", "e2b", "daytona")


def sandbox_id(gateway, login):
    return ssh(gateway, "echo $RWS_SANDBOX_ID", login=login).stdout.decode().strip()


@pytest.mark.core
def test_a_sandbox_is_started_for_nobody_and_used_by_the_next(gateway):
    started = answer(gateway, "start", "sandbox+one")
    assert (started["workspace"], started["state"]) == ("sandbox+one", "running")
    (row,) = [row for row in rows(gateway, "workspaces") if row["workspace"] == "sandbox+one"]
    assert (row["state"], row["sandbox_id"], row["sessions"]) == ("running", started["sandbox_id"], 0)
    assert sandbox_id(gateway, "sandbox+one") == started["sandbox_id"]
    assert answer(gateway, "destroy", "sandbox+one")["sandbox_id"] == started["sandbox_id"]


def test_a_stopped_sandbox_keeps_its_files_and_its_worker_ends(gateway):
    ssh(gateway, "echo kept >f", login="sandbox+two")
    before = sandbox_id(gateway, "sandbox+two")
    assert answer(gateway, "stop", "sandbox+two") == {
        "workspace": "sandbox+two", "sandbox_id": before, "state": "stopped",
    }
    wait_until(lambda: not gateway.pids("worker", "sandbox+two"), what="the worker's end")
    assert ssh(gateway, "cat f", login="sandbox+two").stdout == b"kept\n"
    assert sandbox_id(gateway, "sandbox+two") == before
    answer(gateway, "destroy", "sandbox+two")


@pytest.mark.core
def test_a_destroyed_sandbox_is_gone_with_what_ran_in_it(gateway):
    client = start(gateway, "sleep 4723", login="sandbox+three")
    before = rows(gateway, "workspaces")[-1]["sandbox_id"]
    assert answer(gateway, "destroy", "sandbox+three")["sandbox_id"] == before
    assert client.wait(TIMEOUT) != 0
    assert not processes_with("sleep 4723")
    assert sandbox_id(gateway, "sandbox+three") != before
    answer(gateway, "destroy", "sandbox+three")


def test_people_are_told_in_a_line(gateway):
    done = admin(gateway, "start", "sandbox+four")
    assert done.returncode == 0 and done.stdout.startswith("sandbox+four: running, sandbox ")
    done = admin(gateway, "destroy", "sandbox+four")
    assert done.returncode == 0 and done.stdout.startswith("sandbox+four: destroyed, sandbox ")


def test_several_operators_start_one_sandbox_once(gateway):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        started = list(pool.map(lambda _: answer(gateway, "start", "sandbox+five"), range(4)))
    assert len({act["sandbox_id"] for act in started}) == 1
    assert len(gateway.pids("worker", "sandbox+five")) == 1
    answer(gateway, "destroy", "sandbox+five")


def test_who_uses_a_stopped_sandbox_has_it_started_again(gateway):
    with Rws(gateway, login="sandbox+six") as client:
        client.call("write", path="f", content="kept")
        assert answer(gateway, "stop", "sandbox+six")["state"] == "stopped"
        assert rows(gateway, "workspaces")[-1]["state"] == "stopped"
        assert client.call("read", path="f")["content"] == "kept"
    answer(gateway, "destroy", "sandbox+six")


def test_the_rules_of_the_login_hold(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"instances": "off", "never_delete": "on"}})
    answer(gateway, "start", "sandbox")
    assert refusal(gateway, "destroy", "sandbox")[0] == "DENIED"
    assert rows(gateway, "workspaces")[0]["state"] == "running"
    assert refusal(gateway, "start", "sandbox+more")[0] == "DENIED"
    assert refusal(gateway, "start", "sandbox=some-id")[0] == "DENIED"
    assert refusal(gateway, "stop", "other")[0] == "NOT_FOUND"


def test_what_the_provider_says_reaches_the_operator(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"root": "/proc/nowhere", "create_root": "off"}})
    code, text = refusal(gateway, "start", "sandbox")
    assert code == "NOT_FOUND" and "/proc/nowhere" in text


def test_one_act_after_another_waits_for_the_worker_that_leaves(gateway):
    for _ in range(3):
        assert answer(gateway, "start", "sandbox+seven")["state"] == "running"
        assert answer(gateway, "stop", "sandbox+seven")["state"] == "stopped"
        assert answer(gateway, "start", "sandbox+seven")["state"] == "running"
        assert answer(gateway, "stop", "sandbox+seven")["state"] == "stopped"
        assert answer(gateway, "destroy", "sandbox+seven")["state"] == "destroyed"
