# SPDX-License-Identifier: ISC
"""What the sandboxes of a test come from: this machine, or a fake of a provider."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[2]


class Local:
    """The local driver needs nothing."""

    name = "local"
    home = "/home/sandbox"

    def login(self):
        """The options of a login block that uses it."""
        return {"driver": "local"}

    def stop(self):
        pass


class Fake:
    """A fake of tests/fake as a process of its own; tests/fake/README.md describes its control endpoint."""

    name = key = home = ""
    alive = ("running", "paused")
    # What a test may have changed by config().
    standard = {}

    def __init__(self):
        self.expects_faults = True
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"fake-{self.name}-"))
        self.directory.chmod(0o755)
        # pylint: disable=consider-using-with # stop() ends it
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-m", f"tests.fake.{self.name}", "--root", self.directory],
            cwd=TOP,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = re.search(r"http://\S+", self.process.stdout.readline()).group(0)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(30)
        shutil.rmtree(self.directory, ignore_errors=True)

    # The control endpoint

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"{self.url}/_fake/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def fault(self, path, action, nth=1, count=1, method=None):
        """The nth to (nth + count - 1)th request to a path meets a fault."""
        match = {"path": path, **({"method": method} if method else {})}
        self.call("POST", "knobs", {"match": match, "nth": nth, "count": count, "action": action})

    def struck(self):
        """How often faults happened: a test of one that did not proves nothing."""
        return sum(rule["struck"] for rule in self.call("GET", "knobs"))

    def end_faults(self):
        """Ends the faults of a test, which must have met them unless it said that it does not expect any."""
        expected = self.expects_faults
        struck = self.struck()
        self.expects_faults = True
        self.call("DELETE", "knobs")
        self.config(**self.standard)
        assert struck > 0 or not expected

    def requests(self):
        return self.call("GET", "requests")["requests"]

    def bodies(self, method, path):
        """The JSON bodies of the requests to what ends in path."""
        return [
            json.loads(request["body"])
            for request in self.requests()
            if request["method"] == method and request["path"].endswith(path)
        ]

    def forget_requests(self):
        self.call("DELETE", "requests")

    def counts(self):
        """How many requests there were, by "METHOD /route"."""
        return self.call("GET", "requests")["counts"]

    def count(self, method, route):
        """How many of them there were to one route."""
        return self.counts().get(f"{method} {route}", 0)

    def sandboxes(self):
        """The sandboxes that are there now."""
        found = self.call("GET", "sandboxes")
        found = found["sandboxes"] if isinstance(found, dict) else found
        return [sandbox for sandbox in found if sandbox["state"] in self.alive]

    def only_sandbox(self):
        (sandbox,) = self.sandboxes()
        return sandbox

    def end_sandbox(self, how="kill"):
        for sandbox in self.sandboxes():
            self.call("POST", f"sandboxes/{sandbox['id']}/{how}")

    def config(self, **settings):
        self.call("POST", "config", settings)

    def reset(self):
        self.call("POST", "reset")


class FakeE2b(Fake):
    """E2B's control plane and envd."""

    name = "e2b"
    home = "/home/user"
    key = "e2b_0123456789abcdef"
    standard = {"envd_version": "0.6.13", "max_concurrent": None}

    def login(self):
        return {
            "driver": "e2b",
            "api_key": self.key,
            "api_url": self.url,
            "sandbox_url": self.url,
        }


class FakeDaytona(Fake):
    """Daytona's control plane and toolbox."""

    name = "daytona"
    home = "/home/daytona"
    key = "dtn_0123456789abcdef"
    standard = {"create_connect": False, "pty_send_buffer": None, "daemon_down": False}
    alive = ("started", "stopped", "starting", "stopping", "creating")

    def login(self):
        return {"driver": "daytona", "api_key": self.key, "api_url": f"{self.url}/api"}


class FakeVercel(Fake):
    """Vercel's API and the interactive endpoint of its sandboxes."""

    name = "vercel"
    home = "/vercel"
    key = "tok_0123456789abcdef"
    standard = {"on_drop": "hangup", "stream_on_stop": "error_line", "command_end": "pipes", "utf8": "stream"}

    def login(self):
        return {
            "driver": "vercel",
            "token": self.key,
            "team_id": "team_test",
            "project_id": "prj_test",
            "api_url": f"{self.url}/api",
        }

    def sandboxes(self):
        """Those that are not deleted, running or not."""
        return [sandbox for sandbox in self.call("GET", "sandboxes") if not sandbox["deleted"]]


PROVIDERS = {"local": Local, "e2b": FakeE2b, "daytona": FakeDaytona, "vercel": FakeVercel}
