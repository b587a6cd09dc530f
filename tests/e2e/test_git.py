# SPDX-License-Identifier: ISC
"""git over ssh, with the repository in the sandbox and with the clone there."""

import os

import pytest
from clients import git, ssh

DRIVERS = ("local", "e2b", "daytona", "vercel")

REMOTE = "ssh://sandbox@gateway"


@pytest.fixture(name="repository")
def repository_fixture(gateway, tmp_path):
    """A bare repository in the sandbox: its URL, below the sandbox's root."""
    name = tmp_path.name
    done = ssh(gateway, f"git init -q --bare -b main {name}.git && cd {name}.git && pwd")
    assert done.returncode == 0, done.stderr
    return f"{REMOTE}{done.stdout.decode().strip()}"


def commit(gateway, directory, name, data):
    (directory / name).write_bytes(data)
    git(gateway, "add", name, cwd=directory)
    git(gateway, "commit", "-q", "-m", f"add {name}", cwd=directory)


@pytest.mark.core
def test_push_clone_and_fetch(gateway, repository, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    git(gateway, "init", "-q", "-b", "main", first)
    commit(gateway, first, "binary", os.urandom(3 << 20))
    git(gateway, "push", "-q", repository, "main", cwd=first)
    git(gateway, "clone", "-q", repository, second)
    assert (second / "binary").read_bytes() == (first / "binary").read_bytes()
    commit(gateway, second, "text", b"second\n")
    git(gateway, "push", "-q", "origin", "main", cwd=second)
    git(gateway, "fetch", "-q", repository, "main", cwd=first)
    head = git(gateway, "rev-parse", "HEAD", cwd=second)
    assert git(gateway, "rev-parse", "FETCH_HEAD", cwd=first) == head


def test_protocol_version_2_is_spoken(gateway, repository):
    """GIT_PROTOCOL is among the environment requests that are accepted."""
    done = ssh(gateway, "-oSendEnv=GIT_PROTOCOL", "echo $GIT_PROTOCOL", GIT_PROTOCOL="version=2")
    assert done.stdout == b"version=2\n"
    git(gateway, "-c", "protocol.version=2", "ls-remote", repository)


def test_a_scp_style_address_works(gateway, tmp_path):
    """clients.md 78: the separator of a login must be safe in host:path syntax."""
    name = tmp_path.name
    assert ssh(gateway, f"git init -q --bare -b main {name}", login="sandbox+scp").returncode == 0
    first = tmp_path / "first"
    git(gateway, "init", "-q", "-b", "main", first)
    commit(gateway, first, "file", b"x")
    git(gateway, "push", "-q", f"sandbox+scp@gateway:{name}", "main", cwd=first)
    git(gateway, "clone", "-q", f"sandbox+scp@gateway:{name}", tmp_path / "second")


def test_many_small_objects_pass(gateway, repository, tmp_path):
    first = tmp_path / "first"
    git(gateway, "init", "-q", "-b", "main", first)
    for number in range(1000):
        (first / f"file{number}").write_text(f"{number}\n")
    git(gateway, "add", ".", cwd=first)
    git(gateway, "commit", "-q", "-m", "many", cwd=first)
    git(gateway, "push", "-q", repository, "main", cwd=first)
    git(gateway, "clone", "-q", repository, tmp_path / "second")
    assert len(list((tmp_path / "second").iterdir())) == 1001
