# SPDX-License-Identifier: ISC
"""What the self-tests drive the fake with: plain HTTP and Connect frames, nothing that would hide a byte."""
import base64
import json
import struct

from ..common import client

KEY = {"X-API-Key": "e2b_" + "0" * 40}


def envelope(message, flags=0):
    payload = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">BI", flags, len(payload)) + payload


class Stream:
    """The answer of a streaming RPC, read frame by frame."""

    def __init__(self, connection):
        self.connection = connection
        self.answer = connection.getresponse()

    def frame(self):
        """(flags, payload bytes), or None at an orderly end of the body."""
        header = self.answer.read(5)
        if not header:
            return None
        flags, size = struct.unpack(">BI", header)
        return flags, self.answer.read(size)

    def event(self):
        """The next message's event, or ("eos", trailer) for the end-of-stream envelope."""
        flags, payload = self.frame()
        message = json.loads(payload)
        if flags & 2:
            return "eos", message
        return next(iter(message["event"].items()))

    def until(self, kind):
        """Skip to the next event of a kind; its value."""
        while True:
            name, value = self.event()
            if name == kind:
                return value

    def rest(self):
        """Everything to the end: ({"stdout": bytes, ...}, end event or None, trailer)."""
        output, end = {"stdout": bytearray(), "stderr": bytearray(), "pty": bytearray()}, None
        while True:
            name, value = self.event()
            if name == "data":
                for stream, text in value.items():
                    output[stream] += base64.b64decode(text)
            elif name == "end":
                end = value
            elif name == "eos":
                return output, end, value

    def close(self):
        self.answer.close()
        self.connection.close()


class FakeServer(client.FakeServer):
    """A running fake E2B."""

    module = "tests.fake.e2b"

    def api(self, method, path, body=None, **headers):
        """A control-plane request with a good key."""
        return self.request(method, path, body, {**KEY, "Content-Type": "application/json", **headers})

    def create(self, **body):
        answer = self.api("POST", "/v2/sandboxes", {"templateID": "base", **body})
        assert answer.status == 201, answer
        return Box(self, answer.json)


class Box:
    """A sandbox of the fake."""

    def __init__(self, server, shown):
        self.server, self.shown = server, shown
        self.id, self.token = shown["sandboxID"], shown.get("envdAccessToken")

    def headers(self, **more):
        headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983", "Accept": "application/json"}
        if self.token:
            headers["X-Access-Token"] = self.token
        return {**headers, **{name.replace("_", "-"): value for name, value in more.items()}}

    def http(self, method, path, body=None, **headers):
        return self.server.request(method, path, body, self.headers(**headers))

    def rpc(self, method, message, **headers):
        """A unary RPC, e.g. rpc("process.Process/List", {})."""
        return self.http("POST", "/" + method, message, **{"Content-Type": "application/json", **headers})

    def stream(self, method, message, **headers):
        """A server-streaming RPC; the Stream to read."""
        connection = self.server.connect()
        body = message if isinstance(message, bytes) else envelope(message)
        connection.request("POST", "/" + method, body,
                           self.headers(**{"Content-Type": "application/connect+json", **headers}))
        return Stream(connection)

    def start(self, script, headers=None, **fields):
        """Start `sh -c script`; stdin is off unless fields say otherwise."""
        message = {"process": {"cmd": "sh", "args": ["-c", script]}, "stdin": False, **fields}
        return self.stream("process.Process/Start", message, **(headers or {}))

    def run(self, script, **fields):
        """Run `sh -c script` to its end: (stdout, stderr, end event)."""
        output, end, trailer = self.start(script, **fields).rest()
        assert trailer == {}, trailer
        return bytes(output["stdout"]), bytes(output["stderr"]), end

    def send_input(self, pid, data, kind="stdin"):
        return self.rpc("process.Process/SendInput", {
            "process": {"pid": pid}, "input": {kind: base64.b64encode(data).decode()}})

    def close_stdin(self, pid):
        return self.rpc("process.Process/CloseStdin", {"process": {"pid": pid}})

    def signal(self, pid, name):
        return self.rpc("process.Process/SendSignal", {"process": {"pid": pid}, "signal": name})

    def write(self, path, data, **headers):
        return self.http("POST", f"/files?path={path}", data, **{"Content-Type": "application/octet-stream", **headers})

    def read(self, path, **headers):
        return self.http("GET", f"/files?path={path}", **headers)

    def state(self):
        return next(box for box in self.server.fake("GET", "sandboxes") if box["id"] == self.id)
