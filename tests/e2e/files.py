# SPDX-License-Identifier: ISC
"""What the tests of files share: both backends, trees to copy, and the clients for them."""

import contextlib
import hashlib
import os
import pathlib
import subprocess

import paramiko
import pytest
from clients import TIMEOUT, environment, paramiko_connect, ssh, ssh_options
from gateway import Gateway, finish



def make_files_gateway(backend, **options):
    """backend: what does the work, and what the sandboxes come from; as the fixture "backend" gives it."""
    name, provider = backend
    files = {"files": name} if provider.name == "local" else {}
    return Gateway(logins={"sandbox": {**files, "max_file_bytes": "4GiB", **options}}, provider=provider)


def files_gateway_fixture():
    """A fixture: one gateway a backend for all tests of a file."""

    @pytest.fixture(scope="module")
    def gateway(backend):
        started = make_files_gateway(backend)
        try:
            yield started.start()
        finally:
            finish(started)

    return gateway


def run(gateway, command, stdin=None, timeout=TIMEOUT, cwd=None):
    """Runs a client to its end with a home of its own."""
    return subprocess.run(
        [str(word) for word in command],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=timeout,
        env=environment(gateway),
        cwd=cwd,
        check=False,
    )


def sftp(gateway, batch, cwd=None, options=()):
    """Runs OpenSSH's sftp on a batch, which ends at the first failure."""
    command = ["sftp", "-F", ssh_options(gateway), *options, "-b", "-", "gateway"]
    return run(gateway, command, stdin=batch.encode(), cwd=cwd)


def scp(gateway, *arguments, cwd=None):
    return run(gateway, ["scp", "-q", "-F", ssh_options(gateway), *arguments], cwd=cwd)


def remote(gateway, command):
    """A command in the sandbox: its output; the test fails when it does."""
    done = ssh(gateway, command)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(errors="surrogateescape")


def fresh(gateway, name):
    """An empty directory in the sandbox."""
    remote(gateway, f"rm -rf {name} && mkdir {name}")
    return f"{gateway.provider.home}/{name}"


def paramiko_sftp(gateway):
    client = paramiko_connect(gateway)
    return client, client.open_sftp()


@contextlib.contextmanager
def open_sftp(gateway):
    """An SFTP session of paramiko's; use it with "with"."""
    client, session = paramiko_sftp(gateway)
    with client, session:
        yield session


def make_tree(path, links=True):
    """A tree with everything that a copy may trip over."""
    path.mkdir()
    (path / "empty").write_bytes(b"")
    (path / "all-bytes").write_bytes(bytes(range(256)) * 100)
    (path / "sub" / "deep").mkdir(parents=True)
    (path / "sub" / "deep" / "big").write_bytes(os.urandom(1_500_000))
    (path / "a b").mkdir()
    for name in ["it's", '"quoted"', "-dash", "caf\u00e9", "semi;colon", "star*", "back\\slash", "$HOME"]:
        (path / "a b" / name).write_text(name)
    (path / ".hidden").write_text("hidden")
    (path / "run").write_text("#!/bin/sh\n")
    (path / "run").chmod(0o750)
    os.utime(path / "run", (1_000_000_000, 1_100_000_000))
    (path / "empty directory").mkdir()
    if links:
        (path / "link").symlink_to("run")
    return path


def describe(path):
    """All of a tree that a copy with times must keep, by relative name."""
    found = {}
    for entry in sorted(pathlib.Path(path).rglob("*")):
        name = str(entry.relative_to(path))
        status = entry.lstat()
        if entry.is_symlink():
            found[name] = ("link", os.readlink(entry))
        elif entry.is_dir():
            found[name] = ("directory", status.st_mode & 0o777)
        else:
            digest = hashlib.sha256(entry.read_bytes()).hexdigest()
            found[name] = ("file", status.st_mode & 0o777, digest)
    return found


def contents(path):
    """Names and content only."""
    return {name: (value[0], value[-1] if value[0] != "directory" else None) for name, value in describe(path).items()}


def no_leftovers(gateway):
    found = remote(gateway, f"find {gateway.provider.home} -name '.rws-*'")
    assert found == "", found


def error_number(call):
    """The errno that paramiko made of a failure, or its text."""
    with pytest.raises((OSError, paramiko.SFTPError)) as caught:
        call()
    return caught.value.errno if getattr(caught.value, "errno", None) else str(caught.value)
