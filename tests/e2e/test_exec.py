# SPDX-License-Identifier: ISC
"""Commands: exit status, the three streams byte for byte, environment, limits, what is left behind."""

import asyncio
import hashlib
import os
import subprocess
import uuid

import pytest
from clients import TIMEOUT, asyncssh_connect, paramiko_connect, ssh, ssh_start
from gateway import processes_with, wait_until

DRIVERS = ("local", "e2b", "daytona", "vercel")

ALL_BYTES = bytes(range(256))


@pytest.mark.core
def test_every_exit_status_arrives(gateway):
    with paramiko_connect(gateway) as client:
        for status in range(256):
            channel = client.get_transport().open_session()
            channel.exec_command(f"exit {status}")
            assert channel.recv_exit_status() == status


@pytest.mark.core
def test_exit_status_is_cut_to_a_byte_as_in_a_shell(gateway):
    """clients.md 6: exit 256 is 0, exit 333 is 77, with and without a pty."""
    for options in ([], ["-tt"]):
        assert ssh(gateway, *options, "sh -c 'exit 256'").returncode == 0
        assert ssh(gateway, *options, "sh -c 'exit 333'").returncode == 77


@pytest.mark.core
def test_all_byte_values_pass_both_ways(gateway):
    data = ALL_BYTES * 64
    done = ssh(gateway, "cat", stdin=data)
    assert done.returncode == 0
    assert done.stdout == data
    assert done.stderr == b""


@pytest.mark.core
def test_large_binary_data_passes_both_ways(gateway):
    data = os.urandom(16 << 20)
    done = ssh(gateway, "cat", stdin=data)
    assert done.returncode == 0
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()


@pytest.mark.core
def test_much_on_stderr_beside_stdout_is_complete(gateway):
    """clients.md 2: a stall after 2 MiB of stderr."""
    done = ssh(gateway, "head -c 8388608 /dev/zero >&2; echo ok")
    assert done.returncode == 0
    assert done.stdout == b"ok\n"
    assert done.stderr == bytes(8 << 20)


def test_both_streams_are_exact_when_written_in_turns(gateway):
    done = ssh(gateway, "i=0; while [ $i -lt 2000 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done")
    assert done.stdout == b"".join(b"o%d\n" % i for i in range(2000))
    assert done.stderr == b"".join(b"e%d\n" % i for i in range(2000))


@pytest.mark.core
def test_end_of_stdin_does_not_end_the_command(gateway):
    """clients.md 12: the first fix closed the channel at stdin's end and cut the output."""
    data = b"x" * 1000003
    done = ssh(gateway, "wc -c; head -c 3000000 /dev/zero | wc -c; exit 7", stdin=data)
    assert done.stdout.split() == [b"1000003", b"3000000"]
    assert done.returncode == 7


def test_stdin_stays_open_until_the_client_ends_it(gateway):
    with ssh_start(gateway, "read a; echo got $a; read b || echo end") as client:
        client.stdin.write(b"one\n")
        client.stdin.flush()
        assert client.stdout.readline() == b"got one\n"
        client.stdin.close()
        assert client.stdout.readline() == b"end\n"
        assert client.wait(TIMEOUT) == 0


def test_a_command_that_does_not_read_its_input_still_ends(gateway):
    done = ssh(gateway, "exit 5", stdin=bytes(4 << 20))
    assert done.returncode == 5


@pytest.mark.core
def test_no_pty_unless_requested(gateway):
    """clients.md 10."""
    done = ssh(gateway, "tty; test -t 0 || test -t 1 || test -t 2; echo $?")
    assert done.stdout == b"not a tty\n1\n"


@pytest.mark.core
def test_newlines_are_not_changed(gateway):
    """clients.md 10: \\r\\n in captured output."""
    assert ssh(gateway, r"printf 'a\nb\n\r\n'").stdout == b"a\nb\n\r\n"


@pytest.mark.core
def test_nothing_of_ours_is_on_stdout(gateway):
    """clients.md 24 and 25: a line of progress on stdout breaks IDE scripts, scp and rsync."""
    done = ssh(gateway, "-T", "sh", login="sandbox+fresh", stdin=b"echo hello\n")
    assert done.stdout == b"hello\n"
    assert done.stderr == b""


def test_a_script_on_the_stdin_of_a_shell_runs_whole(gateway):
    """ssh -T without a command is a shell that reads its commands from the client."""
    script = b"x=1\n" * 5000 + b"echo $x done; exit 9\n"
    done = ssh(gateway, "-T", stdin=script)
    assert done.stdout == b"1 done\n"
    assert done.returncode == 9


