# SPDX-License-Identifier: ISC
"""scp in both protocols, on both backends; the old one is served by the gateway itself."""

import os
import subprocess

import pytest
from clients import TIMEOUT, environment, host_key_fingerprint, ssh, ssh_options
from files import contents, describe, files_gateway_fixture, fresh, make_tree, remote, run, scp
from gateway import wait_until

gateway = files_gateway_fixture()

PROTOCOLS = pytest.mark.parametrize("protocol", ["-O", "-s"])


@pytest.mark.every_driver
@pytest.mark.core
@PROTOCOLS
def test_a_tree_goes_there_and_back_with_modes_and_times(gateway, protocol, tmp_path):
    make_tree(tmp_path / "tree", links=False)
    fresh(gateway, "scp")
    assert scp(gateway, protocol, "-rp", "tree", "gateway:scp/", cwd=tmp_path).returncode == 0
    assert scp(gateway, protocol, "-rp", "gateway:scp/tree", "back", cwd=tmp_path).returncode == 0
    assert describe(tmp_path / "back") == describe(tmp_path / "tree")
    assert (tmp_path / "back/run").stat().st_mtime == 1_100_000_000
    assert remote(gateway, "stat -c '%a %Y' scp/tree/run") == "750 1100000000\n"
    assert remote(gateway, "find . -name '.rws-*'") == ""


@PROTOCOLS
def test_where_files_go(gateway, protocol, tmp_path):
    """zed#62610: a target with a slash at its end works, too."""
    fresh(gateway, "to")
    remote(gateway, "mkdir to/d; echo old >to/f; chmod 600 to/f")
    (tmp_path / "f").write_text("new")
    for target in ["to/d/", "to/d", "to/f", "to/g"]:
        assert scp(gateway, protocol, "f", f"gateway:{target}", cwd=tmp_path).returncode == 0
    assert remote(gateway, "cd to && cat f g d/f; stat -c %a f") == "newnewnew600\n"
    done = scp(gateway, protocol, "f", "f", "gateway:to/f", cwd=tmp_path)
    assert done.returncode != 0
    assert scp(gateway, protocol, "f", "gateway:to/none/f", cwd=tmp_path).returncode != 0
    assert remote(gateway, "ls to") == "d\nf\ng\n"


@PROTOCOLS
def test_patterns_are_expanded_over_there(gateway, protocol, tmp_path):
    fresh(gateway, "glob")
    remote(gateway, "cd glob && mkdir d && touch a.c b.c c.h .hid.c d/x.c 'odd name.c'")
    (tmp_path / "out").mkdir()
    done = scp(gateway, protocol, "gateway:glob/*.c", "gateway:glob/d/?.c", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path / "out")) == ["a.c", "b.c", "odd name.c", "x.c"]
    assert scp(gateway, protocol, "gateway:glob/*.none", "out", cwd=tmp_path).returncode != 0


@PROTOCOLS
def test_odd_names_and_links(gateway, protocol, tmp_path):
    fresh(gateway, "odd")
    name = "it's a \"name\"; $HOME `x` \\ *"
    (tmp_path / name).write_text("odd")
    assert scp(gateway, protocol, f"./{name}", "gateway:odd/", cwd=tmp_path).returncode == 0
    with (tmp_path / "listing").open("w") as listing:
        listing.write(remote(gateway, "ls odd"))
    assert (tmp_path / "listing").read_text() == name + "\n"
    remote(gateway, "cd odd && ln -s d link && mkdir d && echo through >d/f && ln -s d/f fl")
    assert scp(gateway, protocol, "-r", "gateway:odd/link", "got", cwd=tmp_path).returncode == 0
    assert contents(tmp_path / "got")["f"][0] == "file"
    assert scp(gateway, protocol, "gateway:odd/fl", "fl", cwd=tmp_path).returncode == 0
    assert (tmp_path / "fl").read_text() == "through\n"


