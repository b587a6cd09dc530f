# SPDX-License-Identifier: ISC
"""A sandbox that is gone while a login has it and nothing of it runs: what comes next gets a new one."""

import pytest
from clients import ssh
from files import scp
from rws_client import rws

DRIVERS = ("e2b", "daytona", "vercel")


@pytest.fixture(autouse=True)
def nothing_left(provider):
    yield
    provider.reset()


def sandbox_id(gateway):
    done = ssh(gateway, "echo $RWS_SANDBOX_ID", login="sandbox")
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


@pytest.mark.parametrize("user", ["command", "files", "operation"])
def test_destroyed_by_its_id_it_is_made_anew_for_the_next_user(make_gateway, provider, tmp_path, user):
    gateway = make_gateway(logins={"sandbox": {"instances": "attach"}})
    (tmp_path / "file").write_text("content\n")
    first = sandbox_id(gateway)
    done = rws(gateway, "sandbox", "destroy", f"sandbox={first}@gateway")
    assert done.returncode == 0, done.stderr
    if user == "command":
        done = ssh(gateway, "echo ok")
    elif user == "files":
        done = scp(gateway, str(tmp_path / "file"), "sandbox@gateway:after")
    else:
        done = rws(gateway, "exec", "sandbox@gateway", "echo ok")
    assert (done.returncode, done.stderr) == (0, b"")
    assert sandbox_id(gateway) != first
