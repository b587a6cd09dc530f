# SPDX-License-Identifier: ISC
"""A client of the rws subsystem that hides nothing: requests, notifications and lines as they are."""

import base64
import itertools
import json
import select
import subprocess
import time

from clients import TIMEOUT, environment, ssh_options, ssh_start
from gateway import BUILD


class RwsError(Exception):
    """An answer with an error in it."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.number = error["code"]
        self.code = error["data"]["code"]
        self.data = error["data"]


class Rws:
    """One channel with the subsystem; a context manager."""

    def __init__(self, gateway, login="sandbox"):
        self.process = ssh_start(gateway, "-s", "rws", login=login)
        self.ids = itertools.count(1)
        self.answers = {}
        self.notifications = []
        self.pending = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def send_line(self, text):
        self.process.stdin.write(text if isinstance(text, bytes) else text.encode())
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def send(self, method, **params):
        """Sends a request and returns its id."""
        number = next(self.ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.send_line(json.dumps(request))
        return number

    def notify(self, method, **params):
        self.send_line(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    def receive(self, timeout=TIMEOUT):
        """The next message, whatever it is."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            assert left > 0, "no message in time"
            if select.select([self.process.stdout], [], [], left)[0]:
                data = self.process.stdout.read1(1 << 20)
                assert data, f"the channel ended: {self.process.stderr.read()!r}"
                self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return json.loads(line)

    def wait(self, number, timeout=TIMEOUT):
        """The result of a request, or RwsError; notifications are kept."""
        while number not in self.answers:
            message = self.receive(timeout)
            if "method" in message:
                self.notifications.append(message)
            else:
                self.answers[message["id"]] = message
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RwsError(answer["error"])
        return answer["result"]

    def call(self, method, **params):
        return self.wait(self.send(method, **params))

    def sh(self, command, **params):
        """Runs a command that must succeed; returns its stdout."""
        result = self.call("exec", command=command, **params)
        assert result["exit_code"] == 0, result
        return bytes_of(result, "stdout")

    def output(self, number, stream="stdout"):
        """What came in notifications for a request so far."""
        return b"".join(
            bytes_of(message["params"], "data")
            for message in self.notifications
            if message["method"] == "output"
            and message["params"]["id"] == number
            and message["params"]["stream"] == stream
        )


def bytes_of(result, name):
    """A field that may be text or base64."""
    if name in result:
        return result[name].encode()
    return base64.b64decode(result[name + "_base64"])


def encoded(data):
    return base64.b64encode(data).decode()


def path_of(entry):
    """An entry of a list of paths as bytes."""
    return entry.encode() if isinstance(entry, str) else base64.b64decode(entry["base64"])


def rws_command(gateway, *arguments):
    """The command line of rws for this gateway."""
    return [str(BUILD / "rws"), "-S", "-F", "-S", str(ssh_options(gateway)), *arguments]


def rws(gateway, *arguments, stdin=b"", **more):
    """Runs the rws command line to its end."""
    return subprocess.run(
        rws_command(gateway, *arguments),
        input=stdin,
        capture_output=True,
        timeout=TIMEOUT,
        env=environment(gateway, **more),
        check=False,
    )
