# SPDX-License-Identifier: ISC
"""A client that does what no client should: paramiko with its packets written by hand."""

import pathlib
import re
import select
import socket
import struct
import threading

import paramiko
from clients import TIMEOUT

# RFC 4253 section 12, RFC 4254 section 9
MSG_SERVICE_REQUEST, MSG_USERAUTH_REQUEST, MSG_GLOBAL_REQUEST = 5, 50, 80
MSG_CHANNEL_OPEN, MSG_WINDOW_ADJUST, MSG_DATA, MSG_EXTENDED_DATA = 90, 93, 94, 95
MSG_EOF, MSG_CLOSE, MSG_REQUEST = 96, 97, 98
MSG_PING = 192
BATCH = 65536
# Seconds without taking a byte after which the gateway counts as one that has stopped reading.
STALL = 2


def text(value):
    """A string as RFC 4251 section 5 has it."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">I", len(data)) + data


def number(*values):
    return struct.pack(f">{len(values)}I", *values)


def memory_peak(pid):
    """The most memory that a process ever had, in KiB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status).group(1))


class Attacker(paramiko.Transport):
    """A connection that sends any packet, as many at once as it likes, and reads only when it wants to."""

    def __init__(self, gateway, login="sandbox"):
        super().__init__(socket.create_connection(("127.0.0.1", gateway.port), TIMEOUT))
        self._held = None
        self._reading = threading.Event()
        self._reading.set()
        self._read = self.packetizer.read_message
        self.packetizer.write_all = self._collect
        self.packetizer.read_message = self._read_when_wanted
        self.start_client(timeout=TIMEOUT)
        if login is not None:
            key = paramiko.Ed25519Key.from_private_key_file(str(gateway.key))
            self.auth_publickey(login, key)

    def _write(self, data):
        while data:
            if self.sock.fileno() < 0 or not select.select([], [self.sock], [], STALL)[1]:
                raise EOFError("the gateway does not read")
            data = data[self.sock.send(data) :]

    def _collect(self, data):
        if self._held is None:
            self._write(data)
            return
        self._held += data
        if len(self._held) > BATCH:
            self._write(bytes(self._held))
            self._held.clear()

    def _read_when_wanted(self):
        self._reading.wait()
        return self._read()

    def stop_reading(self):
        self._reading.clear()

    def send(self, kind, *parts):
        self._send_message(paramiko.Message(bytes([kind]) + b"".join(parts)))

    def send_many(self, count, kind, *parts):
        """Sends a packet many times, in few writes. Returns how many went out before the gateway stopped it."""
        packet = bytes([kind]) + b"".join(parts)
        self._held = bytearray()
        try:
            for sent in range(count):
                self._send_message(paramiko.Message(packet))
            self._write(bytes(self._held))
        except (EOFError, OSError, paramiko.SSHException):
            return sent
        finally:
            self._held = None
        return count

    def request(self, channel, kind, *parts, wanted=False):
        """A request on a channel (RFC 4254 section 5.4)."""
        reply = b"\1" if wanted else b"\0"
        self.send(MSG_REQUEST, number(channel.remote_chanid), text(kind), reply, *parts)

    def open_raw(self, window=1 << 30, packet=32768):
        """A session channel with a window and a packet size of our choosing."""
        with self.lock:
            ours = self._next_channel()
            channel = paramiko.Channel(ours)
            self._channels.put(ours, channel)
            opened = self.channel_events[ours] = threading.Event()
            self.channels_seen[ours] = True
            channel._set_transport(self)
            channel._set_window(1 << 20, 1 << 15)
        self.send(MSG_CHANNEL_OPEN, text("session"), number(ours, window, packet))
        assert opened.wait(TIMEOUT)
        return channel

    def cut(self):
        """Ends the connection at once."""
        self._reading.set()
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.close()
