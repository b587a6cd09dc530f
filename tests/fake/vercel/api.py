# SPDX-License-Identifier: ISC
"""What Vercel's API checks of every request, the shape of its errors, ids, times and pages of lists."""
import base64
import json
import secrets
import string
import time
from dataclasses import dataclass

JSON = {"Content-Type": "application/json; charset=utf-8"}
ALPHABET = string.ascii_letters + string.digits
PAGE, LARGEST_PAGE = 20, 50


class ApiError(Exception):
    """An error answer."""

    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def bad_request(message):
    return ApiError(400, "bad_request", message)


def not_found(message):
    return ApiError(404, "not_found", message)


def snapshot_not_found(message):
    return ApiError(410, "snapshot_not_found", message)


def timeout_invalid(config):
    """A lifetime above what the plan allows."""
    return ApiError(400, "sandbox_timeout_invalid",
                    f"Sandbox timeout must be at most {config['max_timeout_ms']} ms on this plan.")


def error_body(code, message):
    return {"error": {"code": code, "message": message}}


def new_id(prefix):
    return prefix + "".join(secrets.choice(ALPHABET) for _ in range(28))


def now_ms():
    return int(time.time() * 1000)


def without_none(values):
    """Keys that have nothing are left out: the SDK throws on a null."""
    return {name: value for name, value in values.items() if value is not None}


# -- who asks ---------------------------------------------------------------------------------------------------------


@dataclass
class Scope:
    """Whose sandboxes a request is about. `project` is None where none was named (calls by session id)."""
    team: str
    project: str


def token_claims(token):
    """The payload of an OIDC token, or None for any other token. Nothing is verified, as the SDK does not either."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    return claims if isinstance(claims, dict) and "owner_id" in claims else None


def authenticate(request, config):
    """The team and the token's claims (None for an access token)."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme != "Bearer" or not token.strip():
        raise ApiError(401, "unauthorized", "The request is missing an authentication token")
    claims, team = token_claims(token.strip()), request.query.get("teamId") or request.query.get("slug")
    known = config["tokens"] is None or token.strip() in config["tokens"]
    if not known or (claims and claims.get("exp", 0) <= time.time()):
        raise ApiError(403, "forbidden", "Not authorized")
    if not team or (claims and claims["owner_id"] != team) or (
            config["teams"] is not None and team not in config["teams"]):
        raise ApiError(403, "forbidden", "Not authorized: Trying to access resource under scope "
                                         f'"{team or ""}". You must re-authenticate to this scope or use a token with '
                                         "access to this scope.")
    return team, claims


def scope_of(request, config, project):
    """The team and the project, which only an OIDC token may leave out."""
    team, claims = authenticate(request, config)
    project = project or (claims or {}).get("project_id")
    if not project:
        raise bad_request("Invalid request: missing required property `projectId`.")
    if config["projects"] is not None and project not in config["projects"]:
        raise not_found("Project not found.")
    return Scope(team, project)


# -- requests ---------------------------------------------------------------------------------------------------------


async def read_body(exchange):
    """The JSON object of a request; an empty body is an empty object."""
    data = await exchange.read()
    try:
        body = json.loads(data) if data else {}
    except ValueError:
        raise bad_request("Invalid JSON") from None
    if not isinstance(body, dict):
        raise bad_request("Invalid request: should be object.")
    return body


def field(body, name, kind, default=None):
    """A member of a request's object, of this type."""
    value = body.get(name, default)
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        words = {str: "string", int: "integer", bool: "boolean", list: "array", dict: "object"}
        raise bad_request(f"Invalid request: `{name}` should be {words[kind]}.")
    return value


def string_map(body, name):
    """A member that maps strings to strings, or None."""
    value = field(body, name, dict)
    if value is not None and not all(isinstance(item, str) for item in value.values()):
        raise bad_request(f"Invalid request: `{name}` should have values that are strings.")
    return value


def page(request, items, name):
    """A page of a list that is in order already: at most `limit` of them, from after the cursor on."""
    query = request.query
    limit = query.get("limit") or str(PAGE)
    if not limit.isdigit() or not 1 <= int(limit) <= LARGEST_PAGE:
        raise bad_request(f"Invalid request: `limit` should be >= 1 and <= {LARGEST_PAGE}.")
    try:
        start = int(base64.urlsafe_b64decode(query.get("cursor") or "MA==").decode("ascii"))
    except ValueError:
        raise bad_request("Invalid request: `cursor` is invalid.") from None
    end = start + int(limit)
    following = base64.urlsafe_b64encode(str(end).encode()).decode() if end < len(items) else None
    shown = items[start:end]
    return {name: shown, "pagination": {"count": len(shown), "next": following}}
