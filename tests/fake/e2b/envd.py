# SPDX-License-Identifier: ISC
"""envd, the daemon in each sandbox: its authentication, its RPC and HTTP routes, the version gates."""
import base64
import binascii
import hmac
import posixpath
import shutil
import time

from ..common.machine import HOMES
from . import download, filesystem_rpc, process_rpc, rpc, upload, watch
from .files import send_error
from .rpc import RpcError

UNARY = {"process.Process": process_rpc.UNARY,
         "filesystem.Filesystem": {**filesystem_rpc.UNARY, **watch.UNARY}}
SERVER_STREAM = {"process.Process": process_rpc.SERVER_STREAM, "filesystem.Filesystem": watch.SERVER_STREAM}
CLIENT_STREAM = {"process.Process": process_rpc.CLIENT_STREAM, "filesystem.Filesystem": {}}
ADDED_IN = {"CloseStdin": (0, 5, 2)}
NO_TOKEN_NEEDED = {("GET", "/health"), ("GET", "/files"), ("POST", "/files")}
UNAUTHORIZED = "unauthorized access, please provide a valid access token or method signing if supported"


def parse_version(text):
    return tuple(int(part) for part in text.split("."))


async def send_not_found(exchange):
    await exchange.send(404, b"404 page not found\n",
                        {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"})


def check_protocol(exchange):
    """The protocol's version may be left out, but not be another."""
    version = exchange.request.headers.get("Connect-Protocol-Version", "1")
    if version != "1":
        raise RpcError("invalid_argument", f'Connect-Protocol-Version must be "1": got "{version}"')


async def health(_, exchange):
    await exchange.send(204, b"", {"Cache-Control": "no-store"})


async def metrics(_, exchange):
    disk = shutil.disk_usage("/")
    await exchange.send_json(200, {
        "ts": int(time.time()), "cpu_count": 2, "cpu_used_pct": 1.0, "mem_total": 512 << 20, "mem_used": 64 << 20,
        "mem_total_mib": 512, "mem_used_mib": 64, "mem_cache": 0, "disk_used": disk.used, "disk_total": disk.total,
    }, {"Cache-Control": "no-store"})


async def envs(envd, exchange):
    await exchange.send_json(200, envd.env, {"Cache-Control": "no-store"})


class Envd:
    """The data plane of one running sandbox. `config` is the fake's."""

    def __init__(self, machine, version, token, env, config):
        self.machine = machine
        self.version = parse_version(version)
        self.token = token
        self.env = env
        self.config = config
        self.processes = {}
        self.terminated = {}
        self.watchers = {}
        self.http_routes = {
            ("GET", "/health"): health, ("GET", "/metrics"): metrics, ("GET", "/envs"): envs,
            ("GET", "/files"): download.download, ("POST", "/files"): upload.upload,
            ("POST", "/files/compose"): upload.compose,
        }

    async def serve(self, exchange):
        """Answer one request that the proxy let through."""
        route = (exchange.request.method, exchange.request.path)
        if self.token and route not in NO_TOKEN_NEEDED and not self.token_matches(exchange):
            await send_error(exchange, 401, UNAUTHORIZED)
        elif route in self.http_routes:
            await self.http_routes[route](self, exchange)
        elif any(path == route[1] for _, path in self.http_routes):
            await exchange.send(405, b"", {"Allow": next(verb for verb, path in self.http_routes if path == route[1])})
        else:
            await self._serve_rpc(exchange)

    def token_matches(self, exchange):
        given = exchange.request.headers.get("X-Access-Token", "")
        return hmac.compare_digest(given.encode(), self.token.encode())

    # -- users and paths ----------------------------------------------------------------------------------------------

    def basic_user(self, exchange):
        """The user named by Basic authentication, or None."""
        scheme, _, value = exchange.request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            user, colon, _ = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return user if colon else None

    def auth_user(self, exchange):
        """The unix user of an RPC; envd before 0.4.0 has no default one."""
        user = self.basic_user(exchange)
        if user is not None:
            return user
        if self.version < (0, 4, 0):
            raise RpcError("unauthenticated", "no user specified")
        return "user"

    def resolve(self, path, user):
        """envd's ExpandAndResolve: ~ and relative paths start at the user's home; absolute ones stay as they are."""
        home = HOMES[user]
        if path.startswith("~"):
            if len(path) > 1 and path[1] not in "/\\":
                raise RpcError("invalid_argument", f"failed to expand path '' for user '{user}': "
                                                   "cannot expand user-specific home dir")
            return posixpath.normpath(posixpath.join(home, path[1:].lstrip("/")))
        if path.startswith("/"):
            return path
        return posixpath.normpath(posixpath.join(home, path))

    # -- RPC ----------------------------------------------------------------------------------------------------------

    async def _serve_rpc(self, exchange):
        service, _, method = exchange.request.path.lstrip("/").partition("/")
        kinds = [(kind, table[service][method]) for kind, table in
                 (("unary", UNARY), ("server", SERVER_STREAM), ("client", CLIENT_STREAM))
                 if method in table.get(service, {})]
        if not kinds or self.version < ADDED_IN.get(method, (0,)):
            await send_not_found(exchange)
            return
        kind, function = kinds[0]
        if exchange.request.method != "POST":
            await exchange.send(405, b"", {"Allow": "POST"})
            return
        expected = rpc.UNARY if kind == "unary" else rpc.STREAM
        if exchange.request.content_type != expected:
            await exchange.send(415, b"", {"Accept-Post": expected})
            return
        try:
            self._check_user(exchange)
        except RpcError as error:
            await exchange.read()
            await (rpc.send_unary_error(exchange, error) if kind == "unary" else rpc.Stream(exchange).end(error))
            return
        await getattr(self, f"_serve_{kind}")(exchange, function)

    def _check_user(self, exchange):
        user = self.basic_user(exchange)
        if user is not None and user not in HOMES:
            raise RpcError("unauthenticated", f"invalid username: '{user}'")

    async def _serve_unary(self, exchange, function):
        try:
            check_protocol(exchange)
            if process_rpc.request_timeout(exchange) == 0:
                raise RpcError("deadline_exceeded", "context deadline exceeded")
            message = rpc.decode(await exchange.read())
            answer = await function(self, exchange, message)
        except RpcError as error:
            await rpc.send_unary_error(exchange, error)
            return
        await rpc.send_unary(exchange, answer)

    async def _serve_server(self, exchange, function):
        try:
            check_protocol(exchange)
            process_rpc.request_timeout(exchange)
            message = rpc.single_message(await exchange.read())
            await function(self, exchange, message)
        except RpcError as error:
            await rpc.Stream(exchange).end(error)

    async def _serve_client(self, exchange, function):
        await function(self, exchange)
