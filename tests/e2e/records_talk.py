# SPDX-License-Identifier: ISC
"""The records process alone, with workers that say whatever a test likes: core/record_protocol.h by hand."""

import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile

from gateway import BUILD

TIMEOUT = 60
CONFIGURE, ATTACH = 140, 141
CLAIM, CLAIMED, WAITING, READY = range(145, 149)
RELEASE, MAY_RELEASE = 151, 152
RUN = "0123456789abcdef"


def text(value):
    if value is None:
        return b"\xff" * 4
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">I", len(data)) + data


def frame(kind, payload=b"", version=1, descriptor=0):
    return struct.pack(">IBBB", len(payload), kind, version, descriptor) + payload


def exactly(sock, size):
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise EOFError("the records process closed the socket")
        data += piece
    return data


class Worker:
    """One socket of a workspace's, as the listener hands it to a worker."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(TIMEOUT)

    def send(self, kind, payload=b""):
        self.sock.sendall(frame(kind, payload))

    def take(self, kind):
        """The next message's payload; one of that kind, or a word that one has to wait for it."""
        while True:
            size, got = struct.unpack(">IBxx", exactly(self.sock, 7))
            payload = exactly(self.sock, size)
            if got != WAITING:
                assert got == kind
                return payload

    def send_claim(self, lost=None, reclaim=False):
        self.send(CLAIM, text(lost) + bytes([reclaim]))

    def take_claimed(self):
        """The sandbox, or None; a claim that fails raises with its message."""
        payload = self.take(CLAIMED)
        size = struct.unpack(">I", payload[6:10])[0]
        if payload[0]:
            raise RuntimeError(payload[10 : 10 + size].decode())
        rest = payload[10 + size :]
        size = struct.unpack(">I", rest[:4])[0]
        return None if size == 0xFFFFFFFF else rest[4 : 4 + size].decode()

    def claim(self, **arguments):
        self.send_claim(**arguments)
        return self.take_claimed()

    def ready(self, sandbox):
        self.send(READY, text(sandbox) + b"\1")

    def release(self, is_asked):
        self.send(RELEASE, bytes([is_asked]))
        return self.take(MAY_RELEASE) == b"\1"

    def is_closed(self):
        """Waits for what it may have to say, and for the end."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return True

    def close(self):
        self.sock.close()


class RecordsProcess:
    """rwsd-records, started as the listener does it."""

    def __init__(self, database=None):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="rwsd-records-"))
        self.log_path = self.directory / "log"
        (self.directory / "records").mkdir()
        self.listener, theirs = socket.socketpair()
        with open(self.log_path, "wb") as log:
            # pylint: disable=consider-using-with # stop() ends it
            self.process = subprocess.Popen(
                # The place of the arguments is that of the title: a shell's exec keeps descriptor 3.
                ["/bin/bash", "-c", f"exec -a 'rwsd: records' {BUILD}/rwsd-records -P records 0:0 1:0 3<&{theirs.fileno()}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[theirs.fileno()],
            )
        theirs.close()
        directory = os.open(self.directory / "records", os.O_RDONLY)
        message = frame(CONFIGURE, text(database) + text(RUN) + b"\0", descriptor=1)
        socket.send_fds(self.listener, [message], [directory])
        os.close(directory)

    def attach(self, login, instance="", idle=60000, limit=16):
        mine, theirs = socket.socketpair()
        names = text(login) + text(instance) + text("e2b")
        message = frame(ATTACH, names + b"\0" + struct.pack(">qq", idle, limit), descriptor=1)
        socket.send_fds(self.listener, [message], [theirs.fileno()])
        theirs.close()
        return Worker(mine)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def stop(self):
        """Kills it; what a sanitizer said is a fault, whatever passed."""
        self.listener.close()
        self.process.kill()
        self.process.wait(TIMEOUT)
        said = self.log()
        shutil.rmtree(self.directory, ignore_errors=True)
        assert "Sanitizer" not in said and "runtime error:" not in said, said
