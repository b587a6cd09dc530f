# SPDX-License-Identifier: ISC
"""What the parts of envd's /files API share: errors, signatures, users, paths, descriptors."""
import base64
import hashlib
import hmac
import json
import time

from ..common.machine import HOMES, MachineError
from .rpc import RpcError

PLAIN = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
BLOCK = 1 << 18


class FileError(Exception):
    """An answer of the /files API other than success."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status, self.message = status, message


async def send_error(exchange, status, message):
    """envd's own error shape: the code is the HTTP status, a number."""
    await exchange.send(status, json.dumps({"code": status, "message": message}).encode() + b"\n",
                        {"Content-Type": "application/json; charset=utf-8", "X-Content-Type-Options": "nosniff"})


async def guarded(envd, exchange, operation, function):
    """Check signature and user, run the function, answer its errors in envd's shape."""
    expires = exchange.request.query.get("signature_expiration", "0")
    if not expires.isdigit():
        await exchange.send(400, "Invalid format for parameter signature_expiration: error binding string parameter: "
                            f'strconv.ParseInt: parsing "{expires}": invalid syntax\n'.encode(), PLAIN)
        return
    try:
        check_signature(envd, exchange, operation)
        await function(envd, exchange, user_of(envd, exchange))
    except FileError as error:
        await send_error(exchange, error.status, error.message)


def check_signature(envd, exchange, operation):
    """A token in the header wins; else the query must be signed with it."""
    if not envd.token:
        return
    query = exchange.request.query
    if exchange.request.headers.get("X-Access-Token"):
        if not envd.token_matches(exchange):
            raise FileError(401, "access token present in header but does not match")
        return
    if "signature" not in query:
        raise FileError(401, "missing signature query parameter")
    parts = [query.get("path", ""), operation, query.get("username", ""), envd.token]
    expires = query.get("signature_expiration")
    digest = hashlib.sha256(":".join(parts + [expires] * (expires is not None)).encode()).digest()
    expected = "v1_" + base64.b64encode(digest).decode().rstrip("=")
    if not hmac.compare_digest(expected.encode(), query["signature"].encode()):
        raise FileError(401, "invalid signature")
    if expires is not None and int(expires) < time.time():
        raise FileError(401, "signature is already expired")


def user_of(envd, exchange):
    user = exchange.request.query.get("username")
    if user is None and envd.version < (0, 4, 0):
        raise FileError(400, "username not provided")
    user = "user" if user is None else user
    if user not in HOMES:
        raise FileError(401, f"error looking up user '{user}': user: unknown user {user}")
    return user


def resolved(envd, path, user, doing):
    """The absolute path, or a 400."""
    try:
        return envd.resolve(path, user)
    except RpcError as error:
        raise FileError(400, f"{doing}: {error.message}") from None


async def open_file(envd, path, how):
    """A descriptor of a file in the sandbox."""
    try:
        return (await envd.machine.call("open", path=path, how=how))[1][0]
    except MachineError as error:
        if error.errno_name == "ENOSPC":
            raise FileError(507, f"not enough inodes available: open {path}: no space left on device") from None
        doing = "opening file" + (f" '{path}'" if how == "read" else "")
        raise FileError(500, f"error {doing}: open {path}: {error.text.lower()}") from None
