# SPDX-License-Identifier: ISC
"""Sandboxes that do not run are stopped and destroyed as they are; what fails to be made takes up no place."""

import re

import pytest
from clients import ssh
from gateway import wait_until
from records import sqlite_records
from test_admin import answer, refusal, rows

DRIVERS = ("e2b", "daytona", "vercel")

# How each provider is asked to start a sandbox, to run something in it, or to make one.
STARTS = r"/connect$|/start$|resume=true|/sandbox(es)?$|toolbox|/cmd"
# Where each is asked for a new one.
CREATES = r"/sandbox(es)?$"

pytestmark = pytest.mark.usefixtures("nothing_left")


def sandbox_id(gateway, login="sandbox"):
    done = ssh(gateway, "echo $RWS_SANDBOX_ID", login=login)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def names(sandbox):
    return (sandbox.get("id"), sandbox.get("name"))


def starts(provider):
    found = [f"{request['method']} {request['path']}?{request.get('query', '')}".rstrip("?")
             for request in provider.requests()]
    return [line for line in found if re.search(STARTS, line) and not re.match(r"GET [^?]*sandbox(es)?(\?|$)", line)]


def errors(gateway):
    return [line for line in gateway.log_text().splitlines() if line.split()[1:2] == ["error"]]


def state_of(gateway):
    (row,) = rows(gateway, "workspaces")
    return row["state"]


def test_what_does_not_run_is_stopped_and_destroyed_without_being_started(make_gateway, provider):
    gateway = make_gateway()
    sandbox = sandbox_id(gateway)
    gateway.end()
    gateway.start()
    provider.forget_requests()
    for _ in range(2):
        # The second one finds it stopped.
        assert answer(gateway, "stop", "sandbox") == {
            "workspace": "sandbox", "sandbox_id": sandbox, "state": "stopped",
        }
        wait_until(lambda: not gateway.pids("worker"), what="the worker's end")
        assert state_of(gateway) == "stopped"
        assert [sandbox in names(found) for found in provider.sandboxes()] == [True]
    assert answer(gateway, "destroy", "sandbox")["sandbox_id"] == sandbox
    assert not starts(provider), provider.requests()
    assert not [found for found in provider.sandboxes() if sandbox in names(found)]
    wait_until(lambda: not gateway.pids("worker"), what="the worker's end")
    assert not sqlite_records(gateway) and not rows(gateway, "workspaces")


def test_what_was_never_made_is_not_made_to_be_destroyed(make_gateway, provider):
    gateway = make_gateway()
    for verb in ("stop", "destroy"):
        assert refusal(gateway, verb, "sandbox+none")[0] == "NOT_FOUND"
    assert not provider.sandboxes() and not sqlite_records(gateway)
    assert not errors(gateway)


def test_what_may_not_be_destroyed_is_left_without_asking_anybody(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"never_delete": "on"}})
    sandbox = sandbox_id(gateway)
    gateway.end()
    gateway.start()
    provider.forget_requests()
    assert refusal(gateway, "destroy", "sandbox")[0] == "DENIED"
    assert not provider.requests()
    assert sandbox_id(gateway) == sandbox


def test_a_sandbox_that_was_stopped_by_its_record_starts_with_its_files(make_gateway):
    gateway = make_gateway()
    ssh(gateway, "echo kept >f")
    gateway.end()
    gateway.start()
    answer(gateway, "stop", "sandbox")
    assert ssh(gateway, "cat f").stdout == b"kept\n"


def test_the_operator_starts_no_more_sandboxes_than_the_login_may_have(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"max_instances": 1}})
    sandbox = answer(gateway, "start", "sandbox")["sandbox_id"]
    code, text = refusal(gateway, "start", "sandbox+one")
    assert code == "DENIED"
    assert text == "login sandbox has 1 sandbox, and may have no more at once (max_instances)"
    assert [sandbox in names(found) for found in provider.sandboxes()] == [True]
    # What is there may be started again and again.
    answer(gateway, "start", "sandbox")


def test_a_refused_create_gives_its_place_back(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"max_instances": 1}})
    provider.fault(CREATES, {"status": 403, "body": {"message": "no quota"}}, method="POST")
    done = ssh(gateway, "true", login="sandbox+one")
    assert done.returncode == 255 and b"create sandbox" in done.stderr
    assert provider.struck() == 1
    wait_until(lambda: not sqlite_records(gateway), what="no record to be left")
    assert ssh(gateway, "true", login="sandbox+two").returncode == 0


def test_an_id_that_the_provider_does_not_know_takes_up_no_place(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"instances": "attach", "max_instances": 1}})
    done = ssh(gateway, "true", login="sandbox=nosuchid")
    assert done.returncode == 255 and b"sandbox nosuchid: 40" in done.stderr
    wait_until(lambda: not sqlite_records(gateway), what="no record to be left")
    assert ssh(gateway, "true").returncode == 0


def test_what_is_idle_and_what_ended_by_itself_goes_without_an_error_in_the_log(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"idle_timeout": "1s"}})
    assert ssh(gateway, "true").returncode == 0
    gateway.wait_log("sandbox .* is deleted")
    wait_until(lambda: not gateway.pids("worker"), what="the worker's end")
    # With a worker there that has nothing to do.
    gateway.logins["sandbox"]["idle_timeout"] = "2s"
    gateway.write_configuration()
    answer(gateway, "reload")
    assert ssh(gateway, "true").returncode == 0
    provider.end_sandbox()
    wait_until(lambda: not gateway.pids("worker"), what="the worker's end")
    wait_until(lambda: not sqlite_records(gateway), timeout=40, what="no record to be left")
    # And with none: the record is what is left of it.
    assert ssh(gateway, "true").returncode == 0
    gateway.end()
    provider.end_sandbox()
    gateway.start()
    wait_until(lambda: not sqlite_records(gateway), timeout=40, what="no record to be left")
    assert not errors(gateway)


def test_a_sandbox_in_which_the_start_fails_is_disposed_of_as_any_other(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"idle_timeout": "1s", "root": "/nowhere", "create_root": "off"}})
    done = ssh(gateway, "true")
    assert done.returncode == 255 and b"rws: NOT_FOUND: " in done.stderr
    assert provider.sandboxes()
    wait_until(lambda: not provider.sandboxes(), timeout=60, what="its disposal")
    wait_until(lambda: not sqlite_records(gateway), what="no record to be left")