def test_a_large_command_line_arrives_whole(gateway):
    text = "x" * 100000
    assert ssh(gateway, f"printf %s {text} | wc -c").stdout.strip() == b"100000"


def test_quotes_and_bytes_of_the_command_line_are_kept(gateway):
    word = "a'b\"c\\d $(e) `f` \t * ? é €"
    quoted = "'" + word.replace("'", "'\\''") + "'"
    assert ssh(gateway, f"printf %s {quoted}").stdout == word.encode()


def test_a_missing_command_is_127_with_the_shells_words(gateway):
    done = ssh(gateway, "no-such-command-here")
    assert done.returncode == 127
    assert b"no-such-command-here" in done.stderr


def test_output_of_a_short_command_is_never_lost(gateway):
    """clients.md 9: the end of the command taken for the end of its output."""
    with paramiko_connect(gateway) as client:
        for number in range(200):
            _, stdout, _ = client.exec_command(f"echo {number}")
            assert stdout.read() == b"%d\n" % number


@pytest.mark.core
def test_death_by_signal_arrives_by_name(gateway):
    """clients.md 5: signal death reported as 4294967295 or 255."""

    async def run():
        async with asyncssh_connect(gateway) as connection:
            for name in ("TERM", "KILL", "SEGV", "INT", "HUP", "USR1"):
                done = await connection.run(f"kill -{name} $$")
                assert done.exit_signal is not None, name
                assert done.exit_signal[0] == name
                assert done.exit_status == -1

    asyncio.run(run())


def test_a_command_that_a_shell_reports_as_killed_is_a_status(gateway):
    """Only the death of the command itself is exit-signal: its child's is the shell's 128 + N."""
    assert ssh(gateway, "sh -c 'kill -TERM $$'; exit $?").returncode == 143


@pytest.mark.core
def test_commands_know_their_login_and_sandbox(gateway, provider):
    done = ssh(gateway, "env", login="sandbox+names")
    names = dict(line.partition("=")[::2] for line in done.stdout.decode().splitlines())
    assert names["RWS_LOGIN"] == "sandbox+names"
    assert names["RWS_DRIVER"] == provider.name
    assert names["RWS_SANDBOX_ID"]


def test_only_accepted_environment_requests_arrive(gateway):
    done = ssh(
        gateway,
        "-oSendEnv=LANG",
        "-oSendEnv=LC_TEST",
        "-oSendEnv=EVIL",
        "-oSendEnv=LD_PRELOAD",
        "env",
        LANG="de_DE.UTF-8",
        LC_TEST="a b",
        EVIL="1",
        LD_PRELOAD="",
    )
    lines = done.stdout.decode().splitlines()
    assert "LANG=de_DE.UTF-8" in lines
    assert "LC_TEST=a b" in lines
    assert not [line for line in lines if line.startswith(("EVIL=", "LD_PRELOAD="))]


def test_a_block_sets_and_accepts_environment(make_gateway):
    gateway = make_gateway(
        logins={"sandbox": {"env": ["A=1", "B=two words"], "accept_env": ["MINE_*", "OTHER"]}}
    )
    done = ssh(
        gateway, "-oSendEnv=MINE_X", "-oSendEnv=OTHER", "-oSendEnv=LC_ALL", "env", MINE_X="x", OTHER="y"
    )
    lines = done.stdout.decode().splitlines()
    for expected in ("A=1", "B=two words", "MINE_X=x", "OTHER=y"):
        assert expected in lines
    assert not [line for line in lines if line.startswith("LC_ALL=")]


@pytest.mark.local_only
def test_a_local_command_has_an_ordinary_limit_of_descriptors(make_gateway):
    """Not that of the gateway, which raises its own as far as it goes: select(2) breaks above 1024."""
    gateway = make_gateway()
    soft, hard = ssh(gateway, "ulimit -Sn; ulimit -Hn").stdout.split()
    assert int(soft) == 1024 or soft == hard


def test_the_same_sandbox_for_all_connections_of_a_login(gateway):
    """clients.md 40: every connection gets a new container."""
    name = f"file-{uuid.uuid4()}"
    assert ssh(gateway, f"echo here >{name}").returncode == 0
    assert ssh(gateway, f"cat {name}").stdout == b"here\n"
    assert ssh(gateway, f"cat {name}", login="sandbox+other").returncode != 0


