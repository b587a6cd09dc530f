# SPDX-License-Identifier: ISC
"""Daytona's error answers by name, for knobs: {"action": {"error": "rate_limited"}}."""
from .api import VERSION, error_body
from .wire import ERROR_JSON

JSON = {"Content-Type": "application/json; charset=utf-8", **VERSION}
GONE = "13b1a4c6-0000-4000-8000-000000000000"
PAGE = ("<!DOCTYPE html><html lang=\"en\"><head><title>Daytona</title></head><body><div id=\"root\"></div></body>"
        "</html>\n")


def api(status, message, headers=None):
    """An error of the control plane."""
    return {"status": status, "body": error_body("/api/sandbox", status, message),
            "headers": {**JSON, **(headers or {})}}


def throttled(name, seconds, bare=False):
    """A 429: the wait is in a header with the throttler's name; only one of them has the usual header too."""
    headers = {f"X-RateLimit-Limit-{name}": "600", f"X-RateLimit-Remaining-{name}": "0",
               f"X-RateLimit-Reset-{name}": str(seconds), f"Retry-After-{name}": str(seconds)}
    if bare:
        headers["Retry-After"] = str(seconds)
    return api(429, "ThrottlerException: Too Many Requests", headers)


def toolbox(status, message, code):
    """An error in the shape of the proxy, the runner and the daemon."""
    return {"status": status, "headers": ERROR_JSON, "body": {
        "statusCode": status, "message": message, "code": code, "timestamp": "2026-01-01T00:00:00Z", "path": "/",
        "method": "GET"}}


ERRORS = {
    "rate_limited": throttled("authenticated", 1),
    "create_rate_limited": throttled("sandbox-create", 2),
    "lifecycle_rate_limited": throttled("sandbox-lifecycle", 1),
    "auth_rate_limited": throttled("failed-auth", 1, bare=True),
    "unauthorized": api(401, "Invalid credentials"),
    "forbidden": api(403, "Access denied"),
    "auth_unavailable": api(503, "Temporary authentication service error"),
    "maintenance": api(503, "Service is in maintenance"),
    "in_progress": api(409, "Sandbox state change in progress"),
    "cpu_quota": api(400, "Total CPU limit exceeded. Maximum allowed: 10.\nTo increase concurrency limits, upgrade "
                          "your organization's Tier by visiting https://app.daytona.io/dashboard/limits."),
    "memory_quota": api(400, "Total memory limit exceeded. Maximum allowed: 10GiB."),
    "disk_quota": api(400, "Total disk limit exceeded. Maximum allowed: 30GiB."),
    "create_failed": api(400, "Sandbox failed to start: no runner available"),
    "internal": api(500, "Internal server error"),
    "html": {"status": 200, "body": PAGE},
    "html_502": {"status": 502, "body": "<!DOCTYPE html><html><body><h1>Bad Gateway</h1></body></html>\n"},
    "empty": {"status": 502},
    "not_started": toolbox(400, "bad request: failed to resolve container IP after 3 attempts: no IP address found. Is "
                                "the Sandbox started?", "BAD_REQUEST"),
    "no_container": toolbox(404, f"not found: sandbox container not found: Error response from daemon: No such "
                                 f"container: {GONE}", "NOT_FOUND"),
    "no_runner": toolbox(400, "bad request: failed to get runner info: runner not found", "BAD_REQUEST"),
    "no_public_status": toolbox(400, "bad request: failed to get sandbox public status: Service Unavailable",
                                "BAD_REQUEST"),
    "toolbox_unauthorized": toolbox(401, "unauthorized: authentication failed: Bearer token is invalid",
                                    "UNAUTHORIZED"),
    "execute_timeout": toolbox(408, "request timeout: command execution timeout", "REQUEST_TIMEOUT"),
}
