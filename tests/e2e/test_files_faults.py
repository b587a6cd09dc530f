# SPDX-License-Identifier: ISC
"""A provider fails in the middle of files: the error is told, and nothing is seen that is half done."""

import itertools

import pytest
from clients import ssh, ssh_options
from files import run
from gateway import wait_until
from rws_client import Rws, RwsError

DRIVERS = ("e2b", "daytona")

LOGINS = {"sandbox": {"max_instances": 1000, "kill_grace": "500ms"}}

# Requests that carry what a command reads: a new one strikes once it has carried so much.
CARRIERS = {"e2b": "Process/StreamInput", "daytona": "/connect$"}
SIZE = 3_000_000
numbers = itertools.count()


@pytest.fixture(name="login")
def login_fixture(provider):
    """A workspace of the test's own; its faults end with it."""
    yield f"sandbox+{next(numbers)}"
    provider.call("DELETE", "knobs")


def sh(gateway, login, command):
    done = ssh(gateway, command, login=login)
    assert done.returncode == 0, done.stderr
    return done.stdout


def upload(gateway, login, path):
    """Writes a file over f by SFTP; did that work, by what the client says?"""
    command = ["sftp", "-q", "-F", ssh_options(gateway), "-b", "-", f"{login}@gateway"]
    return run(gateway, command, stdin=f"put {path} f\n".encode()).returncode == 0


@pytest.fixture(name="big")
def big_fixture(tmp_path):
    (tmp_path / "big").write_bytes(b"half" * (SIZE // 4))
    return tmp_path / "big"


def break_uploads(provider, **more):
    provider.fault(CARRIERS[provider.name], {"request_bytes": 1_000_000, **more}, count=0)


def test_an_upload_whose_way_breaks_leaves_the_old_file(gateway, provider, login, big):
    # What is connected already would not be met by it.
    break_uploads(provider)
    sh(gateway, login, "echo old >f")
    assert not upload(gateway, login, big)
    assert provider.struck() > 0
    provider.call("DELETE", "knobs")
    assert sh(gateway, login, "cat f; ls") == b"old\nf\n"
    assert upload(gateway, login, big)
    assert sh(gateway, login, "wc -c <f; ls") == b"%d\nf\n" % SIZE


def test_an_upload_into_a_sandbox_that_dies_is_told(gateway, provider, login, big):
    break_uploads(provider, kill_sandbox=True)
    sh(gateway, login, "echo old >f")
    assert not upload(gateway, login, big)
    assert provider.struck() > 0
    provider.call("DELETE", "knobs")
    assert sh(gateway, login, "ls") == b""


def test_a_write_by_rws_that_breaks_leaves_the_old_file(gateway, provider, login):
    with Rws(gateway, login=login) as rws:
        break_uploads(provider)
        rws.call("write", path="f", content="old")
        with pytest.raises(RwsError) as caught:
            for _ in range(4):
                rws.call("write", path="f", content="half" * 500_000)
        assert caught.value.code == "UNAVAILABLE"
        provider.call("DELETE", "knobs")
        content = sh(gateway, login, "cat f; ls")
        assert content in (b"oldf\n", b"half" * 500_000 + b"f\n")


def state_of(gateway, login):
    return sh(gateway, login, "cat a b 2>/dev/null; ls")


@pytest.mark.parametrize("kill", [False, True])
def test_a_restore_that_breaks_is_told_and_never_half_done(gateway, provider, login, kill):
    """Either nothing is changed or all of it, whatever the moment; with the sandbox all is gone."""
    breaks = {"e2b": {"after_events": 1}, "daytona": {"after_bytes": 600}}[provider.name]
    path = {"e2b": "Process/Start", "daytona": "/connect$"}[provider.name]
    sh(gateway, login, "echo 1 >a; echo 1 >b")
    with Rws(gateway, login=login) as rws:
        snapshot = rws.call("snapshot.create")["id"]
        whole = state_of(gateway, login)
        sh(gateway, login, "echo 2 >a; rm b; echo 2 >c")
        changed = state_of(gateway, login)
        # The second is the script that does it, where there is one request for each.
        action = {**breaks, **({"kill_sandbox": True} if kill else {})}
        provider.fault(path, action, nth=2 if provider.name == "e2b" else 1, count=0)
        with pytest.raises(RwsError) as caught:
            for _ in range(4):
                rws.call("snapshot.restore", id=snapshot)
        assert caught.value.code in ("UNAVAILABLE", "NOT_FOUND")
        assert provider.struck() > 0
        provider.call("DELETE", "knobs")
        if kill:
            assert sh(gateway, login, "ls") == b""
        else:
            # Once it has begun to change things it goes on by itself.
            wait_until(lambda: b".part" not in sh(gateway, login, "ls -A .rws/snapshots"), what="the end of the script")
            assert state_of(gateway, login) in (whole, changed)