def test_errors_are_clear(gateway, tmp_path):
    fresh(gateway, "err")
    (tmp_path / "f").write_text("x")
    cases = [
        (["gateway:err/none", "."], "NOT_FOUND"),
        (["gateway:err", "."], "IS_DIRECTORY"),
        (["gateway:/etc/hostname", "."], "OUTSIDE_ROOT"),
        (["f", "gateway:/etc/x"], "OUTSIDE_ROOT"),
        (["f", "gateway:err/none/x"], "NOT_FOUND"),
    ]
    for arguments, code in cases:
        done = scp(gateway, "-O", *arguments, cwd=tmp_path)
        assert (done.returncode, code in done.stderr.decode()) == (1, True), done.stderr


def test_one_failure_leaves_the_rest(gateway, tmp_path):
    fresh(gateway, "rest")
    remote(gateway, "cd rest && touch a c && ln -s none b")
    done = scp(gateway, "-O", "-r", "gateway:rest", "got", cwd=tmp_path)
    assert done.returncode == 1
    assert sorted(os.listdir(tmp_path / "got")) == ["a", "c"]


def test_a_half_sent_file_leaves_the_old_one(gateway):
    remote(gateway, "echo old >half")
    command = ["ssh", "-F", str(ssh_options(gateway)), "sandbox@gateway", "scp -t half"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(gateway),
    ) as client:
        assert client.stdout.read(1) == b"\0"
        client.stdin.write(b"C0644 1000000 half\n")
        client.stdin.flush()
        assert client.stdout.read(1) == b"\0"
        client.stdin.write(b"torn" * 1000)
        client.stdin.flush()
        client.kill()
        client.wait(TIMEOUT)
    wait_until(lambda: not gateway.pids("session", "sandbox"), what="the session's end")
    assert remote(gateway, "cat half; find . -name '.rws-*'; rm half") == "old\n"


def test_a_hostile_client_gets_nowhere(gateway):
    for text in ["C0644 1 ../x\n", "C0644 1 a/b\n", "D0755 0 ..\n", "E\n", "C9999 1 x\n", "X\n"]:
        done = run(
            gateway,
            ["ssh", "-F", ssh_options(gateway), "sandbox@gateway", "scp -rt ."],
            stdin=text.encode() + b"x\0",
        )
        assert done.returncode == 1, text
        assert done.stdout.startswith(b"\0\1scp: INVALID"), (text, done.stdout)


def test_what_merely_mentions_scp_runs_as_given(gateway):
    cases = {
        "scp --help 2>/dev/null; echo done": b"done\n",
        "echo scp -t x": b"scp -t x\n",
        "true && scp -f none 2>/dev/null || echo shell": b"shell\n",
    }
    for command, output in cases.items():
        done = ssh(gateway, command)
        assert done.stdout.endswith(output), command


@pytest.mark.parametrize("protocol", ["-scp", "-sftp"])
def test_pscp(gateway, protocol, tmp_path):
    key = gateway.directory / "client_key.ppk"
    if not key.exists():
        run(gateway, ["puttygen", gateway.key, "-O", "private", "-o", key])
    base = ["pscp", protocol, "-q", "-r", "-p", "-batch", "-noagent", "-i", key]
    base += ["-P", gateway.port, "-hostkey", host_key_fingerprint(gateway)]
    tree = make_tree(tmp_path / "tree", links=False)
    (tree / "a b" / "back\\slash").unlink()  # which PuTTY takes for a separator
    fresh(gateway, "pscp")
    done = run(gateway, [*base, tree, "sandbox@127.0.0.1:pscp/"])
    assert done.returncode == 0, done.stderr
    done = run(gateway, [*base, "sandbox@127.0.0.1:pscp/tree", tmp_path / "back"])
    assert done.returncode == 0, done.stderr
    # It keeps times, not modes.
    assert [(name, value[-1]) for name, value in contents(tmp_path / "back").items() if value[0] == "file"] == [
        (name, value[-1]) for name, value in contents(tree).items() if value[0] == "file"
    ]
