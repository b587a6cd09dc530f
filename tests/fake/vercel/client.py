# SPDX-License-Identifier: ISC
"""What the self-tests drive the fake with."""
import gzip
import io
import json
import tarfile
import time
from urllib.parse import quote, urlencode, urlsplit

from ..common import client
from ..common.websocket import TEXT
from ..common.websocket_client import Client

TOKEN = {"Authorization": "Bearer tok_test"}
TEAM, PROJECT = "team_test", "prj_test"


class FakeServer(client.FakeServer):
    """A running fake Vercel."""

    module = "tests.fake.vercel"

    def api(self, method, path, body=None, headers=None, **query):
        """A call with a good token."""
        full = f"/api{path}?" + urlencode({"teamId": TEAM, **query})
        return self.request(method, full, body, {"Content-Type": "application/json", **TOKEN, **(headers or {})})

    def named(self, method, name, body=None, **query):
        """A call about a sandbox by name."""
        return self.api(method, f"/v2/sandboxes/{quote(name, safe='')}", body, projectId=PROJECT, **query)

    def create(self, version="v3", **body):
        answer = self.api("POST", f"/{version}/sandboxes", {"projectId": PROJECT, "__interactive": True, **body})
        assert answer.status == 200, answer
        return Box(self, answer.json)

    def config(self, **settings):
        self.fake("POST", "config", settings)

    def report(self, name):
        return next(box for box in self.fake("GET", "sandboxes") if box["name"] == name)


class Box:
    """A sandbox of the fake and its session of the moment."""

    def __init__(self, server, shown):
        self.server, self.name = server, shown["sandbox"]["name"]
        self.sandbox, self.session, self.routes = shown["sandbox"], shown["session"], shown["routes"]
        self.id = self.session["id"]

    def call(self, method, path="", body=None, headers=None, **query):
        return self.server.api(method, f"/v2/sandboxes/sessions/{self.id}{path}", body, headers, **query)

    def status(self):
        return self.call("GET").json["session"]["status"]

    def wait(self, status):
        """Poll until the session is in a state; the object that says so."""
        end = time.monotonic() + client.TIMEOUT
        while time.monotonic() < end:
            shown = self.call("GET").json["session"]
            if shown["status"] == status:
                return shown
        raise AssertionError(f"not {status} but {shown}")

    def resume(self):
        answer = self.server.named("GET", self.name, resume="true")
        assert answer.status == 200, answer
        return Box(self.server, answer.json)

    # -- commands -----------------------------------------------------------------------------------------------------

    def start(self, command, *arguments, **fields):
        """A detached command; its id."""
        answer = self.call("POST", "/cmd", {"command": command, "args": list(arguments), **fields})
        assert answer.status == 200, answer
        return answer.json["command"]["id"]

    def stream(self, command, *arguments, **fields):
        """The lines of a waited command with its log."""
        answer = self.call("POST", "/cmd", {"command": command, "args": list(arguments), "wait": True, "logs": True,
                                            **fields})
        assert answer.status == 200, answer
        return lines_of(answer.body)

    def run(self, script, *arguments, **fields):
        """(exit code, stdout, stderr) of a shell script."""
        lines = self.stream("sh", "-c", script, *arguments, **fields)
        return lines[-1]["command"]["exitCode"], text_of(lines, "stdout"), text_of(lines, "stderr")

    def get(self, number, **query):
        return self.call("GET", f"/cmd/{number}", **query)

    def exit_code(self, number):
        return self.get(number, wait="true").json["command"]["exitCode"]

    def kill(self, number, **body):
        return self.call("POST", f"/cmd/{number}/kill", body)

    def logs(self, number):
        answer = self.call("GET", f"/cmd/{number}/logs")
        assert answer.status == 200, answer
        return lines_of(answer.body)

    def open_later(self, method, path, body=None):
        """A request that is sent: the connection and a function that waits for the head of the answer."""
        connection = self.server.connect()
        connection.request(method, f"/api/v2/sandboxes/sessions/{self.id}{path}?teamId={TEAM}",
                           body and json.dumps(body), TOKEN)
        return connection, connection.getresponse

    def open_stream(self, method, path, body=None):
        """An answer of which the body is still to be read: the connection and the response."""
        connection, answer_later = self.open_later(method, path, body)
        return connection, answer_later()

    # -- files --------------------------------------------------------------------------------------------------------

    def write(self, files, cwd="/", form=tarfile.USTAR_FORMAT, headers=None):
        return self.call("POST", "/fs/write", archive(files, form),
                         {"Content-Type": "application/gzip", "x-cwd": cwd, **(headers or {})})

    def read(self, path, **fields):
        return self.call("POST", "/fs/read", {"path": path, **fields})

    # -- terminals ----------------------------------------------------------------------------------------------------

    def connect(self):
        """An open WebSocket on which nothing was said yet."""
        answer = self.call("POST", "/interactive", {})
        assert answer.status == 200, answer
        path = urlsplit(answer.json["url"]).path + "?token=" + quote(answer.json["token"])
        return Client(self.server.socket(), path)

    def terminal(self, command, *arguments, **fields):
        socket = self.connect()
        socket.send(json.dumps({"type": "start", "command": command, "args": list(arguments), "env": [],
                                "cols": 80, "rows": 24, **fields}).encode(), TEXT)
        return socket


def lines_of(body):
    return [json.loads(line) for line in body.decode().split("\n") if line]


def text_of(lines, stream):
    return "".join(line["data"] for line in lines if line.get("stream") == stream)


def archive(files, form):
    """A gzip of a tar archive: {name: bytes, or a TarInfo with its data as .data}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name, data in files.items():
            entry = data if isinstance(data, tarfile.TarInfo) else tarfile.TarInfo(name)
            if entry is not data:
                entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data) if entry is not data else None)
    return gzip.compress(out.getvalue())


def exit_of(socket):
    """(all binary output, the exit code or None) of a terminal to its close."""
    output, code = bytearray(), None
    while message := socket.message():
        if message[0] == TEXT:
            code = json.loads(message[1])["code"]
        else:
            output += message[1]
    return bytes(output), code
