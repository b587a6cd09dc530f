# SPDX-License-Identifier: ISC
"""What the self-tests of the fakes drive them with: plain HTTP, nothing that would hide a byte."""
import http.client
import json
import os
import socket
import subprocess
from dataclasses import dataclass

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
TIMEOUT = 30


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class FakeServer:
    """A running fake; subclasses name its module."""

    module = None

    def __init__(self, root):
        command = ["/usr/bin/python3", "-m", self.module, "--root", str(root)]
        self.process = subprocess.Popen(command, cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        words = self.process.stdout.readline().split()
        assert words[:2] == ["listening", "on"], words
        self.port = int(words[2].rsplit(":", 1)[1])

    def stop(self):
        self.process.terminate()
        return self.process.wait(TIMEOUT)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)

    def socket(self):
        return socket.create_connection(("127.0.0.1", self.port), TIMEOUT)

    def request(self, method, path, body=None, headers=None):
        connection = self.connect()
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(method, path, data, headers or {})
        answer = connection.getresponse()
        result = Answer(answer.status, answer.headers, answer.read())
        connection.close()
        return result

    def fake(self, method, path, body=None):
        answer = self.request(method, "/_fake/" + path, body)
        assert answer.status == 200, answer
        return answer.json

    def knob(self, path, action, **more):
        match = {"path": path, **more.pop("match", {})}
        return self.fake("POST", "knobs", {"match": match, "action": action, **more})[0]
