# SPDX-License-Identifier: ISC
"""core/scripts/command.sh and signal.sh: the life of a command, and who can lie about it."""

import os
import pty
import re
import select
import signal

import pytest

import shells

TOKEN = b"5f4dcc3b5aa765d61d8327deb882cf99"
START = re.compile(rb"\036rws:" + TOKEN + rb" start (\d+) (\d+)\n")
END = re.compile(rb"\036rws:" + TOKEN + rb" end (exited|signaled) (\d+)\n")
ALL_BYTES = bytes(range(256)) * 64


class Outcome:
    """What came out between the markers, and what the markers say."""

    def __init__(self, stdout, stderr):
        start, end = START.search(stdout), END.search(stdout)
        assert start and end, stdout
        self.pid, self.start_time = int(start[1]), int(start[2])
        self.noise = stdout[: start.start()]
        self.stdout = stdout[start.end() : end.start()]
        self.after = stdout[end.end() :]
        self.kind, self.number = end[1].decode(), int(end[2])
        errors_end = END.search(stderr)
        assert errors_end and errors_end.groups() == end.groups()
        self.stderr = stderr[: errors_end.start()]


def run(shell, directory, *command, data=b"", background="kill", where=None, grace=1, **options):
    arguments = ["pipe", background, grace, where or directory, *command]
    _, stdout, stderr = shells.run(
        shell, "command", arguments, directory, TOKEN + b"\n" + TOKEN + b"\n" + data, **options
    )
    return Outcome(stdout, stderr)


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("status", [0, 1, 77, 124, 127, 128, 129, 137, 143, 255])
def test_an_exit_status_is_told_as_such_whatever_its_number(shell, tmp_path, status):
    outcome = run(shell, tmp_path, "sh", "-c", f"exit {status}")
    assert (outcome.kind, outcome.number) == ("exited", status)


@pytest.mark.parametrize("name", ["HUP", "INT", "KILL", "TERM", "USR1", "SEGV"])
def test_a_death_by_signal_is_told_apart_from_an_exit_status(shell, tmp_path, name):
    outcome = run(shell, tmp_path, "sh", "-c", f"ulimit -c 0; kill -{name} $$")
    assert (outcome.kind, outcome.number) == ("signaled", getattr(signal, f"SIG{name}"))


def test_all_bytes_pass_both_ways_and_stderr_stays_apart(shell, tmp_path):
    outcome = run(shell, tmp_path, "sh", "-c", "cat; printf 'to\\0stderr' >&2", data=ALL_BYTES)
    assert outcome.stdout == ALL_BYTES
    assert outcome.stderr == b"to\0stderr"
    assert (outcome.noise, outcome.after) == (b"", b"")


def test_the_command_gets_its_arguments_unchanged(shell, tmp_path):
    words = ["", "two words", "$HOME", "`id`", "a'b\"c", "-n", "line\nbreak", "*", "\\"]
    outcome = run(shell, tmp_path, "printf", "<%s>", *words)
    assert outcome.stdout == "".join(f"<{word}>" for word in words).encode()


def test_no_word_of_the_script_is_a_variable_that_the_command_would_lose(shell, tmp_path):
    words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", shells.text("command")))
    # Ours by their name, and what a shell or this test sets by itself.
    words = {word for word in words if not word.startswith("_rws")} - {"IFS", "HOME", "_"}
    environment = {word: f"mine: {word}" for word in words}
    outcome = run(shell, tmp_path, "env", "-0", environment=environment)
    found = dict(entry.split(b"=", 1) for entry in outcome.stdout.split(b"\0") if entry)
    assert {word: found.get(word.encode(), b"").decode() for word in words} == environment


@pytest.mark.parametrize("script", ["command", "launch", "transport", "terminal"])
def test_what_surrounds_a_command_has_only_variables_of_ours(script):
    names = set(re.findall(r"(?m)(?:^|[;&|({]) *\t*([A-Za-z_]\w*)=|\bread -r (\w+)|\bfor (\w+)", shells.text(script)))
    names = {name for found in names for name in found if name}
    # The last is python3's, in terminal.sh.
    names -= {"IFS", "LC_ALL", "SHELL", "number"}
    assert names and [name for name in names if not name.startswith(("_rws_", "RWS_"))] == []


def test_the_command_leads_a_session_and_a_group_of_its_own(shell, tmp_path):
    outcome = run(shell, tmp_path, "sh", "-c", "read -r l </proc/$$/stat; echo $$ $l")
    pid, fields = outcome.stdout.split(b" ", 1)
    group, session = fields.rpartition(b")")[2].split()[2:4]
    assert int(pid) == int(group) == int(session) == outcome.pid


def test_a_missing_directory_is_replaced_by_home_with_a_warning(shell, tmp_path):
    """field/clients.md 32."""
    outcome = run(shell, tmp_path, "pwd", where=tmp_path / "not there")
    assert outcome.stdout.strip().decode() == str(tmp_path)
    assert b"not there is not there" in outcome.stderr


def test_a_command_that_is_not_there_ends_with_127(shell, tmp_path):
    outcome = run(shell, tmp_path, "no-such-program")
    assert (outcome.kind, outcome.number) == ("exited", 127)
    assert b"no-such-program" in outcome.stderr


def test_what_is_left_running_is_ended_even_when_it_ignores_term(shell, tmp_path):
    script = "trap '' HUP TERM; sleep 86400 >/dev/null 2>&1 & echo $!"
    outcome = run(shell, tmp_path, "sh", "-c", script)
    assert (outcome.kind, outcome.number) == ("exited", 0)
    assert not lives(int(outcome.stdout))


