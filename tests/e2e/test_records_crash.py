# SPDX-License-Identifier: ISC
"""Killed at any moment, a gateway loses no sandbox and makes none twice: counted at a fake E2B."""

import concurrent.futures
import contextlib
import os
import random
import signal
import subprocess
import time

import pytest
from clients import ssh, ssh_start
from gateway import children, wait_until
from records import sqlite_records

DRIVERS = ("e2b",)

pytestmark = pytest.mark.usefixtures("nothing_left")

INSTANCES = ["sandbox", "sandbox+one", "sandbox+two"]
# Looks for second sandboxes come 2, 12 and 57 s after a start in doubt.
SETTLED = 40
# A record in doubt is kept for a minute, until the look after that.
FORGOTTEN = 150


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_all(gateway):
    """As a machine that loses its power."""
    kill([gateway.process.pid, *children(gateway.process.pid)])
    gateway.process.wait(30)
    gateway.reader.join(30)


def kill_listener(gateway):
    """Sessions, workers and the records process see it and end by themselves, when they are done."""
    kill([gateway.process.pid])
    gateway.process.wait(30)


def kill_workers(gateway):
    kill(gateway.pids("worker"))


def kill_records(gateway):
    kill(gateway.pids("records"))


KILLS = [kill_all, kill_listener, kill_workers, kill_workers, kill_records]


def try_client(gateway, login):
    """One that may be cut off at any moment."""
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        ssh(gateway, "true", login=login, timeout=15)


def recorded(gateway):
    return sorted(record["sandbox"] for record in sqlite_records(gateway) if record["sandbox"])


def existing(provider):
    return sorted(sandbox["id"] for sandbox in provider.sandboxes())


def slow_provider(provider, chance):
    """So that kills meet requests that are on their way there, at work, or on their way back."""
    for method in ("POST", "DELETE"):
        for name in ("delay_ms", "answer_delay_ms"):
            action = {name: chance.choice([20, 80, 200])}
            provider.fault("/sandboxes(/[^/]+)?$", action, nth=1, count=0, method=method)


def storm(gateway, provider, kills, seed):
    """Kills something again and again while clients come and sandboxes come and go."""
    chance = random.Random(seed)
    with concurrent.futures.ThreadPoolExecutor(len(INSTANCES)) as pool:
        for number in range(kills):
            if number % 10 == 0:
                provider.call("DELETE", "knobs")
                slow_provider(provider, chance)
            tries = [pool.submit(try_client, gateway, login) for login in chance.sample(INSTANCES, 2)]
            time.sleep(chance.uniform(0, 1.2))
            chance.choice(KILLS)(gateway)
            if gateway.process.poll() is not None:
                gateway.start()
            if chance.random() < 0.3:
                concurrent.futures.wait(tries)
    provider.call("DELETE", "knobs")


def check_storm(make_gateway, provider, kills):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    gateway = make_gateway(logins={"sandbox": {"idle_timeout": "300ms"}})
    storm(gateway, provider, kills, seed)
    # Everything that was begun is finished by whoever comes next.
    clients = [ssh_start(gateway, "echo ready; cat", login=login) for login in INSTANCES]
    try:
        for client in clients:
            assert client.stdout.readline() == b"ready\n", client.stderr.read()
        wait_until(
            lambda: len(existing(provider)) == len(INSTANCES) and existing(provider) == recorded(gateway),
            timeout=SETTLED,
            what="exactly the recorded sandboxes",
        )
    finally:
        for client in clients:
            client.kill()
            client.communicate()
    wait_until(lambda: not existing(provider), timeout=FORGOTTEN, what="no sandbox to be left")
    wait_until(lambda: not sqlite_records(gateway), timeout=FORGOTTEN, what="no record to be left")


def test_thirty_kills_lose_no_sandbox_and_make_none_twice(make_gateway, provider):
    check_storm(make_gateway, provider, 30)


@pytest.mark.stress
def test_a_thousand_kills_lose_no_sandbox_and_make_none_twice(make_gateway, provider):
    check_storm(make_gateway, provider, 1000)


def made(provider):
    """The sandboxes that were ever made, by id."""
    return [sandbox["id"] for sandbox in provider.call("GET", "sandboxes")]


def creates(provider):
    return [request for request in provider.requests() if (request["method"], request["path"]) == ("POST", "/sandboxes")]


def check_killed_create(gateway, provider, is_killable, count):
    """Kills the worker within its create; the next client has one sandbox, whatever becomes of the first."""
    provider.forget_requests()
    with ssh_start(gateway, "true") as client:
        wait_until(is_killable, what="the create")
        kill_workers(gateway)
        client.communicate(timeout=60)
    with ssh_start(gateway, "echo $RWS_SANDBOX_ID; cat") as client:
        sandbox = client.stdout.readline().decode().strip()
        (record,) = sqlite_records(gateway)
        assert (record["sandbox"], record["state"]) == (sandbox, "ready")
        wait_until(lambda: len(made(provider)) == count, what="all sandboxes that were asked for")
        wait_until(lambda: existing(provider) == [sandbox], timeout=SETTLED, what="one sandbox")
        client.kill()


def test_a_worker_killed_before_its_create_arrives_leaves_one_sandbox(make_gateway, provider):
    provider.fault("/sandboxes$", {"delay_ms": 2000}, method="POST")
    check_killed_create(make_gateway(), provider, lambda: creates(provider), 1)


def test_a_worker_killed_while_the_provider_creates_leaves_one_sandbox(make_gateway, provider):
    """The next worker finds none with its label yet, and makes another one."""
    provider.config(create_ms=1500)
    check_killed_create(make_gateway(), provider, lambda: creates(provider), 2)


def test_a_worker_killed_before_it_records_leaves_one_sandbox(make_gateway, provider):
    """The next worker finds it by its label."""
    provider.fault("/sandboxes$", {"answer_delay_ms": 2000}, method="POST")
    check_killed_create(make_gateway(), provider, lambda: existing(provider), 1)


def test_a_gateway_killed_while_it_destroys_leaves_none(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"idle_timeout": "100ms"}})
    provider.fault("/sandboxes/[^/]+$", {"delay_ms": 1000}, method="DELETE")
    assert ssh(gateway, "true").returncode == 0
    wait_until(lambda: provider.struck(), what="the destroy")
    kill_all(gateway)
    gateway.start()
    wait_until(lambda: not existing(provider), timeout=FORGOTTEN, what="no sandbox to be left")
    wait_until(lambda: not sqlite_records(gateway), timeout=FORGOTTEN, what="no record to be left")


@pytest.mark.parametrize("command", ["echo ready; cat", "echo ready"], ids=["running", "idle"])
def test_what_a_killed_gateway_left_is_disposed_of_without_a_client(make_gateway, provider, command):
    gateway = make_gateway(logins={"sandbox": {"idle_timeout": "3s"}})
    with ssh_start(gateway, command) as client:
        assert client.stdout.readline() == b"ready\n"
        kill_all(gateway)
        client.kill()
    assert len(existing(provider)) == 1
    gateway.start()
    wait_until(lambda: not existing(provider), timeout=FORGOTTEN, what="no sandbox to be left")
    wait_until(lambda: not sqlite_records(gateway), timeout=FORGOTTEN, what="no record to be left")
