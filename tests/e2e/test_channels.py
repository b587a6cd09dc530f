# SPDX-License-Identifier: ISC
"""Many channels on one connection, and how a channel ends."""

import asyncio
import os
import subprocess
import threading

import paramiko
import pytest
from clients import TIMEOUT, asyncssh_connect, environment, paramiko_connect, ssh, ssh_options
from gateway import wait_until

DRIVERS = ("local", "e2b", "daytona", "vercel")

# RFC 4254 section 9
MSG_WINDOW_ADJUST, MSG_DATA, MSG_EXTENDED_DATA, MSG_EOF, MSG_CLOSE, MSG_REQUEST = 93, 94, 95, 96, 97, 98


class Recorder(paramiko.Channel):
    """A channel that notes the messages that come for it, in order."""

    def __init__(self, number):
        super().__init__(number)
        self.messages = []
        self.closed_event = threading.Event()

    def _feed(self, m):
        self.messages.append((MSG_DATA, None))
        super()._feed(m)

    def _feed_extended(self, m):
        self.messages.append((MSG_EXTENDED_DATA, None))
        super()._feed_extended(m)

    def _handle_request(self, m):
        self.messages.append((MSG_REQUEST, m.get_text()))
        m.rewind()
        m.get_int()
        super()._handle_request(m)

    def _handle_eof(self, m):
        self.messages.append((MSG_EOF, None))
        super()._handle_eof(m)

    def _handle_close(self, m):
        self.messages.append((MSG_CLOSE, None))
        super()._handle_close(m)
        self.closed_event.set()


def record(gateway, monkeypatch, command, pty=False):
    """Runs a command and returns the messages of its channel, repeated ones of data left out."""
    monkeypatch.setattr(paramiko.transport, "Channel", Recorder)
    # The table of handlers was made with the class's own methods.
    handlers = {
        MSG_DATA: Recorder._feed,
        MSG_EXTENDED_DATA: Recorder._feed_extended,
        MSG_REQUEST: Recorder._handle_request,
        MSG_EOF: Recorder._handle_eof,
        MSG_CLOSE: Recorder._handle_close,
    }
    table = {**paramiko.Transport._channel_handler_table, **handlers}
    monkeypatch.setattr(paramiko.Transport, "_channel_handler_table", table)
    with paramiko_connect(gateway) as client:
        channel = client.get_transport().open_session()
        if pty:
            channel.get_pty()
        channel.exec_command(command)
        # The window is opened by reading.
        channel.makefile("rb").read()
        assert channel.closed_event.wait(TIMEOUT)
        found = []
        for message in channel.messages:
            if not found or found[-1] != message:
                found.append(message)
        return found


@pytest.mark.core
@pytest.mark.parametrize("pty", [False, True])
def test_data_status_eof_and_close_come_in_this_order_and_once(gateway, monkeypatch, pty):
    """clients.md 1 and 8: status after close, or a second status of 0."""
    # On a terminal a start that takes long is told of.
    assert ssh(gateway, "true").returncode == 0
    messages = record(gateway, monkeypatch, "head -c 300000 /dev/zero; exit 3", pty)
    assert messages == [
        (MSG_DATA, None),
        (MSG_REQUEST, "exit-status"),
        (MSG_EOF, None),
        (MSG_CLOSE, None),
    ]


def test_a_signal_is_reported_in_place_of_a_status(gateway, monkeypatch):
    messages = record(gateway, monkeypatch, "kill -KILL $$")
    assert messages == [(MSG_REQUEST, "exit-signal"), (MSG_EOF, None), (MSG_CLOSE, None)]