def test_what_is_to_be_kept_lives_on_and_the_wrapper_waits_for_it(shell, tmp_path):
    arguments = ["pipe", "keep", 1, tmp_path, "sh", "-c", "sleep 86400 >/dev/null 2>&1 & echo $!"]
    process = shells.start(shell, "command", arguments, tmp_path)
    process.stdin.write(TOKEN + b"\n" + TOKEN + b"\n")
    process.stdin.close()
    stdout = process.stdout.read()
    kept = int(Outcome(stdout, process.stderr.read()).stdout)
    assert lives(kept) and process.poll() is None
    os.kill(kept, signal.SIGKILL)
    assert process.wait(shells.TIMEOUT) == 0


def test_a_command_cannot_forge_a_marker(shell, tmp_path):
    """It does not know the token: whatever it prints is output, and its real end is told."""
    forged = (
        b"\036rws: end exited 0\n\036rws:"
        + b"0" * 32
        + b" end exited 0\n\036rws:"
        + TOKEN[:-1]
        + b" end exited 0\n"
    )
    outcome = run(shell, tmp_path, "sh", "-c", "cat; exit 9", data=forged)
    assert outcome.stdout == forged
    assert (outcome.kind, outcome.number) == ("exited", 9)


def test_the_token_cannot_be_found_by_another_process(shell, tmp_path):
    """In no argument, no environment, no open file and no file: everything that can be read of all
    processes of the same user is searched while the command runs."""
    spy = (
        "for p in /proc/[0-9]*; do cat $p/cmdline $p/environ 2>/dev/null;"
        " for f in $p/fd/*; do readlink $f; case $(readlink $f) in"
        " /*) [ -f $f ] && [ -r $f ] && [ $(stat -Lc %s $f) -lt 1000000 ] && cat $f;; esac; done;"
        " done 2>/dev/null; env; set; grep -rl . \"$HOME\" /tmp/rws* 2>/dev/null | head -n 100"
    )
    outcome = run(shell, tmp_path, "sh", "-c", spy, data=b"the client's")
    assert b"sh" in outcome.stdout
    assert TOKEN not in outcome.stdout and TOKEN not in outcome.stderr


def test_the_rest_of_stdin_is_the_commands_to_the_byte(shell, tmp_path):
    outcome = run(shell, tmp_path, "head", "-c", "3", data=b"\n\n\nmore")
    assert outcome.stdout == b"\n\n\n"
    assert run(shell, tmp_path, "wc", "-c", data=b"").stdout.strip() == b"0"


def send(shell, tmp_path, *arguments):
    return shells.run(shell, "signal", arguments, tmp_path)[1].strip()


def test_a_signal_reaches_the_whole_group(shell, tmp_path):
    script = "sleep 86400 & sleep 86400 & echo $!; wait"
    process = shells.start(shell, "command", ["pipe", "kill", 1, tmp_path, "sh", "-c", script], tmp_path)
    process.stdin.write(TOKEN + b"\n" + TOKEN + b"\n")
    process.stdin.flush()
    start = START.match(process.stdout.readline())
    grandchild = int(process.stdout.readline())
    assert send(shell, tmp_path, start[1].decode(), start[2].decode(), "TERM") == b"sent"
    assert END.match(process.stdout.readline()).groups() == (b"signaled", b"15")
    process.communicate(timeout=shells.TIMEOUT)
    assert not lives(grandchild)


def test_a_number_that_belongs_to_another_process_now_is_left_alone(shell, tmp_path):
    process = shells.start(shell, "command", ["pipe", "kill", 1, tmp_path, "sh", "-c", "echo; cat"], tmp_path)
    process.stdin.write(TOKEN + b"\n" + TOKEN + b"\n")
    process.stdin.flush()
    start = START.match(process.stdout.readline())
    pid, start_time = start[1].decode(), int(start[2])
    process.stdout.readline()
    assert send(shell, tmp_path, pid, start_time + 1, "KILL") == b"gone"
    assert send(shell, tmp_path, os.getpid(), start_time, "KILL") == b"gone"
    assert lives(int(pid))
    process.stdin.close()
    assert END.match(process.stdout.readline()).groups() == (b"exited", b"0")
    process.stdin = None
    process.communicate(timeout=shells.TIMEOUT)
    assert send(shell, tmp_path, pid, start_time, "KILL") == b"gone"


def read_terminal(fd, pattern):
    """Reads until the pattern is there; a pty says EIO when its last process is gone."""
    data = b""
    while not re.search(pattern, data):
        assert select.select([fd], [], [], shells.TIMEOUT)[0], data
        try:
            piece = os.read(fd, 65536)
        except OSError:
            piece = b""
        assert piece, data
        data += piece
    return data


def test_on_a_pty_the_wrapper_becomes_the_command(shell, tmp_path):
    """The token is echoed by the terminal, but only before the start marker."""
    pid, terminal = pty.fork()
    if pid == 0:
        path = f"{shells.directory_of(shell, tmp_path)}:{os.environ['PATH']}"
        program = [*shells.SHELLS[shell], "-c", shells.text("command"), "command"]
        program += ["pty", "kill", "1", str(tmp_path), "sh", "-c", "tty; echo $$; exit 5"]
        os.execvpe(program[0], program, {"PATH": path, "HOME": str(tmp_path)})
    os.write(terminal, TOKEN + b"\n")
    data = read_terminal(terminal, rb"start \d+ \d+\r\n.*\r\n.*\r\n")
    start = re.search(rb"\036rws:" + TOKEN + rb" start (\d+) \d+\r\n", data)
    name, number = data[start.end() :].split(b"\r\n")[:2]
    assert name.startswith(b"/dev/") and int(number) == int(start[1]) == pid
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    os.close(terminal)