def test_a_command_past_its_timeout_is_124(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"timeout": "1s", "kill_grace": "500ms"}})
    mark = f"31536{uuid.uuid4().int % 10**9:09}"
    done = ssh(gateway, f"trap '' TERM; echo begun; sleep {mark}; sleep {mark}")
    assert done.returncode == 124
    assert done.stdout == b"begun\n"
    wait_until(lambda: not processes_with(mark), what="end of what timed out")


def test_output_past_its_limit_is_143_and_says_so(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"max_stream_bytes": "1MiB"}})
    done = ssh(gateway, "head -c 1048576 /dev/zero")
    assert (done.returncode, len(done.stdout)) == (0, 1 << 20)
    done = ssh(gateway, "yes")
    assert done.returncode == 143
    assert len(done.stdout) == 1 << 20
    assert done.stderr.count(b"\n") == 1 and b"1 MiB" in done.stderr


@pytest.mark.parametrize("background", ["kill", "keep"])
def test_background_processes_are_killed_or_kept(make_gateway, background):
    gateway = make_gateway(logins={"sandbox": {"background": background}})
    mark = f"31536{uuid.uuid4().int % 10**9:09}"
    done = ssh(gateway, f"sleep {mark} >/dev/null 2>&1 </dev/null & echo started")
    assert (done.returncode, done.stdout) == (0, b"started\n")
    if background == "kill":
        wait_until(lambda: not processes_with(mark), what="end of the background process")
    else:
        assert ssh(gateway, "true").returncode == 0
        assert processes_with(mark)


def test_a_background_process_that_holds_stdout_does_not_hold_the_channel(gateway):
    """The exit status arrives; with background = kill what held the pipe is gone by then."""
    mark = f"31536{uuid.uuid4().int % 10**9:09}"
    done = ssh(gateway, f"sleep {mark} & echo started; exit 3", timeout=60)
    assert (done.returncode, done.stdout) == (3, b"started\n")


def test_a_working_directory_that_was_removed_is_replaced(make_gateway):
    """clients.md 32: crash when the work directory is missing."""
    gateway = make_gateway(logins={"sandbox": {"cwd": "work", "create_root": "on"}})
    assert ssh(gateway, "pwd").returncode == 0
    ssh(gateway, "rm -rf \"$PWD\"")
    done = ssh(gateway, "pwd")
    assert done.returncode == 0
    assert done.stdout.startswith(b"/")


@pytest.mark.parametrize("cwd", ["..", "work/../..", "/tmp"])
def test_a_working_directory_outside_the_root_is_refused(make_gateway, cwd):
    gateway = make_gateway(logins={"sandbox": {"cwd": cwd}})
    done = ssh(gateway, "echo ran")
    assert (done.returncode, done.stdout) == (255, b"")
    assert done.stderr.startswith(b"rws: OUTSIDE_ROOT: ")


def test_a_restarted_gateway_finds_the_same_sandbox(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"on_dispose": "keep"}})
    assert ssh(gateway, "echo kept >file").returncode == 0
    gateway.end()
    gateway.start()
    assert ssh(gateway, "cat file").stdout == b"kept\n"


@pytest.mark.stress
def test_ten_thousand_exit_statuses_are_right(gateway):
    """design/targets.md, "Never": a wrong or missing exit status."""
    with paramiko_connect(gateway) as client:
        for number in range(10000):
            channel = client.get_transport().open_session()
            channel.exec_command(f"exit {number % 256}")
            assert channel.recv_exit_status() == number % 256


@pytest.mark.stress
def test_two_gibibytes_pass_each_way(gateway):
    """design/targets.md, "Never": a lost, added or changed byte."""
    size = 2 << 30
    seed = f"openssl enc -aes-128-ctr -nosalt -K {'0' * 32} -iv {'0' * 32} -in /dev/zero 2>/dev/null"
    expected = subprocess.run(
        f"{seed} | head -c {size} | sha256sum", shell=True, check=True, capture_output=True
    ).stdout
    with ssh_start(gateway, "sha256sum") as client:
        with subprocess.Popen(
            f"{seed} | head -c {size}", shell=True, stdout=client.stdin
        ) as source:
            source.wait()
        assert client.communicate(timeout=600)[0] == expected
    with ssh_start(gateway, "cat") as client:
        with subprocess.Popen(
            f"{seed} | head -c {size}", shell=True, stdout=client.stdin
        ) as source:
            client.stdin.close()
            client.stdin = None
            echoed = subprocess.run(
                ["sha256sum"], stdin=client.stdout, check=True, capture_output=True
            )
            source.wait()
        assert echoed.stdout == expected
