# SPDX-License-Identifier: ISC
"""One request and its answer, with whatever fault a knob says happens between them.

Handlers write answers only through here (send for a whole one, open/write/frame/close for a stream), so every fault
that concerns bytes on the wire is in this file and no handler knows of it.
"""
import asyncio
import fcntl
import json
import socket
import struct
import termios

from aiohttp import web
from aiohttp.streams import EmptyStreamReader

from .journal import note_body

OVERSIZED = 0x7fffffff
CANNED = ("error", "status", "headers", "body", "after", "drop")


class Dropped(Exception):
    """The connection is gone (or the answer has been given otherwise): the handler must stop."""


class Answer(web.StreamResponse):
    """A response without the Content-Type that aiohttp would make up."""

    async def _prepare_headers(self):
        typed = "Content-Type" in self.headers
        await super()._prepare_headers()
        if not typed:
            self.headers.popall("Content-Type", None)


class Exchange:
    """What a handler gets: the request, the place for its answer, and `closed` for when the client leaves."""

    def __init__(self, request, entry, rule, answer_delay):
        self.request = request
        self.entry = entry
        self.action = rule.action if rule else {}
        self.answer_delay = answer_delay + self.action.get("answer_delay_ms", 0) / 1000
        self.closed = request.protocol.closed
        self.on_trigger = None          # what kill_sandbox and expire_sandbox do; set by the fake
        self.response = None
        self.finished = False
        self.sent = self.events = 0
        self.held = bytearray()
        self.close_stream = None        # how a stream with an end of its own (a WebSocket) is closed by `then: close`
        self.triggered = False
        self.wedged = False             # the client is gone but the server side has not noticed
        self.task = asyncio.current_task()
        self.overdue = False            # after_ms is over: the task is cancelled for it
        self._watch_request_body()

    # -- the request ------------------------------------------------------------------------------------------------

    def _watch_request_body(self):
        """Count body bytes as they are consumed, and strike after request_bytes of them.

        Every read of aiohttp's stream ends in _read_nowait_chunk, so one override sees all of them.
        """
        content = self.request.content
        if isinstance(content, EmptyStreamReader):      # one object that all requests without a body share
            return
        entry = self.entry

        class Watched(type(content)):
            """Newer releases of aiohttp let no method of one stream be replaced, but its class."""

            __slots__ = ()

            def _read_nowait_chunk(reader, n):
                data = super()._read_nowait_chunk(n)
                note_body(entry, data)
                limit = self.action.get("request_bytes")
                if limit is not None and entry["bytes_in"] >= limit and not self.finished:
                    self.trigger()
                    self.cut()
                    raise Dropped
                return data

        content.__class__ = Watched

    async def read(self):
        """The whole request body."""
        content = self.request.content
        try:
            return b"" if content.at_eof() else await content.read()
        except ConnectionError:
            raise Dropped from None

    async def expect_continue(self):
        """Answer `Expect: 100-continue`; aiohttp's bare server leaves that to us."""
        if self.request.headers.get("Expect", "").lower() == "100-continue":
            self.request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # -- faults -----------------------------------------------------------------------------------------------------

    def trigger(self):
        """The moment of the fault: whatever happens to the sandbox happens now, once."""
        if not self.triggered and self.on_trigger:
            self.triggered = True
            self.on_trigger()

    def cut(self, how=None):
        """Break the connection: with a reset, or with an orderly end in the wrong place (fin)."""
        how = how or self.action.get("how", "reset")
        self.finished = True
        self.entry["ended"] = how
        transport = self.request.transport
        if transport is None:
            return
        if how != "reset":
            transport.close()
            return
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()

    async def before(self):
        """Faults that strike before the request is processed."""
        action = self.action
        if action.get("delay_ms"):
            await asyncio.sleep(action["delay_ms"] / 1000)
        if "after_ms" in action:
            asyncio.get_running_loop().call_later(action["after_ms"] / 1000, self._become_overdue)
        points = ("request_bytes", "after_bytes", "after_events", "after_ms", "after")
        if not any(point in action for point in points) and action.get("drop") != "after":
            self.trigger()
        if action.get("drop") == "before":
            self.cut()
            raise Dropped
        if "status" in action and not action.get("after"):
            await self._canned()

    async def _canned(self):
        """The answer that the knob gives instead of ours; the request body is read first, as a real server would."""
        action, self.action = self.action, {key: value for key, value in self.action.items() if key not in CANNED}
        await self.read()
        body = action.get("body", "")
        headers = dict(action.get("headers", {}))
        if not isinstance(body, str):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        headers.setdefault("Content-Type", "text/html; charset=utf-8" if body.startswith("<") else "text/plain")
        await self.send(action["status"], body.encode(), headers)
        raise Dropped

    async def _before_answer(self):
        """Faults that strike once the request has been processed and nothing of the answer is out."""
        if self.answer_delay:
            delay, self.answer_delay = self.answer_delay, 0
            await asyncio.sleep(delay)
        if self.action.get("drop") == "after":
            self.trigger()
            self.cut()
            raise Dropped
        if "status" in self.action:
            self.trigger()
            await self._canned()

    def _become_overdue(self):
        """The time of after_ms: whatever the handler waits for, it is torn out of it."""
        if self.finished or "after_ms" not in self.action:
            return
        if self.action.get("then") == "go on":
            self.trigger()
        else:
            self.overdue = True
            self.task.cancel()

    async def strike(self):
        """The trigger point within the answer has been reached."""
        self.trigger()
        then = self.action.get("then", "cut")
        if then == "go on":
            self.action = {}
            return
        if then == "stall":
            await self.closed
        elif then == "close" and self.close_stream:
            await self.close_stream(self.action.get("close_code", 1000), self.action.get("close_reason", ""))
        elif self.action.get("how") == "end" and self.response is not None and not self.close_stream:
            self.finished = True
            self.entry["ended"] = "end"
            await self.response.write_eof()
        else:
            await self.drain()
            self.cut()
        raise Dropped

    async def drain(self):
        """Let what was written reach the socket before the connection is cut."""
        transport = self.request.transport
        while transport and not transport.is_closing() and transport.get_write_buffer_size():
            await asyncio.sleep(0.001)
        # What the kernel still holds is lost by a reset; the peer has the bytes once it has acknowledged them.
        if transport and not transport.is_closing():
            await wait_acknowledged(transport.get_extra_info("socket"))

    # -- the answer -------------------------------------------------------------------------------------------------

    async def send(self, status, body=b"", headers=None):
        """A whole answer of known length."""
        await self.open(status, headers, len(body) if status not in (204, 304) else None)
        if body and self.request.method != "HEAD":
            await self.write(body)
        await self.close()

    async def send_json(self, status, value, headers=None):
        await self.send(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    async def open(self, status, headers=None, length=None):
        """Begin an answer; without a length it is a chunked stream."""
        await self._before_answer()
        self.entry["status"] = status
        self.response = Answer(status=status, headers=headers)
        if status != 101 and "Upgrade" in self.request.headers:
            self.response.force_close()             # aiohttp parses no further request after such a one
        if length is not None:
            self.response.content_length = length
        elif status in (101, 204, 304):
            self.response._length_check = False     # else aiohttp closes the connection after it
        elif self.request.version >= (1, 1):
            self.response.enable_chunked_encoding()
        try:
            await self.response.prepare(self.request)
        except ConnectionError:
            raise Dropped from None

    async def write(self, data):
        """Bytes of the answer's body, in order; waits while the client does not read."""
        limit = self.action.get("after_bytes")
        if limit is not None and self.sent + len(data) >= limit:
            await self._put(data[:limit - self.sent])
            await self.strike()
            data = data[max(limit - self.sent, 0):]
        await self._put(data)

    async def _put(self, data):
        step = self.action.get("dribble_bytes", len(data)) or 1
        for start in range(0, len(data), step):
            part = data[start:start + step]
            self.sent += len(part)
            self.entry["bytes_out"] += len(part)
            try:
                await self.response.write(part)
            except ConnectionError:
                raise Dropped from None
            if "dribble_bytes" in self.action:
                await asyncio.sleep(self.action.get("dribble_ms", 0) / 1000)

    async def frame(self, flags, payload):
        """One enveloped message of a stream (5-byte header)."""
        await self.message(struct.pack(">BI", flags, len(payload)) + payload, lambda kind: spoil(kind, payload))

    async def message(self, data, spoil_as):
        """One framed message of a stream: what after_events and frame faults count. spoil_as(kind) is a broken one."""
        self.events += 1
        spoilt = self.action.get("frame")
        if spoilt and spoilt.get("n", 1) == self.events:
            data = spoil_as(spoilt["kind"])
        self.held += data
        if self.events % self.action.get("coalesce", 1):
            return
        await self._release()
        if spoilt and spoilt["kind"] == "cut" and spoilt.get("n", 1) == self.events:
            await self.strike()
        if self.action.get("after_events") == self.events:
            await self.strike()

    async def _release(self):
        """Write the frames that were held back to go out together."""
        held, self.held = bytes(self.held), bytearray()
        if held:
            await self.write(held)

    async def close(self):
        """End the answer properly."""
        await self._release()
        self.finished = True
        self.entry["ended"] = "ok"
        try:
            await self.response.write_eof()
        except ConnectionError:
            raise Dropped from None


def spoil(kind, payload):
    """A broken envelope in the place of a good one."""
    if kind == "compressed":
        return struct.pack(">BI", 1, len(payload)) + payload
    if kind == "oversized":
        return struct.pack(">BI", 0, OVERSIZED) + payload
    if kind == "cut":
        return (struct.pack(">BI", 0, len(payload)) + payload)[:5 + len(payload) // 2]
    return struct.pack(">BI", 0, len(payload)) + b"\xff" * len(payload)


async def wait_acknowledged(sock):
    """Wait until the peer's kernel has everything (SIOCOUTQ is 0)."""
    for _ in range(2000):
        try:
            left = struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0]
        except (OSError, ValueError):       # it is closed
            return
        if left == 0:
            return
        await asyncio.sleep(0.001)
