# SPDX-License-Identifier: ISC
"""What make run does once all is built: gateway/run.sh, with a home and a /var/lib of its own."""

import contextlib
import os
import pathlib
import pwd
import re
import signal
import socket
import subprocess
import threading

import pytest
from clients import TIMEOUT
from gateway import BUILD

TOP = pathlib.Path(__file__).resolve().parents[2]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Place:
    """A directory that stands in for where make run keeps things; the rest of the machine is as it is."""

    def __init__(self, directory):
        self.directory = directory
        self.started = []
        user = pwd.getpwuid(os.geteuid())
        (directory / "home/.ssh").mkdir(parents=True)
        (directory / "lib").mkdir()
        key = directory / "home/.ssh/id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        self.states = directory / ("lib" if user.pw_uid == 0 else "home/.local/state")
        self.wrapper = ["bwrap", "--dev-bind", "/", "/", "--die-with-parent"]
        for path, mine in ((user.pw_dir, "home"), ("/var/lib", "lib")):
            self.wrapper += ["--bind", directory / mine, path]
        # What is tested may lie in that home.
        for path in (TOP, BUILD):
            self.wrapper += ["--ro-bind", path, path]

    def command(self, port):
        return [*self.wrapper, "sh", TOP / "gateway/run.sh", BUILD, str(port)]

    def run(self, port):
        """To its end."""
        return subprocess.run(
            self.command(port), capture_output=True, text=True, timeout=TIMEOUT, check=False, cwd=TOP
        )

    def start(self, port):
        """Until it says what to type; the process that is to be told to end is the gateway itself."""
        process = subprocess.Popen(self.command(port), stdout=subprocess.PIPE, text=True, cwd=TOP)
        self.started.append(process)
        watchdog = threading.Timer(TIMEOUT, process.kill)
        watchdog.start()
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("in another terminal: "):
                break
        watchdog.cancel()
        assert lines and lines[-1] == f"in another terminal: ssh -p {port} sandbox@127.0.0.1\n", lines
        return process, int(re.search(r"\[(\d+)\] listening on", "".join(lines)).group(1))

    def stop(self):
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait(TIMEOUT)
            process.stdout.close()


@pytest.fixture(name="place")
def place_fixture(tmp_path):
    made = Place(tmp_path)
    yield made
    made.stop()


def test_the_exit_status_is_the_gateways(place):
    port = free_port()
    state = place.states / f"rwsd-{port}"
    state.mkdir(parents=True, mode=0o700)
    (state / "rwsd.conf").write_text("no_such_option = 1\n")
    done = place.run(port)
    assert done.returncode == 1
    assert "no_such_option: unknown option" in done.stdout


def test_two_ports_are_two_gateways_and_one_port_is_one(place):
    ports = [free_port(), free_port()]
    first, pid = place.start(ports[0])
    second, _ = place.start(ports[1])
    again = place.run(ports[0])
    assert again.returncode == 1
    assert again.stderr == f"make run: this gateway runs already: ssh -p {ports[0]} sandbox@127.0.0.1\n"
    os.kill(pid, signal.SIGTERM)
    assert "drained" in first.stdout.read()
    assert first.wait(TIMEOUT) == 0
    assert second.poll() is None


def test_a_port_that_is_taken_is_named(place):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = place.run(port)
    assert done.returncode == 1
    assert done.stderr.startswith(f"make run: another program has port {port};")


@pytest.mark.parametrize("port", ["", "ssh", "0", "65536", "222222"])
def test_a_port_that_is_none_is_refused(place, port):
    done = place.run(port)
    assert done.returncode == 64
    assert "PORT is" in done.stderr
