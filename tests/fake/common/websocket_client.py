# SPDX-License-Identifier: ISC
"""A WebSocket client for the self-tests of the fakes: it shows every frame and can send broken ones."""
import base64
import os
import struct

from .websocket import BINARY, CLOSE, CONTINUATION, TEXT, encode

LARGEST = 1 << 24
MASK = b"\x0f\xf0\x33\xcc"


class Refused(Exception):
    """The handshake was answered with something else than 101."""

    def __init__(self, status, body):
        super().__init__(f"{status} {body!r}")
        self.status, self.body = status, body


class Client:
    """An open connection. After a close frame, `code` and `reason` tell it; code 1006 is an end without one."""

    def __init__(self, sock, path, headers=None):
        self.sock, self.file = sock, sock.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade",
                 f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while (line := self.file.readline().strip()):
            name, _, value = line.decode().partition(": ")
            self.headers[name.lower()] = value
        self.code = self.reason = None
        self.left = b""
        if self.status != 101:
            raise Refused(self.status, self.file.read(int(self.headers.get("content-length", "0"))))

    def send(self, payload, opcode=BINARY, **more):
        self.sock.sendall(encode(opcode, payload, mask=MASK, **more))

    def frame(self):
        """(first byte, payload) of the next frame, or None at the end of the connection."""
        try:
            head = self.file.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7f
            if size >= 126:
                size = int.from_bytes(self.file.read(2 if size == 126 else 8), "big")
            mask = self.file.read(4) if head[1] & 0x80 else b""
            payload = self.file.read(min(size, LARGEST))
        except ConnectionError:
            return None
        if len(payload) < size:
            return None
        return head[0], mask + payload

    def message(self):
        """The next whole message: (TEXT or BINARY, bytes), or None once closed. Control frames are passed over."""
        if self.left:
            message, self.left = self.left, b""
            return BINARY, message
        kind, message = None, b""
        while True:
            frame = self.frame()
            if frame is None:
                self.code = self.code or 1006
                return None
            opcode = frame[0] & 0x0f
            if opcode == CLOSE:
                self.code = struct.unpack(">H", frame[1][:2])[0] if frame[1] else 1005
                self.reason = frame[1][2:].decode()
                return None
            if opcode in (TEXT, BINARY, CONTINUATION):
                kind, message = kind or opcode, message + frame[1]
                if frame[0] & 0x80:
                    return kind, message

    def until(self, wanted):
        """Binary output up to and with these bytes."""
        seen = b""
        while wanted not in seen:
            message = self.message()
            assert message is not None, (seen, self.code, self.reason)
            seen += message[1] if message[0] == BINARY else b""
        end = seen.index(wanted) + len(wanted)
        self.left = seen[end:]
        return seen[:end]

    def rest(self):
        """All binary output to the close."""
        seen = b""
        while message := self.message():
            seen += message[1] if message[0] == BINARY else b""
        return seen

    def close(self):
        self.file.close()
        self.sock.close()
