# SPDX-License-Identifier: ISC
"""Commands that mean harm: they neither get out, nor stay, nor hold up who called them."""

import pathlib

import pytest
from attacker import Attacker, memory_peak, text
from clients import TIMEOUT, ssh, ssh_start
from gateway import processes_with, wait_until

# KiB; design/targets.md
MEMORY_MAX = 32 * 1024
MARK = "86395"


@pytest.mark.core
@pytest.mark.parametrize("terminal", [[], ["-tt"]], ids=["pipes", "pty"])
@pytest.mark.parametrize("noise", ["while :; do echo x; sleep 0.05; done", "cat /dev/zero"], ids=["drip", "flood"])
def test_a_process_that_left_its_session_does_not_hold_the_channel(gateway, terminal, noise):
    """On a pty, which is over after a moment of silence, a drip of output held it for ever."""
    done = ssh(gateway, *terminal, f"setsid sh -c '{noise}' & sleep 0.2; exit 4", timeout=TIMEOUT)
    assert done.returncode == 4
    ssh(gateway, "kill -9 -1")


def test_a_command_without_descriptors_ends_with_its_status(gateway):
    assert ssh(gateway, "exec <&- >&- 2>&-; sleep 0.2; exit 5").returncode == 5


IGNORE_ALL = f"""
import signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
print("up", flush=True)
time.sleep({MARK})
"""
LEAVE_GROUP = f"""
import os, time
if os.fork() == 0:
    os.setpgid(0, 0)
    os.fork()
print("up", flush=True)
time.sleep({MARK})
"""


@pytest.mark.parametrize(
    "command",
    [
        f"exec python3 -c '{IGNORE_ALL}'",
        f"exec python3 -c '{LEAVE_GROUP}'",
        f"(sleep {MARK}; :) & echo up; kill -STOP $$",
        f"((((sleep {MARK}; :) &) &) &); echo up; sleep {MARK}",
        f"trap '' HUP TERM INT QUIT; for i in $(seq 200); do sleep {MARK} & done; echo up; wait",
    ],
    ids=["ignoring", "group", "stopped", "orphans", "many"],
)
def test_nothing_is_left_of_a_command_whose_client_is_gone(gateway, command):
    with ssh_start(gateway, command) as client:
        assert client.stdout.readline() == b"up\n"
        client.kill()
    wait_until(lambda: not processes_with(MARK), what="the end of the command")


@pytest.mark.parametrize("terminal", [False, True], ids=["pipes", "pty"])
def test_output_that_a_client_does_not_read_is_bounded(gateway, terminal):
    known = set(gateway.pids("session", "["))
    client = Attacker(gateway)
    try:
        (session,) = set(gateway.pids("session", "[")) - known
        channel = client.open_raw()
        if terminal:
            channel.get_pty()
        client.stop_reading()
        client.request(channel, "exec", text(f"echo {MARK} >&2; exec dd if=/dev/zero bs=64k of=/dev/fd/1"))
        wait_until_blocked("dd if=/dev/zero")
        assert memory_peak(session) < MEMORY_MAX
        assert all(memory_peak(worker) < MEMORY_MAX for worker in gateway.pids("worker"))
    finally:
        client.cut()


def wait_until_blocked(command, looks=25):
    """Waits until the command has used no processor between so many looks."""
    seen = []

    def settled():
        pids = processes_with(command)
        for pid in pids:
            seen.append(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
        return len(seen) > looks and all(used == seen[-1] for used in seen[-looks:])

    wait_until(settled, timeout=TIMEOUT, what="the command to be held back")


# What a sandbox may not do or see; each line prints what it found, and finds nothing.
ESCAPES = {
    "process 1": "for f in mem maps environ; do cat /proc/1/$f; done; for f in fd root/ cwd/; do ls /proc/1/$f; done",
    "other processes": "cat /proc/[0-9]*/comm | grep -E 'listener|auth|session|worker|bwrap'",
    "setuid programs": "echo | su root -c id",
    "capabilities": "grep -E '^Cap' /proc/self/status | grep -v 0000000000000000",
    "new rights": "grep NoNewPrivs /proc/self/status | grep -v 1",
    "devices": "ls -l /dev | grep -E '^[bc]' | grep -v -E ' (full|null|random|tty|urandom|zero|console)$'",
    "kernel": "echo x >/proc/sys/kernel/core_pattern && echo wrote; echo b >/proc/sysrq-trigger && echo wrote",
    "mounts": "mount -t tmpfs none /tmp && echo mounted; chroot / true && echo changed",
    "system": "touch /usr/x /etc/x /x && echo wrote",
    "descriptors": "ls -l /proc/self/fd | grep -E -v 'pipe:|/proc/|^total'",
    "sockets": "tail -n +2 /proc/net/unix",
    "network": "tail -n +3 /proc/net/dev | grep -v lo:",
    "state": "find / /home /tmp /var /run -xdev "
    "'(' -name 'rwsd*' -o -name host_keys -o -name workspaces -o -name admin.sock ')'",
    "memory of init": "python3 -c 'import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))' | grep -v -e -1",
}


@pytest.mark.parametrize("what", ESCAPES)
def test_a_sandbox_shows_and_allows_nothing_of_the_gateway(gateway, what):
    done = ssh(gateway, ESCAPES[what])
    assert done.stdout == b""


def test_init_survives_the_signals_of_its_sandbox(gateway):
    ssh(gateway, "for s in $(seq 1 64); do kill -$s 1; kill -$s -1; done 2>/dev/null")
    first = ssh(gateway, "cat /proc/1/cmdline; stat -c %Y /proc/1")
    assert first.stdout.startswith(b"/proc/self/fd/4\0serve")
    ssh(gateway, "kill -9 1; kill -19 1; kill -11 1")
    assert ssh(gateway, "cat /proc/1/cmdline; stat -c %Y /proc/1").stdout == first.stdout
