# SPDX-License-Identifier: ISC
"""What the self-tests drive the fake with."""
import json
import time
from urllib.parse import quote

from ..common import client
from ..common.websocket_client import Client

KEY = {"Authorization": "Bearer dtn_0123456789abcdef"}


class FakeServer(client.FakeServer):
    """A running fake Daytona."""

    module = "tests.fake.daytona"

    def api(self, method, path, body=None, **headers):
        """A control-plane request with a good key."""
        return self.request(method, "/api" + path, body, {**KEY, "Content-Type": "application/json", **headers})

    def create(self, **body):
        """A sandbox that has been waited for."""
        answer = self.api("POST", "/sandbox", body)
        assert answer.status == 200, answer
        return Box(self, answer.json)

    def wait(self, name, state):
        """Poll until a sandbox is in a state; the object that says so."""
        end = time.monotonic() + client.TIMEOUT
        while time.monotonic() < end:
            shown = self.api("GET", f"/sandbox/{name}").json
            if shown.get("state") == state:
                return shown
        raise AssertionError(f"{name} is not {state} but {shown}")


class Box:
    """A sandbox of the fake."""

    def __init__(self, server, shown):
        self.server, self.shown, self.id = server, shown, shown["id"]
        self.prefix = f"/toolbox/{self.id}"

    def http(self, method, path, body=None, **headers):
        return self.server.request(method, self.prefix + path, body, {**KEY, **headers})

    def execute(self, command, **fields):
        answer = self.http("POST", "/process/execute", {"command": command, **fields})
        assert answer.status == 200, answer
        return answer.json["exitCode"], answer.json["result"]

    def write(self, path, data):
        """One file by bulk upload."""
        return self.upload([("files[0].path", None, path.encode()), ("files[0].file", "f", data)])

    def upload(self, parts, path="/files/bulk-upload", boundary="BOUND"):
        """A form of (field, file name or None, bytes)."""
        return self.http("POST", path, form(parts, boundary),
                         **{"Content-Type": f"multipart/form-data; boundary={boundary}"})

    def read(self, path, **headers):
        return self.http("GET", f"/files/download?path={quote(path)}", **headers)

    # -- terminals ----------------------------------------------------------------------------------------------------

    def socket(self, path, **headers):
        return Client(self.server.socket(), self.prefix + path, {**KEY, **headers})

    def pty(self, name="p", **fields):
        """Create a terminal and connect to it; `connected` is read already."""
        answer = self.http("POST", "/process/pty", {"id": name, **fields})
        assert answer.status == 201, answer
        return self.connect(name)

    def connect(self, name="p", **headers):
        socket = self.socket(f"/process/pty/{name}/connect", **headers)
        while (message := socket.message())[0] != 1:
            pass
        assert json.loads(message[1]) == {"type": "control", "status": "connected"}
        return socket

    def raw_pty(self, program, name="p", **fields):
        """A terminal in raw mode that has become a program, with all that the shell wrote before it passed over."""
        socket = self.pty(name, **fields)
        socket.send(b"stty raw -echo; printf 'RE''ADY'; exec " + program.encode() + b"\n")
        socket.until(b"READY")
        return socket

    # -- sessions -----------------------------------------------------------------------------------------------------

    def session(self, name="s"):
        assert self.http("POST", "/process/session", {"sessionId": name}).status == 201
        return Session(self, name)

    def state(self):
        return next(box for box in self.server.fake("GET", "sandboxes") if box["id"] == self.id)


class Session:
    """A session of a sandbox."""

    def __init__(self, box, name):
        self.box, self.path = box, f"/process/session/{name}"

    def run(self, command, **headers):
        return self.box.http("POST", self.path + "/exec", {"command": command}, **headers)

    def start(self, command, **fields):
        """An asynchronous command; its id."""
        answer = self.box.http("POST", self.path + "/exec", {"command": command, "runAsync": True, **fields})
        assert answer.status == 202, answer
        return answer.json["cmdId"]

    def input(self, number, data):
        return self.box.http("POST", f"{self.path}/command/{number}/input", {"data": data})

    def feed(self, number, data):
        """Input, as soon as there is something to put it into."""
        while (answer := self.input(number, data)).status == 500:
            pass
        assert answer.status == 204, answer

    def exit_code(self, number):
        """Poll until there is one."""
        while True:
            shown = self.box.http("GET", f"{self.path}/command/{number}").json
            if "exitCode" in shown:
                return shown["exitCode"]

    def log(self, number, **headers):
        return self.box.http("GET", f"{self.path}/command/{number}/logs", **headers)

    def follow(self, number, **headers):
        return self.box.socket(f"{self.path}/command/{number}/logs?follow=true", **headers)


def form(parts, boundary):
    body = b""
    for name, filename, data in parts:
        file = f'; filename="{filename}"' if filename else ""
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + data + b"\r\n"
    return body + f"--{boundary}--\r\n".encode()
