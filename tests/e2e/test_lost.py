# SPDX-License-Identifier: ISC
"""A sandbox that is gone while a login has it and nothing of it runs: what comes next gets a new one."""

import re

import pytest
from clients import ssh
from files import scp
from rws_client import rws

DRIVERS = ("e2b", "daytona", "vercel")

pytestmark = pytest.mark.usefixtures("nothing_left")


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


def test_where_losses_are_reported_the_next_user_is_told(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"instances": "attach", "on_lost": "report"}})
    first = sandbox_id(gateway)
    assert rws(gateway, "sandbox", "destroy", f"sandbox={first}@gateway").returncode == 0
    done = ssh(gateway, "echo on")
    assert done.returncode == 255 and done.stdout == b""
    assert re.fullmatch(rb"rws: [A-Z_]+: [^\n]*\n", done.stderr), done.stderr
    assert not provider.sandboxes()
