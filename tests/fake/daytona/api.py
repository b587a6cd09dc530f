# SPDX-License-Identifier: ISC
"""What Daytona's control plane checks of every request, and the shape of its errors."""
import datetime
import json

TITLES = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict",
          422: "Unprocessable Entity", 429: "Too Many Requests", 500: "Internal Server Error",
          503: "Service Unavailable"}
VERSION = {"X-Daytona-Api-Version": "v0.190.0"}
INTEGERS = ("cpu", "gpu", "memory", "disk", "autoStopInterval", "autoArchiveInterval", "autoDeleteInterval")
STRINGS = ("name", "snapshot", "user", "target")
STRING_MAPS = ("env", "labels")


class ApiError(Exception):
    """An error answer of the control plane."""

    def __init__(self, status, message, headers=None):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


def not_found(name):
    return ApiError(404, f"Sandbox with ID or name {name} not found")


def in_progress():
    return ApiError(409, "Sandbox state change in progress")


def iso(seconds):
    """JavaScript's Date.toISOString()."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def error_body(path, status, message):
    return {"path": path, "timestamp": iso(datetime.datetime.now().timestamp()), "statusCode": status,
            "error": TITLES.get(status, "Error"), "message": message}


def bearer(request):
    """The token of the Authorization header, or None."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme == "Bearer" and token.strip() else None


def key_is_good(request, config):
    """An API key that we know, or (with an organization) any JWT."""
    token = bearer(request)
    if token is None:
        return False
    if config["api_keys"] is None:
        return token.startswith("dtn_") or "X-Daytona-Organization-ID" in request.headers
    return token in config["api_keys"]


async def read_body(exchange):
    """The JSON object of a request; an empty body is an empty object."""
    data = await exchange.read()
    try:
        body = json.loads(data) if data else {}
    except ValueError as error:
        raise ApiError(400, str(error)) from None
    if not isinstance(body, dict):
        raise ApiError(400, "Unexpected token in JSON at position 0")
    return body


def check_types(body):
    """The validation of a create request: all complaints in one text."""
    wrong = []
    for name in INTEGERS:
        value = body.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            wrong.append(f"{name} must be a number conforming to the specified constraints")
    wrong += [f"{name} must be a string" for name in STRINGS if not isinstance(body.get(name, ""), str)]
    for name in STRING_MAPS:
        if not isinstance(body.get(name, {}), dict):
            wrong.append(f"{name} must be an object")
    if wrong:
        raise ApiError(400, ", ".join(wrong))
