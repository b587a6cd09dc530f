# SPDX-License-Identifier: ISC
"""A client that floods, ignores its windows and does not read costs itself, and nobody else."""

import contextlib
import time

import paramiko
import pytest
from attacker import (
    MSG_CHANNEL_OPEN,
    MSG_CLOSE,
    MSG_DATA,
    MSG_EOF,
    MSG_EXTENDED_DATA,
    MSG_GLOBAL_REQUEST,
    MSG_PING,
    MSG_REQUEST,
    MSG_SERVICE_REQUEST,
    MSG_USERAUTH_REQUEST,
    MSG_WINDOW_ADJUST,
    Attacker,
    memory_peak,
    number,
    text,
)
from clients import TIMEOUT, ssh
from gateway import wait_until

# KiB; design/targets.md: what a session may take whatever its client does.
MEMORY_MAX = 32 * 1024
BLOCK = text(b"x" * 32000)


@contextlib.contextmanager
def attack(gateway, login="sandbox"):
    """A connection and the pid of its session; afterwards the gateway must be as good as before."""
    known = set(gateway.pids("session", "["))
    client = Attacker(gateway, login)
    try:
        (session,) = set(gateway.pids("session", "[")) - known
        yield client, session
    finally:
        client.cut()
    assert ssh(gateway, "echo well").stdout == b"well\n"


@pytest.mark.parametrize(
    "packet",
    [(MSG_GLOBAL_REQUEST, text("keepalive@attack"), b"\1"), (MSG_PING, text("ping"))],
    ids=["refusals", "unimplemented"],
)
def test_nothing_is_read_from_a_client_that_takes_no_answers(gateway, packet):
    """libssh queues its answers without limit."""
    with attack(gateway) as (client, session):
        client.stop_reading()
        assert client.send_many(250_000, *packet) < 250_000
        assert memory_peak(session) < MEMORY_MAX


def test_questions_about_keys_are_not_read_faster_than_answered(gateway):
    """libssh queues the requests to log in without limit; whoever knows a public key may ask for ever."""
    key = paramiko.Ed25519Key.from_private_key_file(str(gateway.key)).asbytes()
    question = (text("sandbox"), text("ssh-connection"), text("publickey"), b"\0", text("ssh-ed25519"))
    with attack(gateway, login=None) as (client, session):
        client.send(MSG_SERVICE_REQUEST, text("ssh-userauth"))
        client.send_many(15_000, MSG_USERAUTH_REQUEST, *question, text(key))
        assert memory_peak(session) < MEMORY_MAX // 3


def test_data_past_the_window_ends_the_connection(gateway):
    with attack(gateway) as (client, _):
        channel = client.open_session()
        assert client.send_many(1000, MSG_DATA, number(channel.remote_chanid), BLOCK) < 1000
        gateway.wait_log("past the window")


def test_data_on_a_channel_that_the_gateway_closed_is_not_kept(gateway):
    """libssh keeps it, up to 256 MiB, as long as the client does not close the channel too."""
    with attack(gateway) as (client, _):
        channel = client.open_session()
        client._channel_handler_table = {**client._channel_handler_table, MSG_CLOSE: lambda *_: None}
        channel.exec_command("true")
        assert channel.recv_exit_status() == 0
        assert client.send_many(1000, MSG_DATA, number(channel.remote_chanid), BLOCK) < 1000


def test_channels_that_a_client_does_not_close_count_as_open(make_gateway):
    gateway = make_gateway(options={"max_channels": 3})
    with attack(gateway) as (client, _):
        client._channel_handler_table = {**client._channel_handler_table, MSG_CLOSE: lambda *_: None}
        # One that is forgotten would be closed by paramiko.
        channels = [client.open_session() for _ in range(3)]
        for channel in channels:
            channel.exec_command("true")
            assert channel.recv_exit_status() == 0
        with pytest.raises(paramiko.ChannelException):
            client.open_session()


def test_a_flood_of_environment_leaves_the_command_and_its_connection(gateway):
    """More than a message between processes holds, which ended the session without a word."""
    with attack(gateway) as (client, _):
        channel = client.open_session()
        for count in range(256):
            client.request(channel, "env", text(f"LC_{count}"), text("y" * 32000))
        channel.exec_command("env | grep -c ^LC_")
        assert 0 < int(channel.makefile().read()) < 256
        assert channel.recv_exit_status() == 0


def test_refusals_do_not_flood_the_log(gateway):
    with attack(gateway) as (client, _):
        start = gateway.log_length()
        channel = client.open_session()
        count = 300
        for _ in range(count):
            client.request(channel, "subsystem", text("attack"))
        channel.exec_command("echo last")
        assert channel.makefile().read() == b"last\n"
        assert sum("attack" in line for line in gateway.lines[start:]) < count / 10


