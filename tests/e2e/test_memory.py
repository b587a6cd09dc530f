# SPDX-License-Identifier: ISC
"""What a connection holds on to: private memory of its session process."""

import os
import pathlib
import re
import subprocess

from clients import TIMEOUT, environment, ssh_options
from gateway import wait_until

# Of what a transfer touches, libssh keeps its own buffers for as long as the connection is open: some
# 430 KiB. What could be given back was 2,000 to 4,800.
KEPT_MAX = 1024


def private_dirty(pid):
    """KiB"""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"Private_Dirty:\s+(\d+)", text).group(1))


def test_a_connection_that_is_idle_again_gives_back_the_memory_of_its_transfers(gateway):
    control = gateway.directory / "control"
    base = ["ssh", "-F", ssh_options(gateway), "-S", control]
    master = subprocess.Popen(
        [*base, "-M", "-N", "-oControlPersist=no", "sandbox@gateway"],
        stdin=subprocess.DEVNULL,
        env=environment(gateway),
    )

    def run(command, data):
        done = subprocess.run(
            [*base, "sandbox@gateway", command],
            input=data,
            stdout=subprocess.PIPE,
            env=environment(gateway),
            timeout=TIMEOUT,
            check=True,
        )
        return done.stdout

    try:
        wait_until(control.exists, what="the control socket")
        (session,) = gateway.pids("session", "session sandbox")
        run("true", b"")
        before = private_dirty(session)
        data = os.urandom(32 << 20)
        assert run("sleep 1; cat", data) == data
        wait_until(
            lambda: private_dirty(session) < before + KEPT_MAX,
            what=f"less than {before + KEPT_MAX} KiB of private memory",
        )
    finally:
        master.terminate()
        master.wait(TIMEOUT)
