# SPDX-License-Identifier: ISC
"""How the Go services of Daytona (proxy, runner, daemon) write JSON, times and errors."""
import datetime
import json
import re

JSON = {"Content-Type": "application/json; charset=utf-8"}
ERROR_JSON = {"Content-Type": "application/json"}       # only the error middleware's
LIMITS = {"uint16": (1 << 16) - 1, "uint32": (1 << 32) - 1}
KINDS = {
    "not found": (404, "NOT_FOUND"), "unauthorized": (401, "UNAUTHORIZED"), "conflict": (409, "CONFLICT"),
    "invalid body request": (400, "INVALID_REQUEST_BODY"), "bad request": (400, "BAD_REQUEST"),
    "forbidden": (403, "FORBIDDEN"), "request timeout": (408, "REQUEST_TIMEOUT"), "gone": (410, "GONE"),
    "internal server error": (500, "INTERNAL_SERVER_ERROR"),
}


class ToolboxError(Exception):
    """An answer that is no success. `body` is a JSON value, or None for the empty body of most file handlers."""

    def __init__(self, status, body=None, headers=None):
        super().__init__(f"{status} {body}")
        self.status, self.body, self.headers = status, body, headers


class ServiceError(Exception):
    """One of the daemon's typed errors: a kind of KINDS and a text."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def error_response(request, path, error):
    """The body that the error middleware makes of a typed error; `path` is the path without the proxy's part."""
    status, code = KINDS[error.kind]
    return ToolboxError(status, error_body(request, path, status, str(error), code), ERROR_JSON)


def error_body(request, path, status, message, code):
    return {"statusCode": status, "message": message, "code": code, "timestamp": now(), "path": path,
            "method": request.method}


def untyped_error(message):
    """What the middleware makes of an error of no known type: even a wrapped typed one is a 500 without a code."""
    return ToolboxError(500, {"statusCode": 500, "message": message, "timestamp": "0001-01-01T00:00:00Z", "path": ""},
                        ERROR_JSON)


def now():
    return rfc3339(int(datetime.datetime.now().timestamp() * 10 ** 6) * 1000)


def rfc3339(nanoseconds):
    """Go's RFC3339Nano, in UTC."""
    seconds, rest = divmod(nanoseconds, 10 ** 9)
    text = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    return text + f".{rest:09}".rstrip("0").rstrip(".") + "Z"


def go_time(nanoseconds):
    """Go's time.Time.String(), in UTC."""
    return rfc3339(nanoseconds).replace("T", " ").replace("Z", " +0000 UTC")


def to_text(data):
    """Bytes as a Go string: what is no UTF-8 is kept apart until it is encoded."""
    return data.decode("utf-8", "surrogateescape")


def to_json(value):
    """encoding/json's form: compact, not ASCII only, safe for HTML; each byte that is no UTF-8 is an escaped U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return re.sub("[\ud800-\udfff]", r"\\ufffd", text).encode()


async def send_json(exchange, status, value, headers=None):
    await exchange.send(status, to_json(value), {**JSON, **(headers or {})})


def kind_of(value):
    """What Go's decoder calls a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "string", dict: "object", list: "array"}.get(type(value), "null")


def fits(value, kind):
    """Is it a value of this Go type?"""
    if kind in LIMITS:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LIMITS[kind]
    if kind == "map[string]string":
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    if kind == "[]string":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, {"string": str, "bool": bool}[kind])


class Body:
    """The JSON object of a request and the name of its Go type, which errors tell. ValueError for what Go refuses."""

    def __init__(self, struct, values):
        self.struct, self.values = struct, values

    def get(self, name, kind, default=None):
        """A member of a Go type; the default if it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return default
        if fits(value, kind):
            return value
        got = kind_of(value)
        if got == "number" and kind in LIMITS:
            got += f" {value}"
        raise ValueError(f"json: cannot unmarshal {got} into Go struct field {self.struct}.{name} of type {kind}")

    def required(self, name, kind):
        """A member that must be there and not be empty."""
        value = self.get(name, kind)
        if not value:
            title = name[0].upper() + name[1:]
            raise ValueError(f"Key: '{self.struct}.{title}' Error:Field validation for '{title}' failed on the "
                             "'required' tag")
        return value


async def read_json(exchange, struct):
    """The Body of a request, or ValueError with Go's idea of what is wrong with it."""
    data = await exchange.read()
    if not data:
        raise ValueError("EOF")
    try:
        values = json.loads(data)
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc.rstrip()) - 1:
            raise ValueError("unexpected EOF") from None
        raise ValueError(f"invalid character '{error.doc[error.pos]}' looking for beginning of value") from None
    except ValueError:
        raise ValueError("invalid UTF-8") from None
    if not isinstance(values, dict):
        raise ValueError(f"json: cannot unmarshal {kind_of(values)} into Go value of type {struct}")
    return Body(struct, values)
