# SPDX-License-Identifier: ISC
"""Signals that reach the whole group, and who is left when somebody dies."""

import asyncio
import os
import signal
import uuid

import pytest
from clients import TIMEOUT, asyncssh_connect, paramiko_connect, ssh, ssh_start
from gateway import processes_with, wait_until

DRIVERS = ("local", "e2b", "daytona", "vercel")


def fresh_mark():
    """A number of seconds that no other process sleeps for."""
    return f"31536{uuid.uuid4().int % 10**9:09}"


def assert_gone(mark):
    wait_until(lambda: not processes_with(mark), timeout=15, what=f"end of sleep {mark}")


def start_group(gateway, mark, login="sandbox"):
    """A command with a child and a grandchild, all recognisable by the mark; waits until they run."""
    client = ssh_start(gateway, f"(sleep {mark} & sleep {mark}) & sleep {mark} & echo ready; wait", login=login)
    assert client.stdout.readline() == b"ready\n"
    wait_until(lambda: len(processes_with(f"sleep {mark}")) >= 3, what="start of the group")
    return client


@pytest.mark.core
def test_nothing_is_left_when_the_client_is_killed(gateway):
    """clients.md 12 and 23: a killed client left its command running."""
    mark = fresh_mark()
    client = start_group(gateway, mark)
    client.kill()
    client.wait()
    assert_gone(mark)


def test_nothing_is_left_of_a_bootstrap_shell_when_its_client_is_killed(gateway):
    """clients.md 23: a shell fed by stdin that loops for ever stayed after the disconnect."""
    mark = fresh_mark()
    client = ssh_start(gateway, "-T", "sh")
    client.stdin.write(b"echo ready\nwhile true; do sleep %s; done\n" % mark.encode())
    client.stdin.flush()
    assert client.stdout.readline() == b"ready\n"
    wait_until(lambda: processes_with(mark), what="start of the loop")
    client.kill()
    client.wait()
    assert_gone(mark)


def test_what_ignores_hangup_and_term_is_killed_after_the_grace(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"kill_grace": "500ms"}})
    mark = fresh_mark()
    client = ssh_start(gateway, f"trap '' HUP TERM; echo ready; while :; do sleep {mark}; done")
    assert client.stdout.readline() == b"ready\n"
    client.kill()
    client.wait()
    assert_gone(mark)


def test_a_closed_channel_ends_its_command_and_no_other(gateway):
    first, second = fresh_mark(), fresh_mark()
    with paramiko_connect(gateway) as client:
        one = client.get_transport().open_session()
        one.exec_command(f"sleep {first}")
        two = client.get_transport().open_session()
        two.exec_command(f"sleep {second}")
        wait_until(lambda: processes_with(first) and processes_with(second), what="start")
        one.close()
        assert_gone(first)
        assert processes_with(second)
    assert_gone(second)


@pytest.mark.core
@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "KILL"])
def test_a_signal_request_reaches_the_whole_group(gateway, name):
    mark = fresh_mark()

    async def run():
        async with asyncssh_connect(gateway) as connection:
            async with connection.create_process(
                f"sleep {mark} & sleep {mark} & echo ready; wait; sleep {mark}"
            ) as process:
                assert await process.stdout.readline() == "ready\n"
                process.send_signal(name)
                await process.wait()
                assert process.exit_signal[0] == name

    asyncio.run(asyncio.wait_for(run(), TIMEOUT))
    assert_gone(mark)


def test_an_unknown_signal_request_changes_nothing(gateway):
    async def run():
        async with asyncssh_connect(gateway) as connection:
            async with connection.create_process("echo ready; cat") as process:
                assert await process.stdout.readline() == "ready\n"
                process.send_signal("NOSUCH")
                process.stdin.write("still here\n")
                process.stdin.write_eof()
                assert await process.stdout.read() == "still here\n"
                await process.wait()
                assert process.exit_status == 0

    asyncio.run(asyncio.wait_for(run(), TIMEOUT))


