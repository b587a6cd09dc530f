# SPDX-License-Identifier: ISC
"""The way from a toolbox request to the daemon of its sandbox: the proxy's and the runner's checks and errors."""
import asyncio
import re
import time
from urllib.parse import unquote

from ..common.exchange import Dropped
from ..common.machine import MachineError
from .api import bearer, key_is_good
from .wire import ServiceError, ToolboxError, error_response, send_json

PREFIX = re.compile(r"/toolbox/(?P<id>[^/]+)(?P<path>/.*)?$")
GOOD_FOR, BAD_FOR = 120, 5      # seconds an authentication is remembered
NO_ADDRESS = "failed to resolve container IP after 3 attempts: no IP address found. Is the Sandbox started?"
SKIP_ACTIVITY = "X-Daytona-Skip-Last-Activity-Update"


def sandbox_id(request):
    """The id in the path of a toolbox request, or None."""
    match = PREFIX.match(request.path_qs.partition("?")[0])
    return unquote(match["id"]) if match else None


class Toolbox:
    """Everything below /toolbox/."""

    def __init__(self, registry, config):
        self.registry, self.config = registry, config
        self.verdicts = {}      # (token, sandbox id): (good, until)

    async def serve(self, exchange):
        request = exchange.request
        match = PREFIX.match(request.path_qs.partition("?")[0])
        path = match["path"] or "/"
        exchange.counts_as_use = False
        try:
            sandbox = await self._admit(request, unquote(match["id"]))
            exchange.counts_as_use = request.headers.get(SKIP_ACTIVITY) != "true"
            await self._pass_on(exchange, sandbox, path)
        except ServiceError as error:
            await self._answer(exchange, error_response(request, path, error))
        except ToolboxError as error:
            await self._answer(exchange, error)

    async def _admit(self, request, name):
        """The running sandbox that the request is for, or the answer that the proxy or the runner gives instead."""
        sandbox = self.registry.sandboxes.get(name)
        self._authenticate(request, name, sandbox)
        if sandbox is None:
            raise ServiceError("bad request", "failed to get runner info: runner not found")
        if sandbox.state in ("destroyed", "archived", "error", "build_failed", "pending_build"):
            raise ServiceError("not found", f"sandbox container not found: Error response from daemon: No such "
                                            f"container: {name}")
        if sandbox.state == "stopped":
            await asyncio.sleep(self.config["resolve_ms"] / 1000)
            raise ServiceError("bad request", NO_ADDRESS)
        if sandbox.state != "started" or self.config["daemon_down"]:
            raise ToolboxError(502)
        return sandbox

    def _authenticate(self, request, name, sandbox):
        """A verdict is remembered: a revoked key works on for two minutes, a new one may fail for five seconds."""
        token = bearer(request)
        if token is None:
            raise ServiceError("unauthorized", "missing authentication: provide a preview access token (via header, "
                                               "query parameter, or cookie) or use an API key or JWT")
        good, until = self.verdicts.get((token, name), (False, 0))
        if until < time.monotonic():
            good = sandbox is not None and key_is_good(request, self.config)
            self.verdicts[token, name] = good, time.monotonic() + (GOOD_FOR if good else BAD_FOR)
        if not good:
            raise ServiceError("unauthorized", "authentication failed: Bearer token is invalid")

    async def _pass_on(self, exchange, sandbox, path):
        """To the daemon. While the request lasts it counts as use of the sandbox; if the machine dies it is a 502."""
        daemon = sandbox.daemon
        sandbox.exchanges.add(exchange)
        if exchange.counts_as_use:
            sandbox.touch()
        try:
            await daemon.serve(exchange, path)
        except (MachineError, ServiceError):
            if not daemon.machine.dead.done():
                raise
            if exchange.response is not None:
                exchange.cut("fin")
                raise Dropped from None
            raise ToolboxError(502) from None
        finally:
            sandbox.exchanges.discard(exchange)
            if exchange.counts_as_use and sandbox.state == "started":
                sandbox.touch()

    @staticmethod
    async def _answer(exchange, error):
        """An error. The rest of the request's body is read first, as Go's server does."""
        await exchange.read()
        if error.body is None:
            await exchange.send(error.status)
        else:
            await send_json(exchange, error.status, error.body, error.headers)
