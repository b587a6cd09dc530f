# SPDX-License-Identifier: ISC
"""The same talk with every client: status, binary streams, pty."""

import asyncio
import contextlib
import os

import pytest
from clients import TIMEOUT, asyncssh_connect, dbclient, paramiko_connect, plink, ssh

DATA = bytes(range(256)) * 1024


def run_paramiko(gateway, command, stdin=b"", pty=False):
    with paramiko_connect(gateway) as client:
        channel = client.get_transport().open_session()
        if pty:
            channel.get_pty()
        channel.exec_command(command)
        channel.sendall(stdin)
        channel.shutdown_write()
        stdout = channel.makefile("rb").read()
        return channel.recv_exit_status(), stdout


def run_asyncssh(gateway, command, stdin=b"", pty=False):
    async def run():
        async with asyncssh_connect(gateway) as connection:
            term_type = "xterm" if pty else None
            async with connection.create_process(
                command, encoding=None, term_type=term_type
            ) as process:
                # A command that ended already takes no more input, which is no fault.
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(stdin)
                    process.stdin.write_eof()
                done = await process.wait()
                return done.exit_status, done.stdout

    return asyncio.run(asyncio.wait_for(run(), TIMEOUT))


def run_process(runner, pty_options):
    def run(gateway, command, stdin=b"", pty=False):
        done = runner(gateway, command, stdin=stdin, options=pty_options if pty else ())
        return done.returncode, done.stdout

    return run


def run_ssh(gateway, command, stdin=b"", pty=False):
    done = ssh(gateway, *(["-tt"] if pty else []), command, stdin=stdin)
    return done.returncode, done.stdout


CLIENTS = {
    "openssh": run_ssh,
    "dropbear": run_process(dbclient, ["-t"]),
    "putty": run_process(plink, ["-t"]),
    "paramiko": run_paramiko,
    "asyncssh": run_asyncssh,
}


@pytest.fixture(params=CLIENTS, name="run")
def run_fixture(request):
    return CLIENTS[request.param]


def test_a_command_with_its_status(gateway, run):
    assert run(gateway, "echo hello; exit 42") == (42, b"hello\n")


def test_binary_input_comes_back_unchanged(gateway, run):
    assert run(gateway, "cat", DATA) == (0, DATA)


def test_a_pty_when_asked_for(gateway, run):
    status, stdout = run(gateway, "test -t 0 && test -t 1 && echo terminal; exit 3", pty=True)
    assert status == 3
    assert b"terminal" in stdout


def test_large_output_is_complete(gateway, run):
    status, stdout = run(gateway, "head -c 4000000 /dev/zero")
    assert (status, len(stdout)) == (0, 4000000)


def test_ciphers_and_key_exchanges_of_openssh(gateway):
    for cipher in ("chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr"):
        assert ssh(gateway, f"-c{cipher}", "echo in").stdout == b"in\n", cipher
    for kex in ("curve25519-sha256", "ecdh-sha2-nistp256", "diffie-hellman-group16-sha512"):
        assert ssh(gateway, f"-oKexAlgorithms={kex}", "echo in").stdout == b"in\n", kex


def test_openssh_has_no_warning_about_the_connection(gateway):
    """clients.md 70 to 73: since 10.1 it warns of a key exchange without post-quantum cryptography."""
    assert ssh(gateway, "true").returncode == 0
    done = ssh(gateway, "-oLogLevel=INFO", "true")
    assert (done.returncode, done.stderr) == (0, b"")


def test_compression_is_transparent(gateway):
    data = os.urandom(100000) + bytes(1000000)
    assert ssh(gateway, "-C", "cat", stdin=data).stdout == data


def test_an_empty_command_output_and_input(gateway, run):
    assert run(gateway, "cat") == (0, b"")
