# SPDX-License-Identifier: ISC
"""Vercel's error answers by name, for knobs: {"action": {"error": "rate_limited"}}."""
from .api import JSON, error_body

PAGE = "<!DOCTYPE html><html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>\n"


def api(status, code, message, headers=None):
    return {"status": status, "body": error_body(code, message), "headers": {**JSON, **(headers or {})}}


def html(status, title):
    """What an edge says of itself, in its own way."""
    return {"status": status, "body": PAGE.format(f"{status}: {title}")}


def rate_limited(seconds):
    return api(429, "rate_limited", "The rate limit of 6 exceeded. Try again later.", {"Retry-After": str(seconds)})


STOPPED = ("sandbox_stopped", "Sandbox has stopped execution and is no longer available")
STOPPING = ("sandbox_stopping", "Sandbox is stopping")
SNAPSHOTTING = ("sandbox_snapshotting", "Sandbox is being snapshotted")
STREAM_CLOSED = {"code": "sandbox_stream_closed",
                 "message": "Sandbox stream was closed and is not accepting commands."}

ERRORS = {
    "rate_limited": rate_limited(1),
    "rate_limited_long": rate_limited(60),
    "rate_limited_bare": api(429, "rate_limited", "Too many requests"),
    "unauthorized": api(401, "unauthorized", "The request is missing an authentication token"),
    "forbidden": api(403, "forbidden", "Not authorized"),
    "payment_required": api(402, "payment_required", "You have reached the usage limit of your plan."),
    "not_found": api(404, "not_found", "Sandbox not found."),
    "sandbox_stopped": api(410, *STOPPED),
    "snapshot_not_found": api(410, "snapshot_not_found", "Cannot resume sandbox: no snapshot available."),
    "sandbox_stopping": api(422, *STOPPING),
    "sandbox_snapshotting": api(422, *SNAPSHOTTING),
    "timeout_invalid": api(400, "sandbox_timeout_invalid", "Sandbox timeout is above the maximum of the plan."),
    "image_not_ready": api(400, "image_not_ready", "The image is being prepared. Try again later."),
    "too_large": api(413, "too_large", "Request body is too large."),
    "internal": api(500, "internal_server_error", "Internal Server Error"),
    "unavailable": api(503, "service_unavailable", "Service Unavailable", {"Retry-After": "1"}),
    "html_429": html(429, "Too Many Requests"),
    "html_502": html(502, "BAD_GATEWAY"),
    "html_504": html(504, "FUNCTION_INVOCATION_TIMEOUT"),
    "html_200": html(200, "Vercel"),
    "empty": {"status": 502},
}
