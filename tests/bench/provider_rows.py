# SPDX-License-Identifier: ISC
"""
Providers' drivers, counted in trips: requests to the provider's fake that the user must wait for. A
fake delays every answer by TRIP_MS and counts; so a time is trips, whatever this machine is like.
The messages of a WebSocket that is open are not delayed: what goes over one costs no trip here.
Rows of providers whose fake or driver is not there say so.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import urllib.request

from measure import BUILD, MIB, describe, succeeds, timed
from servers import Rwsd
from file_rows import make_tree, sftp

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
TRIP_MS = 50

# How a login is pointed at the fake: its options, and those that are a path of the fake's.
PROVIDERS = {
    "e2b": ({"driver": "e2b", "api_key": "e2b_" + "0" * 40}, {"api_url": "", "sandbox_url": ""}),
    "daytona": ({"driver": "daytona", "api_key": "dtn_" + "0" * 64}, {"api_url": "/api"}),
    "vercel": (
        {"driver": "vercel", "token": "v" * 24, "team_id": "team_bench", "project_id": "prj_bench"},
        {"api_url": "/api"},
    ),
}


class Fake:
    """A provider's fake server and its control endpoint."""

    def __init__(self, name, directory):
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-m", f"tests.fake.{name}", "--root", directory],
            cwd=TOP,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        found = re.search(r"listening on (\S+)", self.process.stdout.readline().decode())
        if found is None:
            self.stop()
            raise OSError("the fake does not start")
        self.url = found.group(1)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/_fake/{path}", data, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read() or b"null")

    def requests(self, work):
        """How many requests there were while work() ran."""
        before = self.call("GET", "requests")["total"]
        work()
        return self.call("GET", "requests")["total"] - before

    def stop(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def single_row(bench, name, what, unit, target, value):
    """A row without an sshd beside it."""
    reached = value <= target[1] if target is not None else None
    amount = {"median": value, "low": value, "high": value, "samples": [value]}
    row = {"what": f"{name}: {what}", "unit": unit, "target": target, "reached": reached}
    bench.add({**row, "ours": amount, "theirs": None, "note": None})


def trips(fast, slow):
    """What the delay of every answer adds to a time, in trips."""
    return (slow - fast) * 1000 / TRIP_MS


def count_trips(fake, work):
    """Trips that work() waits for: its time with delayed answers less its time without."""
    fake.call("POST", "delay", {"ms": 0})
    fast = min(work() for _ in range(3))
    fake.call("POST", "delay", {"ms": TRIP_MS})
    slow = min(work() for _ in range(3))
    fake.call("POST", "delay", {"ms": 0})
    return trips(fast, slow)


def command_rows(bench, name, fake, server):
    timed(server.ssh("true"))
    # The provider's own call for a command is one trip; we may take one more.
    waited = count_trips(fake, lambda: timed(server.ssh("true")))
    single_row(bench, name, "ssh true, warm", "trips", ("<=", 2.3, "trips"), waited)

    def round_trip(size):
        data = os.urandom(size)
        timed_out = subprocess.run(
            server.ssh("cat"), input=data, stdout=subprocess.PIPE, check=True, timeout=120
        )
        if timed_out.stdout != data:
            raise subprocess.SubprocessError("cat gave back other bytes")

    small = fake.requests(lambda: round_trip(1024))
    large = fake.requests(lambda: round_trip(MIB))
    what = "requests that 1 MiB through cat adds to 1 KiB"
    single_row(bench, name, what, "", ("<=", 4, ""), large - small)


def sftp_rows(bench, name, fake, server):
    if not succeeds(["sftp", "-q", "-b", "/dev/null", *server.client_options(), server.host]):
        bench.missing(f"{name}: sftp", None, "sftp does not start: not there yet")
        return
    with tempfile.TemporaryDirectory() as local:
        pathlib.Path(local, "five").write_bytes(os.urandom(5 * MIB))
        make_tree(pathlib.Path(local, "tree"), bench.pick(1000, 50))
        idle = count_trips(fake, lambda: sftp(server, "pwd"))
        for what, command, target in (
            ("sftp put of 5 MiB", f"put {local}/five five", 4),
            ("sftp get of 5 MiB", f"get five {local}/back", 4),
        ):
            waited = count_trips(fake, lambda command=command: sftp(server, command))
            single_row(bench, name, what, "trips", ("<=", target, "trips"), waited - idle)
        count = bench.pick(1000, 50)
        server.run(f"mkdir -p many && cd many && seq {count} | xargs touch")
        waited = count_trips(fake, lambda: sftp(server, "ls -l many"))
        what = f"sftp listing of {count} entries"
        single_row(bench, name, what, "trips", ("<=", 2.3, "trips"), waited - idle)
        made = fake.requests(lambda: sftp(server, f"put -r {local}/tree up"))
        what = f"sftp put -r of {count} files"
        single_row(bench, name, what, "a file", ("<=", 1.1, "a file"), made / count)


def has_driver(name):
    """Does the gateway know this driver? Its own check of a configuration tells."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as configuration:
        configuration.write(f"[login bench]\ndriver = {name}\n")
        configuration.flush()
        command = [BUILD / "rwsd", "-x", "-f", configuration.name]
        result = subprocess.run(command, capture_output=True, check=False)
    return result.returncode == 0


def provider(bench, name):
    login, paths = PROVIDERS[name]
    if not (TOP / "tests" / "fake" / name).exists() or not has_driver(name):
        bench.missing(name, None, "its driver or its fake is not there yet")
        return
    with tempfile.TemporaryDirectory(prefix="rwsd-bench-fake-") as directory:
        fake = Fake(name, directory)
        server = Rwsd(login={**login, **{option: fake.url + path for option, path in paths.items()}})
        try:
            server.start()
            command_rows(bench, name, fake, server)
            sftp_rows(bench, name, fake, server)
        except (AssertionError, subprocess.SubprocessError, OSError) as error:
            bench.missing(name, None, f"not measured: {describe(error)}")
        finally:
            server.stop()
            fake.stop()


def providers(bench):
    for name in PROVIDERS:
        provider(bench, name)


ROWS = (providers,)
