# SPDX-License-Identifier: ISC
"""Terminals: what a pty is told and shows, resizing, and that nothing of its output is lost."""

import asyncio
import re

import pytest
from clients import TIMEOUT, asyncssh_connect, paramiko_connect, ssh
from gateway import wait_until

DRIVERS = ("local", "e2b", "daytona", "vercel")

ALL_BYTES = bytes(range(256))


@pytest.mark.core
def test_a_requested_pty_is_a_terminal_of_its_type(gateway):
    assert ssh(gateway, "true").returncode == 0  # on a terminal a start of its own would be told of
    done = ssh(gateway, "-tt", "tty; echo $TERM", TERM="xterm-256color")
    lines = done.stdout.replace(b"\r", b"").splitlines()
    assert lines[0].startswith(b"/dev/")
    assert lines[1] == b"xterm-256color"
    assert done.returncode == 0


@pytest.mark.core
def test_status_and_signal_arrive_with_a_pty(gateway):
    """clients.md 6: pty always 255."""
    assert ssh(gateway, "-tt", "exit 5").returncode == 5

    async def run():
        async with asyncssh_connect(gateway) as connection:
            done = await connection.run("kill -TERM $$", term_type="xterm")
            assert done.exit_signal[0] == "TERM"

    asyncio.run(run())


@pytest.mark.core
def test_a_pty_has_the_size_of_the_client_and_follows_it(gateway):
    async def run():
        async with asyncssh_connect(gateway) as connection:
            script = "stty size; trap 'stty size' WINCH; echo ready; while :; do read x; done"
            async with connection.create_process(
                script, term_type="xterm", term_size=(132, 43)
            ) as process:
                assert (await process.stdout.readline()).strip() == "43 132"
                assert (await process.stdout.readline()).strip() == "ready"
                process.change_terminal_size(100, 30)
                size = (await process.stdout.readline()).strip()
                # stty, which is all there is at some providers, sets the rows before the columns.
                if size == "30 132":
                    size = (await process.stdout.readline()).strip()
                assert size == "30 100"

    asyncio.run(asyncio.wait_for(run(), TIMEOUT))


@pytest.mark.core
def test_the_last_output_of_a_pty_is_never_lost(gateway):
    """clients.md 4: ssh -t loses the last output when the process exits fast."""
    with paramiko_connect(gateway) as client:
        for number in range(200):
            channel = client.get_transport().open_session()
            channel.get_pty()
            channel.exec_command(f"seq 200; echo last {number}")
            text = channel.makefile("rb").read()
            assert text.endswith(b"last %d\r\n" % number)
            assert len(text.splitlines()) == 201
            assert channel.recv_exit_status() == 0


@pytest.mark.core
def test_a_raw_pty_passes_all_byte_values_both_ways(gateway):
    with paramiko_connect(gateway) as client:
        channel = client.get_transport().open_session()
        channel.settimeout(TIMEOUT)
        channel.get_pty()
        channel.exec_command(f"stty raw -echo; echo ready; head -c {len(ALL_BYTES) * 40}")
        stream = channel.makefile("rb")
        assert stream.readline() == b"ready\n"
        channel.sendall(ALL_BYTES * 40)
        assert stream.read() == ALL_BYTES * 40
        assert channel.recv_exit_status() == 0


@pytest.mark.core
def test_control_c_interrupts_the_foreground_command(gateway):
    with paramiko_connect(gateway) as client:
        channel = client.get_transport().open_session()
        channel.settimeout(TIMEOUT)
        channel.get_pty()
        channel.exec_command("trap 'echo interrupted; exit 3' INT; echo ready; while :; do read x; done")
        stream = channel.makefile("rb")
        assert stream.readline().strip() == b"ready"
        channel.sendall(b"\x03")
        assert stream.read().replace(b"\r", b"").endswith(b"interrupted\n")
        assert channel.recv_exit_status() == 3


def shell_lines(channel):
    """What a shell shows up to its end, without what /etc/profile.d tells the terminal (OSC 3008)."""
    text = channel.makefile("rb").read().decode(errors="replace")
    return re.split(r"[\r\n]+", re.sub(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)", "", text))


def test_a_shell_on_a_pty_is_a_login_shell_that_echoes(gateway):
    with paramiko_connect(gateway) as client:
        channel = client.invoke_shell(term="vt100", width=80, height=24)
        channel.settimeout(TIMEOUT)
        channel.sendall(b"echo $((6*7)) $TERM; exit 4\n")
        assert "42 vt100" in shell_lines(channel)
        assert channel.recv_exit_status() == 4


def test_a_shell_on_a_pty_has_job_control(gateway):
    with paramiko_connect(gateway) as client:
        channel = client.invoke_shell()
        channel.settimeout(TIMEOUT)
        channel.sendall(b"case $- in *m*) echo jobs=on;; esac; exit\n")
        assert "jobs=on" in shell_lines(channel)


def test_a_client_that_goes_hangs_up_its_terminal(gateway):
    """As in a terminal window that is closed; what a program saves on HUP is saved."""
    traps = "trap 'echo hup >>seen' HUP; trap 'echo term >>seen; exit' TERM"
    with paramiko_connect(gateway) as client:
        channel = client.get_transport().open_session()
        channel.settimeout(TIMEOUT)
        channel.get_pty()
        channel.exec_command(f"{traps}; echo ready; while :; do read x; done")
        assert channel.makefile("rb").readline().strip() == b"ready"
    wait_until(lambda: ssh(gateway, "cat seen").stdout == b"hup\nterm\n", what="both signals")


@pytest.mark.stress
def test_a_thousand_ptys_keep_their_last_line(gateway):
    """design/targets.md: 1,000 runs of ssh -tt."""
    for number in range(1000):
        done = ssh(gateway, "-tt", f"echo last {number}; exit {number % 200}")
        assert done.stdout == b"last %d\r\n" % number
        assert done.returncode == number % 200