ALL_ONES = 0xFFFFFFFF


def run_or_end(client, channel):
    """Either the command runs as if nothing had been, or the connection has ended."""
    with contextlib.suppress(EOFError, OSError):
        client.request(channel, "exec", text("exit 7"))
    wait_until(lambda: channel.exit_status == 7 or not client.is_active(), what="an end")


@pytest.mark.parametrize(
    "requests",
    [
        [("pty-req", text("xterm"), number(ALL_ONES, ALL_ONES, ALL_ONES, ALL_ONES), text(b"\xff" * 40))],
        [("pty-req", text("t" * 200000), number(0, 0, 0, 0), text(""))],
        [("pty-req", text("xterm"), number(80, 24, 0, 0), text("")), ("window-change", number(0, ALL_ONES, 0, 0))],
        [("window-change", number(80, 24, 0, 0))],
        [("signal", text("KILL")), ("signal", text("")), ("signal", text("SEGV\0x")), ("signal", text("A" * 9000))],
        [("env", text(""), text("")), ("env", text("LC_A=B"), text("c")), ("env", text("LC_\0"), text("\0"))],
        [("env", number(ALL_ONES)), ("pty-req",), ("exec", number(7)), ("subsystem", number(ALL_ONES))],
        [("", b""), ("exit-status", number(0)), ("eow@openssh.com",), ("x" * 200000,)],
        [("break", number(ALL_ONES)), ("xon-xoff", b"\1"), ("auth-agent-req@openssh.com",)],
        [("x11-req", b"\1", text("MIT-MAGIC-COOKIE-1"), text("00"), number(0))],
    ],
    ids="pty term resize early-resize signal env short odd other x11".split(),
)
def test_odd_requests_leave_the_gateway_well(gateway, requests):
    """Refused, ignored, or the end of this connection; what follows on another one works."""
    with attack(gateway) as (client, _):
        channel = client.open_raw()
        for kind, *parts in requests:
            client.request(channel, kind, *parts)
        run_or_end(client, channel)


@pytest.mark.parametrize(
    "packet",
    [
        (MSG_DATA, number(77), text("foreign")),
        (MSG_EOF, number(ALL_ONES)),
        (MSG_CLOSE, number(12)),
        (MSG_WINDOW_ADJUST, number(0, ALL_ONES)),
        (MSG_EXTENDED_DATA, number(0, ALL_ONES), text("what")),
        (MSG_DATA, number(0), number(ALL_ONES)),
        (MSG_DATA, number(0), text("")),
        (MSG_REQUEST, number(5), text("exec"), b"\1", text("echo foreign")),
        (MSG_CHANNEL_OPEN, text("session"), number(1, 0, 0)),
        (MSG_CHANNEL_OPEN, text("session")),
        (MSG_CHANNEL_OPEN, text("direct-tcpip"), number(1, 1, 1), text("localhost"), number(22)),
        (MSG_GLOBAL_REQUEST, text("tcpip-forward"), b"\1", text("0.0.0.0"), number(22)),
        (MSG_USERAUTH_REQUEST, text("root"), text("ssh-connection"), text("none")),
        (MSG_SERVICE_REQUEST, text("ssh-connection")),
        (MSG_PING, number(ALL_ONES)),
        (21,),
        (31, text("")),
        (0,),
    ],
    ids=lambda packet: f"{packet[0]}-{len(b''.join(packet[1:]))}",
)
def test_packets_out_of_place_leave_the_gateway_well(gateway, packet):
    with attack(gateway) as (client, _):
        channel = client.open_raw()
        client.send(*packet)
        run_or_end(client, channel)


def test_a_client_that_goes_with_a_reset_leaves_nothing(gateway):
    with attack(gateway) as (client, session):
        client.open_session().exec_command("cat /dev/zero")
        client.stop_reading()
        client.sock.setsockopt(1, 13, number(1)[::-1] + number(0))  # SO_LINGER: close sends RST
        client.cut()
        wait_until(lambda: session not in gateway.pids("session"), what="the end of the session")


@pytest.mark.stress
def test_small_packets_do_not_multiply_what_is_sent(gateway):
    """A client may ask for packets of one byte, each of which takes 36 on the way."""
    with attack(gateway) as (client, session):
        channels = [client.open_raw(packet=11) for _ in range(32)]
        client.stop_reading()
        for channel in channels:
            client.request(channel, "exec", text("cat /dev/zero"))
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            assert memory_peak(session) < MEMORY_MAX
            time.sleep(1)
