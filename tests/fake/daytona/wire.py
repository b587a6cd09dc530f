# SPDX-License-Identifier: ISC
"""How the Go services of Daytona (proxy, runner, daemon) write JSON, times and errors."""
import datetime
import json

JSON = {"Content-Type": "application/json; charset=utf-8"}
KINDS = {
    "not found": (404, "NOT_FOUND"), "unauthorized": (401, "UNAUTHORIZED"), "conflict": (409, "CONFLICT"),
    "invalid body request": (400, "INVALID_REQUEST_BODY"), "bad request": (400, "BAD_REQUEST"),
    "forbidden": (403, "FORBIDDEN"), "request timeout": (408, "REQUEST_TIMEOUT"), "gone": (410, "GONE"),
    "internal server error": (500, "INTERNAL_SERVER_ERROR"),
}


class ToolboxError(Exception):
    """An answer that is no success. `body` is a JSON value, or None for the empty body of most file handlers."""

    def __init__(self, status, body=None):
        super().__init__(f"{status} {body}")
        self.status, self.body = status, body


class ServiceError(Exception):
    """One of the daemon's typed errors: a kind of KINDS and a text."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def error_response(request, path, error):
    """The body that the error middleware makes of a typed error; `path` is the path without the proxy's part."""
    status, code = KINDS[error.kind]
    return ToolboxError(status, error_body(request, path, status, str(error), code))


def error_body(request, path, status, message, code):
    return {"statusCode": status, "message": message, "code": code, "timestamp": now(), "path": path,
            "method": request.method}


def untyped_error(message):
    """What the middleware makes of an error of no known type: even a wrapped typed one is a 500 without a code."""
    return ToolboxError(500, {"statusCode": 500, "message": message, "timestamp": "0001-01-01T00:00:00Z", "path": ""})


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
    """Bytes as a Go string that goes through its JSON encoder: each byte that is no UTF-8 becomes U+FFFD."""
    return "".join("\ufffd" if "\udc80" <= char <= "\udcff" else char
                   for char in data.decode("utf-8", "surrogateescape"))


def to_json(value):
    """encoding/json's form: compact, not ASCII only, safe for HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode("utf-8", "replace")


async def send_json(exchange, status, value, headers=None):
    await exchange.send(status, to_json(value), {**JSON, **(headers or {})})


async def read_json(exchange):
    """The JSON object of a request body, or ValueError with Go's idea of what is wrong with it."""
    data = await exchange.read()
    if not data:
        raise ValueError("EOF")
    try:
        body = json.loads(data)
    except ValueError:
        raise ValueError("invalid character in the body") from None
    if not isinstance(body, dict):
        raise ValueError("json: cannot unmarshal the body into Go value")
    return body


def field(body, name, kind, default=None):
    """A member of a body with its type checked, as Go's decoder does; ValueError when it is of another."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"json: cannot unmarshal {type(value).__name__} into Go struct field {name}")
    return value


def string_map(body, name):
    """A member that is an object of strings."""
    values = field(body, name, dict, {})
    if not all(isinstance(value, str) for value in values.values()):
        raise ValueError(f"json: cannot unmarshal into Go struct field {name} of type string")
    return values
