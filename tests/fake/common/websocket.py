# SPDX-License-Identifier: ISC
"""The server's end of a WebSocket (RFC 6455), frame by frame, so that every frame can be spoilt.

It is an answer like any other: its bytes go out through the Exchange, so the faults that are known there (a cut after
so many bytes or frames, dribbling, stalls) strike here too. No extension is ever agreed on.
"""
import asyncio
import base64
import hashlib
import struct

from aiohttp.streams import StreamReader

from .exchange import Dropped
from .journal import note_body

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN, MASKED = 0x80, 0x80
BUFFER = 1 << 16
LINGER = 1.0        # seconds
NORMAL, PROTOCOL_ERROR, TOO_BIG = 1000, 1002, 1009


class ReceiveEnd(Exception):
    """The peer closed, left, or broke the rules: nothing more will be received."""


class Feed:
    """What aiohttp hands the bytes after the upgrade to."""

    def __init__(self, reader):
        self.reader = reader

    def feed_data(self, data):
        self.reader.feed_data(data)
        return False, b""

    def feed_eof(self):
        self.reader.feed_eof()


def encode(opcode, payload, first=FIN, mask=None):
    """One frame; `first` holds the FIN and reserved bits."""
    size, bit = len(payload), 0 if mask is None else MASKED
    if size < 126:
        head = struct.pack(">BB", first | opcode, bit | size)
    elif size < 1 << 16:
        head = struct.pack(">BBH", first | opcode, bit | 126, size)
    else:
        head = struct.pack(">BBQ", first | opcode, bit | 127, size)
    return head + payload if mask is None else head + mask + masked(payload, mask)


def masked(payload, mask):
    """The payload with the mask on, or off again."""
    size = len(payload)
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return (int.from_bytes(payload, "big") ^ key).to_bytes(size, "big")


