# SPDX-License-Identifier: ISC
"""E2B's error answers by name, for knobs: {"action": {"error": "no_capacity"}}."""
from .envd import UNAUTHORIZED

PLACE = "Failed to place sandbox"
JSON = {"Content-Type": "application/json; charset=utf-8"}


def api(status, message, error_code=None, headers=None):
    """A named error of the control plane for knobs."""
    body = {"code": status, "message": message, **({"error_code": error_code} if error_code else {})}
    return {"status": status, "body": body, "headers": {**JSON, **(headers or {})}}


ERRORS = {
    "rate_limited": api(429, "Rate limit exceeded", headers={
        "Retry-After": "1", "RateLimit-Limit": "1", "RateLimit-Remaining": "0", "RateLimit-Reset": "1"}),
    "too_many_sandboxes": api(429, "you have reached the maximum number of concurrent E2B sandboxes (20). If you need "
                                   "more, please contact us at 'https://e2b.dev/docs/getting-help'"),
    "no_capacity": api(503, PLACE + ": not enough capacity for the requested resources right now, please retry "
                                    "shortly", "sandbox_capacity_unavailable"),
    "no_node": api(503, PLACE + ": no compatible node for this template's requirements", "sandbox_no_compatible_node"),
    "placement_timeout": api(504, PLACE + ": placement timed out, please retry", "sandbox_placement_timeout"),
    "create_failed": api(500, PLACE + ": sandbox creation failed on 3 node(s), please retry; if the problem persists, "
                                      "contact us", "sandbox_create_failed"),
    "killing": api(409, 'Sandbox "igone" is being killed'),
    "node_busy": api(503, "The node is busy, please retry"),
    "outcome_unknown": api(422, "the outcome of the first request is unknown", "idempotency_outcome_unknown"),
    "internal": api(500, "Internal server error", "internal_server_error"),
    "unauthorized": api(401, UNAUTHORIZED),
    "disk_full": api(507, "not enough disk space available"),
    "sandbox_gone": {"status": 502, "headers": JSON, "body": {
        "sandboxId": "igone", "message": "The sandbox was not found", "code": 502}},
    "port_closed": {"status": 502, "headers": JSON, "body": {
        "sandboxId": "igone", "message": "The sandbox is running but port is not open", "port": 49983, "code": 502}},
    "transitioning": {"status": 409, "headers": JSON, "body": {
        "sandboxId": "igone", "message": "The sandbox is still transitioning. Try again in a moment.", "code": 409}},
    "too_many_connections": {"status": 429, "headers": JSON, "body": {
        "sandboxId": "igone", "message": "Too many incoming connections", "code": 429, "connectionLimit": 100}},
    "route_failed": {"status": 502, "body": "Failed to route request to sandbox\n"},
    "html": {"status": 502, "body": "<!DOCTYPE html><html><head><title>502 Server Error</title></head><body>"
                                    "<h1>Bad Gateway</h1></body></html>\n"},
    "empty": {"status": 502},
}
