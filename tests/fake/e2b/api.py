# SPDX-License-Identifier: ISC
"""What E2B's control plane checks of every request, and the shape of its errors."""
import json

KEY_PREFIX = "e2b_"
NO_KEY = "Invalid API key, please visit https://e2b.dev/docs/api-key for more information."
BODY_LIMIT = 16 << 20
CREATE_FIELDS = {
    "templateID": str, "timeout": int, "metadata": dict, "envVars": dict, "secure": bool,
    "allow_internet_access": bool, "network": dict, "autoPause": bool, "autoPauseMemory": bool, "autoResume": dict,
}


class ApiError(Exception):
    """An error answer: {"code", "message"} and perhaps an "error_code"."""

    def __init__(self, status, message, error_code=None, headers=None):
        super().__init__(message)
        self.status, self.headers = status, headers
        self.body = {"code": status, "message": message, **({"error_code": error_code} if error_code else {})}


def not_found(sandbox_id):
    return ApiError(404, f'Sandbox "{sandbox_id}" doesn\'t exist or you don\'t have access to it')


def changing(sandbox):
    doing = {"pausing": "being paused", "resuming": "being resumed"}[sandbox.moving]
    return ApiError(409, f'Sandbox "{sandbox.id}" is {doing}')


def check_key(exchange, config):
    """The API key, or the deprecated access token."""
    headers = exchange.request.headers
    key, bearer = headers.get("X-API-Key"), headers.get("Authorization", "")
    if key is None and bearer.startswith("Bearer sk_e2b_"):
        return
    if key is None:
        raise ApiError(401, "authorization header is missing")
    if not key.startswith(KEY_PREFIX):
        raise ApiError(401, f"{NO_KEY}\ninvalid API key format: expected prefix {KEY_PREFIX}")
    if key in config["blocked_keys"]:
        raise ApiError(403, "team is blocked")
    if config["api_keys"] is not None and key not in config["api_keys"]:
        raise ApiError(401, f"{NO_KEY}\nfailed to get the team from db for an api key")


async def read_body(exchange, required=()):
    """The JSON object of a request, checked against the little schema that clients can break."""
    data = await exchange.read()
    if len(data) > BODY_LIMIT:
        raise ApiError(413, "request body too large")
    if not data and required:
        raise ApiError(400, "validation error: request body has an error: value is required but missing")
    try:
        body = json.loads(data) if data else {}
    except ValueError:
        raise ApiError(400, "validation error: request body has an error: failed to decode request body") from None
    if not isinstance(body, dict):
        raise ApiError(400, "validation error: request body has an error: value must be an object")
    for name in required:
        if name not in body:
            raise ApiError(400, f'validation error: request body has an error: property "{name}" is missing')
    return body


def check_types(body):
    for name, kind in CREATE_FIELDS.items():
        value = body.get(name)
        wrong = value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool)))
        if wrong:
            raise ApiError(400, f'validation error: request body has an error: Error at "/{name}": value must be '
                                f"{kind.__name__}")
    for name in ("metadata", "envVars"):
        if any(not isinstance(value, str) for value in (body.get(name) or {}).values()):
            raise ApiError(400, f'validation error: request body has an error: Error at "/{name}": value must be a '
                                "string")
