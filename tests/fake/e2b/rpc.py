# SPDX-License-Identifier: ISC
"""The Connect protocol with the JSON codec, as connect-go 1.18 speaks it: envelopes, errors, compression.

JSON whitespace is random per message because protojson's is deliberately unstable: a client must parse, not match.
"""
import base64
import gzip
import json
import random
import struct

HTTP_STATUS = {
    "canceled": 499, "unknown": 500, "invalid_argument": 400, "deadline_exceeded": 504, "not_found": 404,
    "already_exists": 409, "permission_denied": 403, "resource_exhausted": 429, "failed_precondition": 400,
    "aborted": 409, "out_of_range": 400, "unimplemented": 501, "internal": 500, "unavailable": 503,
    "data_loss": 500, "unauthenticated": 401,
}
UNARY, STREAM = "application/json", "application/connect+json"
FLAG_COMPRESSED, FLAG_END = 1, 2
SEPARATORS = [(",", ":"), (", ", ":"), (",", ": "), (", ", ": ")]


class RpcError(Exception):
    """An error of the RPC layer, with one of Connect's codes."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message

    def value(self):
        return {"code": self.code, "message": self.message}


def encode(message):
    """protojson: default-valued fields are the caller's to omit (see `without_defaults`)."""
    return json.dumps(message, separators=random.choice(SEPARATORS), ensure_ascii=False).encode()


def without_defaults(message):
    """Drop what protojson does not print: zero, false, empty, absent."""
    return {key: value for key, value in message.items() if value not in (0, False, "", None, [], {})}


def decode(data):
    """A message from JSON; unknown fields are the callers' to ignore."""
    if not data:
        raise RpcError("invalid_argument", "unmarshal message: zero-length payload is not a valid JSON object")
    try:
        message = json.loads(data)
    except ValueError as error:
        raise RpcError("invalid_argument", f"unmarshal message: {error}") from None
    if not isinstance(message, dict):
        raise RpcError("invalid_argument", "unmarshal message: proto: syntax error: unexpected token")
    return message


def field(message, name, kind, default=None):
    """A field of a message by its lowerCamel or snake_case name, checked for type."""
    snake = "".join("_" + c.lower() if c.isupper() else c for c in name)
    value = message.get(name, message.get(snake))
    if value is None:
        return default
    if kind is int and isinstance(value, str) and value.isdigit():      # protojson takes numbers as strings too
        value = int(value)
    if kind is int and not isinstance(value, bool) and isinstance(value, int) and not 0 <= value < 1 << 32:
        raise RpcError("invalid_argument", f"unmarshal message: proto: invalid value for uint32 field {name}: {value}")
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RpcError("invalid_argument", f"unmarshal message: proto: invalid value for field {name}: {value!r}")
    return value


def decode_bytes(text):
    """bytes in protojson: base64, standard or URL-safe, padded or not."""
    text = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise RpcError("invalid_argument", "unmarshal message: proto: invalid value for bytes field") from None


def single_message(body):
    """The one message of a server-streaming request's body."""
    if not body:
        raise RpcError("unimplemented", "unary request has zero messages")
    flags, size, rest = split_header(body)
    if flags == FLAG_END:
        raise RpcError("unimplemented", "unary request has zero messages")
    if len(rest) < size:
        raise RpcError("invalid_argument", f"protocol error: promised {size} bytes in enveloped message, "
                                           f"got {len(rest)} bytes")
    if len(rest) > size:
        raise RpcError("unimplemented", "unary request has multiple messages")
    return decode(payload_of(flags, rest))


def split_header(data):
    if len(data) < 5:
        raise RpcError("invalid_argument", "protocol error: incomplete envelope: unexpected EOF")
    flags, size = struct.unpack_from(">BI", data)
    return flags, size, data[5:]


def payload_of(flags, payload):
    if flags & FLAG_COMPRESSED:
        raise RpcError("internal", "protocol error: sent compressed message without compression support")
    if flags & ~FLAG_COMPRESSED:
        raise RpcError("internal", f"protocol error: invalid envelope flags {flags}")
    return payload


async def read_messages(exchange):
    """The messages of a client stream, one by one, as they arrive."""
    content = exchange.request.content
    while True:
        header = await content.read(5)
        while header and len(header) < 5 and not content.at_eof():
            header += await content.read(5 - len(header))
        if not header:
            return
        flags, size, _ = split_header(header)
        payload = bytearray()
        while len(payload) < size:
            data = await content.read(size - len(payload))
            if not data:
                raise RpcError("invalid_argument", f"protocol error: promised {size} bytes in enveloped message, "
                                                   f"got {len(payload)} bytes")
            payload += data
        yield decode(payload_of(flags, bytes(payload)))


def accepts_gzip(exchange, header):
    return "gzip" in exchange.request.headers.get(header, "")


async def send_unary(exchange, message):
    """A unary answer. A client that accepts gzip gets gzip, as from connect-go."""
    await send_body(exchange, 200, encode(message))


async def send_unary_error(exchange, error):
    await send_body(exchange, HTTP_STATUS[error.code], encode(error.value()))


async def send_body(exchange, status, body):
    headers = {"Content-Type": UNARY, "Accept-Encoding": "gzip", "Vary": "Origin"}
    if accepts_gzip(exchange, "Accept-Encoding"):
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body, 1)
    await exchange.send(status, body, headers)


class Stream:
    """The answer of a streaming RPC: enveloped messages, then one end-of-stream envelope."""

    def __init__(self, exchange):
        self.exchange = exchange
        self.gzip = accepts_gzip(exchange, "Connect-Accept-Encoding")

    async def open(self):
        """Send the headers; they go out with the first event, as envd's do."""
        headers = {"Content-Type": STREAM, "Connect-Accept-Encoding": "gzip", "Vary": "Origin"}
        if self.gzip:
            headers["Connect-Content-Encoding"] = "gzip"
        await self.exchange.open(200, headers)

    async def send(self, message):
        await self.send_encoded(encode(message))

    async def send_encoded(self, payload):
        if self.exchange.response is None:
            await self.open()
        flags = FLAG_COMPRESSED if self.gzip else 0
        await self.exchange.frame(flags, gzip.compress(payload, 1) if self.gzip else payload)

    async def end(self, error=None):
        """The end of the stream: success, or an RpcError. A knob may replace or swallow it."""
        trailer = {"error": error.value()} if error else {}
        instead = self.exchange.action.get("end_stream")
        if instead not in (None, "none"):
            trailer = instead
        if self.exchange.response is None:
            await self.open()
        if instead != "none":
            await self.exchange.frame(FLAG_END, encode(trailer))
        await self.exchange.close()