@pytest.mark.core
def test_ten_channels_at_once_over_a_control_master(gateway):
    control = gateway.directory / "control"
    base = ["ssh", "-F", ssh_options(gateway), "-S", control, "sandbox@gateway"]
    master = subprocess.Popen(
        [*base[:-1], "-M", "-N", "-oControlPersist=no", base[-1]],
        stdin=subprocess.DEVNULL,
        env=environment(gateway),
    )
    try:
        data = os.urandom(1 << 20)
        wait_until(control.exists, what="the control socket")
        running = [
            subprocess.Popen(
                [*base, f"cat; echo {number} >&2; exit {number}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(gateway),
            )
            for number in range(10)
        ]
        results = [None] * 10

        def talk(number):
            results[number] = running[number].communicate(data + b"%d" % number, TIMEOUT)

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        for number, client in enumerate(running):
            assert client.returncode == number
            assert results[number] == (data + b"%d" % number, b"%d\n" % number)
    finally:
        master.terminate()
        master.wait(TIMEOUT)


@pytest.mark.core
def test_a_slow_reader_does_not_block_another_channel(gateway):
    with paramiko_connect(gateway) as client:
        slow = client.get_transport().open_session()
        slow.exec_command("head -c 67108864 /dev/zero")
        # Its window is full now, and stays so: nobody reads.
        for number in range(20):
            channel = client.get_transport().open_session()
            channel.settimeout(TIMEOUT)
            channel.exec_command(f"head -c 1000000 /dev/zero | tr '\\0' x; exit {number}")
            assert channel.makefile("rb").read() == b"x" * 1000000
            assert channel.recv_exit_status() == number
        received = 0
        while chunk := slow.recv(1 << 20):
            received += len(chunk)
        assert received == 67108864
        assert slow.recv_exit_status() == 0


def test_a_command_that_does_not_read_does_not_block_another_channel(gateway):
    async def run():
        async with asyncssh_connect(gateway) as connection:
            async with connection.create_process("sleep 86400", encoding=None) as stuck:
                stuck.stdin.write(bytes(16 << 20))
                for number in range(10):
                    done = await connection.run(f"cat; exit {number}", input="x" * 100000)
                    assert (done.exit_status, len(done.stdout)) == (number, 100000)
                stuck.kill()
                await stuck.wait()

    asyncio.run(asyncio.wait_for(run(), TIMEOUT))


def test_a_second_command_on_one_channel_is_refused(gateway):
    with paramiko_connect(gateway) as client:
        channel = client.get_transport().open_session()
        channel.exec_command("cat")
        with pytest.raises(paramiko.SSHException):
            channel.exec_command("echo second")


def test_unknown_subsystems_and_channel_types_are_refused_cleanly(gateway):
    with paramiko_connect(gateway) as client:
        channel = client.get_transport().open_session()
        with pytest.raises(paramiko.SSHException):
            channel.invoke_subsystem("no-such-subsystem")
        with pytest.raises(paramiko.ChannelException):
            client.get_transport().open_channel("no-such-type")
        _, stdout, _ = client.exec_command("echo still here")
        assert stdout.read() == b"still here\n"


def test_channels_over_the_limit_are_refused_and_the_rest_goes_on(make_gateway):
    gateway = make_gateway(options={"max_channels": 4})
    with paramiko_connect(gateway) as client:
        channels = []
        for _ in range(4):
            channels.append(client.get_transport().open_session())
            channels[-1].exec_command("cat")
        with pytest.raises(paramiko.ChannelException):
            client.get_transport().open_session()
        channels[0].sendall(b"x")
        channels[0].shutdown_write()
        assert channels[0].makefile("rb").read() == b"x"
        assert channels[0].recv_exit_status() == 0


@pytest.mark.local_only
def test_a_command_for_which_no_descriptor_is_free_fails_and_no_other(make_gateway):
    """Descriptors are passed between processes; one that could not be taken ended the whole connection."""
    gateway = make_gateway(wrapper=["prlimit", "--nofile=48:48"])
    with paramiko_connect(gateway) as client:
        running = []
        while True:
            channel = client.get_transport().open_session()
            channel.exec_command("echo started; exec cat")
            if channel.recv(8) != b"started\n":
                break
            running.append(channel)
        assert channel.recv_exit_status() == 255
        assert channel.makefile_stderr("rb").read().startswith(b"rws: ")
        assert running
        for channel in running:
            channel.sendall(b"x")
            channel.shutdown_write()
            assert channel.makefile("rb").read() == b"x"
            assert channel.recv_exit_status() == 0


def test_keepalives_are_answered(gateway):
    """clients.md 74: a server that answered keepalives with UNIMPLEMENTED."""
    done = ssh(gateway, "-oServerAliveInterval=1", "-oServerAliveCountMax=1", "sleep 4; echo ok")
    assert (done.returncode, done.stdout) == (0, b"ok\n")


@pytest.mark.core
@pytest.mark.parametrize("size", [8 << 20])
def test_data_survives_rekeying_by_the_client(gateway, size):
    """clients.md 69: transfers hang at rekey in either direction."""
    data = os.urandom(size)
    done = ssh(gateway, "-oRekeyLimit=1M", "cat", stdin=data)
    assert done.returncode == 0
    assert done.stdout == data


@pytest.mark.stress
def test_three_gibibytes_survive_rekeying(gateway):
    command = ["ssh", "-F", ssh_options(gateway), "-oRekeyLimit=1M", "sandbox@gateway"]
    for script in ("head -c 3221225472 /dev/zero | {ssh} 'wc -c'", "{ssh} 'head -c 3221225472 /dev/zero' | wc -c"):
        line = script.format(ssh=" ".join(str(word) for word in command))
        done = subprocess.run(
            ["sh", "-c", line], capture_output=True, check=True, env=environment(gateway)
        )
        assert done.stdout.strip() == b"3221225472"


@pytest.mark.stress
def test_ten_channels_at_once_many_times(gateway):
    async def run():
        async with asyncssh_connect(gateway) as connection:
            for round_number in range(200):
                commands = [connection.run(f"echo {n}; exit {n}") for n in range(10)]
                for number, done in enumerate(await asyncio.gather(*commands)):
                    assert (done.exit_status, done.stdout) == (number, f"{number}\n"), round_number

    asyncio.run(run())
