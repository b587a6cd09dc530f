# SPDX-License-Identifier: ISC
"""The rws command line: as a person types it and as a script uses it."""

import json
import os
import pty
import re
import select
import signal
import subprocess

import pytest
from clients import TIMEOUT, environment
from gateway import BUILD, processes_with, wait_until
from rws_client import Rws, rws, rws_command

AT = "sandbox@gateway"


@pytest.fixture(autouse=True)
def clean(gateway):
    with Rws(gateway) as client:
        client.sh("find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +")


def local(*arguments):
    return subprocess.run([BUILD / "rws", *arguments], capture_output=True, text=True, timeout=TIMEOUT,
                          check=False)


@pytest.mark.core
def test_exec_passes_the_exit_code_and_both_streams(gateway):
    done = rws(gateway, "exec", AT, "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def test_exec_of_several_words_keeps_them_apart(gateway):
    assert rws(gateway, "exec", AT, "printf", "%s|", "a b", "$HOME", "--x").stdout == b"a b|$HOME|--x|"


def test_exec_takes_what_stands_behind_two_dashes_as_the_command(gateway):
    assert rws(gateway, "exec", AT, "--", "printf", "%s|", "-p", "--", "x").stdout == b"-p|--|x|"
    assert rws(gateway, "exec", AT, "--cwd", ".", "--", "echo $((1+1))").stdout == b"2\n"


def test_arguments_of_ssh_may_stand_behind_a_whole_exec(gateway):
    done = rws(gateway, "exec", AT, "--command", "echo out", "--", "-v")
    assert done.stdout == b"out\n"
    assert b"debug1:" in done.stderr


@pytest.mark.every_driver
@pytest.mark.core
def test_exec_passes_stdin_and_stdout_byte_for_byte(gateway):
    data = os.urandom(3 << 20)
    done = rws(gateway, "exec", AT, "cat", stdin=data)
    assert done.returncode == 0
    assert done.stdout == data


def test_exec_says_why_it_was_stopped(gateway):
    done = rws(gateway, "exec", AT, "--timeout", "300ms", "sleep 60")
    assert done.returncode == 124
    assert b"timeout" in done.stderr
    done = rws(gateway, "exec", AT, "--max-stream-bytes", "100KiB", "yes")
    assert done.returncode == 143
    assert b"output" in done.stderr


def test_options_become_parameters(gateway):
    rws(gateway, "mkdir", AT, "d")
    done = rws(gateway, "exec", AT, "--cwd", "d", "--env", "A=1", "--env=B=2", 'echo "$A$B ${PWD##*/}"')
    assert done.stdout == b"12 d\n"


def test_the_destination_may_come_first(gateway):
    assert b"login: sandbox" in rws(gateway, AT, "info").stdout
    assert rws(gateway, AT, "snapshot", "list").returncode == 0


def test_arguments_of_ssh_may_stand_at_the_end(gateway):
    done = subprocess.run([BUILD / "rws", "info", "nobody@nowhere", "--", "-F", "/dev/null", "-o",
                           "ProxyCommand=false"], capture_output=True, env=environment(gateway),
                          timeout=TIMEOUT, check=False)
    assert done.returncode == 69


def test_another_ssh_can_be_named(gateway):
    program = gateway.directory / "my-ssh"
    program.write_text('#!/bin/sh\necho "$@" >"$HOME/words"\nexec ssh "$@"\n')
    program.chmod(0o755)
    assert rws(gateway, "info", AT, RWS_SSH=str(program)).returncode == 0
    assert (gateway.directory / "words").read_text().endswith("-s sandbox@gateway rws\n")


@pytest.mark.every_driver
@pytest.mark.core
def test_files_are_written_read_and_listed(gateway):
    assert rws(gateway, "write", AT, "d/f", stdin=b"\0bytes\xff").returncode == 0
    assert rws(gateway, "read", AT, "d/f").stdout == b"\0bytes\xff"
    assert rws(gateway, "write", AT, "t", "--content", "one two").returncode == 0
    assert b"replaced: 1" in rws(gateway, "edit", AT, "t", "one", "three").stdout
    assert rws(gateway, "read", AT, "t").stdout == b"three two"
    lines = rws(gateway, "list", AT, "--recursive").stdout.decode().splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["path", "d", "d/f", "t"]


def test_a_table_has_its_columns_in_line(gateway):
    for name, size in (("a", 1), ("longer-name", 100000)):
        rws(gateway, "write", AT, name, stdin=b"x" * size)
    rows = rws(gateway, "list", AT).stdout.decode().splitlines()[1:]
    places = {row.index(" file ") for row in rows[1:]} | {rows[0].index(" type ")}
    assert len(places) == 1


def test_json_is_for_programs(gateway):
    result = json.loads(rws(gateway, "exec", AT, "--json", "echo hi; exit 3").stdout)
    assert (result["exit_code"], result["stdout"]) == (3, "hi\n")
    assert json.loads(rws(gateway, "--json", "snapshot", "list", AT).stdout) == {"snapshots": []}


@pytest.mark.parametrize(
    "words, status, code",
    [
        (["read", AT, "nope"], 66, "NOT_FOUND"),
        (["read", AT, "../x"], 77, "OUTSIDE_ROOT"),
        (["read", AT, "."], 73, "IS_DIRECTORY"),
        (["mkdir", AT, "x", "--mode", "1"], 64, "INVALID"),
        (["exec", AT, "--timeout", "soon", "true"], 64, "INVALID"),
        (["exec", AT, "--background", "maybe", "true"], 64, "INVALID"),
        (["signal", AT, "77"], 66, "NOT_FOUND"),
        (["write", AT], 64, "INVALID"),
        (["list", AT, "a", "b"], 64, "INVALID"),
        (["nope", AT], 64, "INVALID"),
        (["exec"], 64, "INVALID"),
        (["exec", "-oProxyCommand=id"], 64, "INVALID"),
        (["input", AT], 64, "INVALID"),
    ],
)
def test_exit_codes_tell_errors_apart(gateway, words, status, code):
    done = rws(gateway, *words)
    assert done.returncode == status
    assert f"rws: {code}: ".encode() in done.stderr
    assert done.stdout == b""


def test_busy_has_an_exit_code_of_its_own(gateway):
    rws(gateway, "write", AT, "f", stdin=b"x")
    assert b"job " in rws(gateway, "exec", AT, "--detach", "sleep 4731").stderr
    assert rws(gateway, "remove", AT, "f").returncode == 75
    jobs = json.loads(rws(gateway, "jobs", AT, "--json").stdout)["jobs"]
    number = str([job for job in jobs if job["state"] == "running"][0]["job"])
    assert rws(gateway, "signal", AT, number, "KILL").returncode == 0
    wait_until(lambda: rws(gateway, "remove", AT, "f").returncode == 0)


def test_a_gateway_that_is_not_there_is_unavailable(gateway):
    done = subprocess.run([BUILD / "rws", "-S", "-oProxyCommand=false", "info", "a@b"],
                          capture_output=True, env=environment(gateway), timeout=TIMEOUT, check=False)
    assert done.returncode == 69


def test_interrupt_aborts_the_command_and_exits_130(gateway):
    process = subprocess.Popen(rws_command(gateway, "exec", AT, "echo up; exec sleep 4732"),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment(gateway))
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130
    assert b"ABORTED" in errors
    wait_until(lambda: not processes_with("sleep 4732"))


def on_terminal(gateway, *arguments, stdin=subprocess.DEVNULL, stdout=None):
    """Runs rws with a terminal on stdout and stderr; returns its status and what the terminal showed."""
    master, slave = pty.openpty()
    process = subprocess.Popen(rws_command(gateway, *arguments), stdin=stdin, stderr=slave,
                               stdout=slave if stdout is None else stdout, env=environment(gateway))
    os.close(slave)
    shown = b""
    while select.select([master], [], [], TIMEOUT)[0]:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        shown += data
    os.close(master)
    return process.wait(TIMEOUT), shown


def test_a_terminal_gets_colours_and_no_control_characters_of_others(gateway):
    rws(gateway, "exec", AT, "touch \"$(printf 'evil\\033[31mname')\"")
    status, shown = on_terminal(gateway, "list", AT)
    assert status == 0
    assert b"\x1b[1m" in shown
    assert b"evil\\x1b[31mname" in shown


def test_long_transfers_show_a_progress_bar_on_a_terminal(gateway, tmp_path):
    rws(gateway, "exec", AT, "head -c 3000000 /dev/urandom >f")
    made = json.loads(rws(gateway, "snapshot", "create", AT, "--json").stdout)
    with open(tmp_path / "out.tar", "wb") as out:
        status, shown = on_terminal(gateway, "snapshot", "export", AT, made["id"], stdout=out)
    assert status == 0
    assert b"100%" in shown
    with open(tmp_path / "out.tar", "rb") as data:
        status, shown = on_terminal(gateway, "snapshot", "import", AT, stdin=data)
    assert status == 0
    assert re.search(rb"100% .* of ", shown)


def test_an_archive_is_not_written_to_a_terminal(gateway):
    status, shown = on_terminal(gateway, "snapshot", "export", AT, "x")
    assert status == 64
    assert b"terminal" in shown


# Without a gateway


def test_help_is_there_for_every_operation():
    names = re.findall(r"^  (\w+(?: \w+)?)  ", local("help").stdout, re.M)
    assert {"exec", "snapshot create", "sandbox stop"} <= set(names)
    for name in names:
        done = local("help", *name.split())
        assert done.returncode == 0
        assert done.stdout.startswith(f"usage: rws {name} LOGIN@GATEWAY")


def test_the_completion_of_bash_completes():
    script = local("completion", "bash").stdout + """
COMP_WORDS=(rws "$@"); COMP_CWORD=$#; _rws; printf '%s\\n' "${COMPREPLY[@]}"
"""
    complete = lambda *words: subprocess.run(["bash", "-c", script, "bash", *words], text=True,
                                             capture_output=True, check=True).stdout.split()
    assert complete("ex") == ["exec"]
    assert complete("sn") == ["snapshot"]
    assert complete("snapshot", "re") == ["restore"]
    assert complete("exec", "a@b", "--max-o") == ["--max-output-bytes"]
    assert complete("snapshot", "restore", "a@b", "--d") == ["--dry-run"]


def test_completions_of_the_other_shells_are_there():
    assert "#compdef rws" in local("completion", "zsh").stdout
    assert "complete -c rws" in local("completion", "fish").stdout
    assert local("completion", "tcsh").returncode == 64


def test_ssh_config_is_understood_by_ssh(tmp_path):
    (tmp_path / "config").write_text(local("ssh-config", "box+a@gw.example:2222").stdout)
    shown = subprocess.run(["ssh", "-G", "-F", tmp_path / "config", "box+a.gw.example"], text=True,
                           capture_output=True, check=True).stdout
    for line in ("user box+a", "hostname gw.example", "port 2222", "controlmaster auto",
                 "serveraliveinterval 15"):
        assert line in shown.splitlines()


@pytest.mark.parametrize(
    "destination,words",
    [
        ("box@gw", "-s box@gw rws"),
        ("box+a@gw:2200", "-p 2200 -s box+a@gw rws"),
        ("box=id@[::1]:2200", "-p 2200 -s box=id@::1 rws"),
        ("box@fe80::1", "-s box@fe80::1 rws"),
        ("ssh://box@gw:2200", "-s ssh://box@gw:2200 rws"),
        ("box.gw", "-s box.gw rws"),
        ("[-oProxyCommand=x]", "-s [-oProxyCommand=x] rws"),
        ("@-oProxyCommand=x", "-s @-oProxyCommand=x rws"),
    ],
)
def test_a_destination_may_name_the_port(tmp_path, destination, words):
    program = tmp_path / "my-ssh"
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/words\n')
    program.chmod(0o755)
    for command in (["info", destination], [destination, "info"]):
        subprocess.run([BUILD / "rws", *command], env={**os.environ, "RWS_SSH": program},
                       capture_output=True, timeout=TIMEOUT, check=False)
        assert (tmp_path / "words").read_text() == f"{words}\n"
        (tmp_path / "words").unlink()


@pytest.mark.parametrize(
    "words,start",
    [
        (["help", "ssh-config"], "usage: rws ssh-config LOGIN@GATEWAY[:PORT]\n"),
        (["ssh-config", "--help"], "usage: rws ssh-config LOGIN@GATEWAY[:PORT]\n"),
        (["help", "doctor"], "usage: rws doctor"),
        (["help", "completion"], "usage: rws completion bash|zsh|fish\n"),
        (["help", "help"], "usage: rws help [OPERATION]\n"),
        (["help", "snapshot"], "  snapshot create "),
        (["help", "admin"], "usage: rws admin"),
        (["-h"], "usage: rws OPERATION"),
        (["-S", "-v", "doctor"], "ok       rws"),
        (["--json", "completion", "bash"], "#"),
    ],
)
def test_whatever_help_names_can_be_asked_about(words, start):
    done = local(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(start)


@pytest.mark.parametrize(
    "words, hint",
    [
        (["exec", AT, "--nope", "ls"], "Try: rws help exec\n"),
        (["snapshot", "show", AT, "a", "b"], "Try: rws help snapshot show\n"),
        (["snapshot", AT], "which snapshot operation? rws help snapshot lists them\n"),
        ([AT, "sandbox"], "which sandbox operation? rws help sandbox lists them\n"),
        (["nope", AT], "Try: rws help\n"),
    ],
)
def test_wrong_usage_says_where_help_is(words, hint):
    done = local(*words)
    assert done.returncode == 64
    assert hint in done.stderr


def test_doctor_looks_at_the_installation():
    done = local("doctor")
    assert done.returncode == 0, done.stdout
    for what in ("ssh client", "rwsd", "rwsd-worker", "rwsd-records", "bubblewrap", "user namespaces"):
        assert re.search(rf"^ok +{what}", done.stdout, re.M)


def test_rws_links_no_ssh_library():
    linked = subprocess.run(["ldd", BUILD / "rws"], capture_output=True, text=True, check=True).stdout
    assert "libssh" not in linked
    assert "libcurl" not in linked