def kill_process_under(gateway, role):
    """Starts a group, kills the gateway's process of this role, and returns what the client saw."""
    mark = fresh_mark()
    client = start_group(gateway, mark)
    (victim,) = gateway.pids(role, "sandbox")
    before = gateway.log_length()
    os.kill(victim, signal.SIGKILL)
    stdout, stderr = client.communicate(timeout=TIMEOUT)
    assert_gone(mark)
    assert stdout == b""
    gateway.wait_log(rf"process {victim} was killed by signal 9", start=before)
    return client.returncode, stderr.decode()


def test_nothing_is_left_when_the_session_process_dies(make_gateway):
    gateway = make_gateway()
    status, _ = kill_process_under(gateway, "session")
    assert status == 255
    assert ssh(gateway, "echo on").stdout == b"on\n"


@pytest.mark.core
def test_nothing_is_left_when_the_worker_dies_and_one_line_says_so(make_gateway):
    """clients.md 16 and 45: the client hangs, or is told nothing, when the sandbox goes away."""
    gateway = make_gateway()
    status, stderr = kill_process_under(gateway, "worker")
    assert status == 255
    ours = [line for line in stderr.splitlines() if not line.startswith("Received disconnect")]
    assert len(ours) == 1
    assert ours[0].startswith("rws: UNAVAILABLE: ")
    assert ssh(gateway, "echo on").stdout == b"on\n"


@pytest.mark.provider_only  # on this machine the sandbox has died with its worker
def test_what_a_dead_worker_left_is_ended_however_slow_the_provider_is(make_gateway, provider):
    """The next worker, which nobody uses, does not leave before it has got to the sandbox."""
    gateway = make_gateway()
    mark = fresh_mark()
    client = start_group(gateway, mark)
    (victim,) = gateway.pids("worker", "sandbox")
    try:
        provider.fault("", {"delay_ms": 1300}, count=3)
        os.kill(victim, signal.SIGKILL)
        client.communicate(timeout=TIMEOUT)
        assert_gone(mark)
        assert provider.struck() > 0
    finally:
        provider.call("DELETE", "knobs")


@pytest.mark.provider_only  # on this machine the sandbox has died with its worker
def test_what_a_gateway_that_was_killed_left_is_ended_by_the_next(make_gateway, provider):
    gateway = make_gateway()
    mark = fresh_mark()
    client = start_group(gateway, mark)
    # The listener is kept from doing anything about it.
    os.kill(gateway.process.pid, signal.SIGSTOP)
    for pid in [*gateway.pids("worker"), *gateway.pids("session"), *gateway.pids("auth"), gateway.process.pid]:
        os.kill(pid, signal.SIGKILL)
    gateway.wait()
    client.communicate(timeout=TIMEOUT)
    # Vercel's terminals end with their connection, and what our script at the far end watches over with them.
    assert provider.name == "vercel" or processes_with(mark)
    gateway.start()
    assert_gone(mark)


def test_only_channels_of_the_dead_worker_end(make_gateway):
    gateway = make_gateway()
    other = ssh_start(gateway, "echo ready; cat; exit 6", login="sandbox+other")
    assert other.stdout.readline() == b"ready\n"
    mark = fresh_mark()
    client = start_group(gateway, mark, login="sandbox+first")
    (victim,) = gateway.pids("worker", "sandbox+first")
    os.kill(victim, signal.SIGKILL)
    client.communicate(timeout=TIMEOUT)
    assert client.returncode == 255
    stdout, _ = other.communicate(b"on", timeout=TIMEOUT)
    assert (other.returncode, stdout) == (6, b"on")


def test_a_command_cannot_signal_what_is_outside_its_sandbox(gateway):
    done = ssh(gateway, "kill -9 -1; true")
    assert done.returncode in (0, 255)
    assert gateway.process.poll() is None
    assert ssh(gateway, "echo on").stdout == b"on\n"