def spoil(kind, opcode, payload):
    """A data frame with something wrong, or (fragmented) something that is right but rare."""
    third = max(len(payload) // 3, 1)
    if kind == "fragmented":
        return b"".join([encode(opcode, payload[:third], 0), encode(PING, b"between"),
                         encode(CONTINUATION, payload[third:2 * third], 0), encode(CONTINUATION, b"", 0),
                         encode(CONTINUATION, payload[2 * third:])])
    if kind == "compressed":
        return encode(opcode, payload, FIN | 0x40)
    if kind == "masked":
        return encode(opcode, payload, mask=b"\1\2\3\4")
    if kind == "opcode":
        return encode(3, payload)
    if kind == "text":
        return encode(TEXT, b"\xff" + payload)
    if kind == "long_length":
        return struct.pack(">BBQ", FIN | opcode, 127, len(payload)) + payload
    if kind == "oversized":
        return struct.pack(">BBQ", FIN | opcode, 127, 1 << 62) + payload
    if kind == "cut":
        whole = encode(opcode, payload)
        return whole[:-1 - len(payload) // 2]
    return encode(CONTINUATION, payload)        # garbage: it continues nothing


class WebSocket:
    """An accepted connection. Make one with `await WebSocket.accept(exchange)`."""

    def __init__(self, exchange, reader, limit):
        self.exchange, self.reader, self.limit = exchange, reader, limit
        self.closing = False
        self.data_frames = 0
        self._sending = asyncio.Lock()
        exchange.close_stream = self._close_now

    @classmethod
    async def accept(cls, exchange, protocol=None, limit=None):
        """Answer the handshake, or refuse it (then Dropped is raised). `limit` is of a received message, in bytes."""
        request = exchange.request
        refusal = refuse(request)
        if refusal:
            await exchange.send(400, refusal.encode() + b"\n", {"Content-Type": "text/plain; charset=utf-8",
                                                                "Sec-WebSocket-Version": "13"})
            raise Dropped
        await exchange.open(101, handshake(request.headers["Sec-WebSocket-Key"], protocol,
                                           exchange.action.get("handshake")))
        exchange.response.force_close()
        reader = StreamReader(request.protocol, BUFFER, loop=asyncio.get_running_loop())
        request.protocol.set_parser(Feed(reader))
        return cls(exchange, reader, limit)

    # -- receiving ----------------------------------------------------------------------------------------------------

    async def receive(self):
        """The next message: (TEXT or BINARY, bytes). Answers pings. ReceiveEnd when there will be none."""
        kind, message = None, bytearray()
        while True:
            fin, opcode, payload = await self._frame(len(message))
            if opcode >= CLOSE:
                await self._control(opcode, payload)
                continue
            if (opcode == CONTINUATION) == (kind is None):
                await self._fail(PROTOCOL_ERROR)
            kind = kind or opcode
            message += payload
            if fin:
                return kind, bytes(message)

    async def _read(self, size):
        try:
            return await self.reader.readexactly(size) if size else b""
        except (asyncio.IncompleteReadError, ConnectionError):
            raise ReceiveEnd from None

    async def _frame(self, so_far):
        """One frame, unmasked: (fin, opcode, payload)."""
        first, second = await self._read(2)
        opcode, size = first & 0x0f, second & 0x7f
        if size >= 126:
            size = int.from_bytes(await self._read(2 if size == 126 else 8), "big")
        if first & 0x70 or not second & MASKED or opcode not in (0, 1, 2, 8, 9, 10) or (
                opcode >= CLOSE and (size > 125 or not first & FIN)):
            await self._fail(PROTOCOL_ERROR)
        if self.limit is not None and opcode < CLOSE and so_far + size > self.limit:
            await self._fail(TOO_BIG)
        mask = await self._read(4)
        payload = masked(await self._read(size), mask)
        if opcode < CLOSE:
            self._count(payload)
        return bool(first & FIN), opcode, payload

    def _count(self, payload):
        """Note what came; the request_bytes fault strikes here."""
        exchange = self.exchange
        note_body(exchange.entry, payload)
        limit = exchange.action.get("request_bytes")
        if limit is not None and exchange.entry["bytes_in"] >= limit and not exchange.finished:
            exchange.trigger()
            exchange.cut()
            raise ReceiveEnd

    async def _control(self, opcode, payload):
        if opcode == PING:
            await self._send_frame(PONG, payload)
        elif opcode == CLOSE:
            if not self.closing:
                self.closing = True
                await self._send_frame(CLOSE, payload[:2])
            raise ReceiveEnd

    async def _fail(self, code):
        """The peer broke a rule: say so and be done."""
        await self.send_close(code)
        raise ReceiveEnd

    # -- sending ------------------------------------------------------------------------------------------------------

    async def _send_frame(self, opcode, payload):
        """A control frame, which no fault counts."""
        async with self._sending:
            if not self.exchange.finished:
                await self.exchange.write(encode(opcode, payload))

    async def send(self, payload, opcode=BINARY):
        """A data message in one frame."""
        async with self._sending:
            if self.closing or self.exchange.finished:
                raise Dropped
            self.data_frames += 1
            if self.data_frames % self.exchange.action.get("ping_every", self.data_frames + 1) == 0:
                await self.exchange.write(encode(PING, b"are you there"))
            await self.exchange.message(encode(opcode, payload), lambda kind: spoil(kind, opcode, payload))

    async def send_text(self, text):
        await self.send(text.encode(), TEXT)

    async def send_close(self, code, reason=""):
        """The close frame, once."""
        if not self.closing:
            self.closing = True
            await self._send_frame(CLOSE, struct.pack(">H", code) + reason.encode())

    async def _close_now(self, code, reason):
        """`then: close` of a knob: in the middle of a send, so without the lock. 1006 is an end without a frame."""
        self.closing = True
        if code != 1006:
            await self.exchange.response.write(encode(CLOSE, struct.pack(">H", code) + reason.encode()))
        await self.exchange.drain()
        self.exchange.cut("fin")

    async def finish(self):
        """End the connection. What was written gets a moment to arrive: closing with input unread would reset it."""
        if self.exchange.finished:
            return
        self.closing = True
        try:
            await asyncio.wait_for(self.exchange.drain(), LINGER)
        except asyncio.TimeoutError:
            pass
        await self.exchange.close()


def refuse(request):
    """Why the handshake cannot be accepted, or None; the words are those of the Go library the providers use."""
    def has(name, token):
        return token in [word.strip().lower() for word in request.headers.get(name, "").split(",")]
    if not has("Connection", "upgrade") or not has("Upgrade", "websocket"):
        return "Bad Request"
    if request.headers.get("Sec-WebSocket-Version") != "13" or "Sec-WebSocket-Key" not in request.headers:
        return "Bad Request"
    return None


def handshake(key, protocol, fault):
    """The headers of the 101; the handshake fault makes them wrong."""
    accept = base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept}
    if fault == "accept":
        headers["Sec-WebSocket-Accept"] = base64.b64encode(bytes(20)).decode()
    if protocol or fault == "protocol":
        headers["Sec-WebSocket-Protocol"] = "nobody-asked-for-this" if fault == "protocol" else protocol
    if fault == "extension":
        headers["Sec-WebSocket-Extensions"] = "permessage-deflate"
    return headers
