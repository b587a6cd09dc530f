# SPDX-License-Identifier: ISC
"""E2B's edge: which sandbox and port a data-plane request is for, and what is answered when that leads nowhere."""
import asyncio
import html
import ipaddress
import json
import re
import socket

from ..common.machine import MachineError

ENVD_PORT = 49983
ID = re.compile(r"[a-z0-9]+$")
BROWSER = re.compile(r"mozilla|chrome|safari|firefox|edge|opera|msie", re.I)
HIDDEN = {"/init", "/freeze", "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse", "/upgrade"}
RESERVED = "This endpoint is reserved for the E2B control plane and is not reachable through the sandbox URL"
DENIED = ("This sandbox can't be resumed with the credentials provided. Check your access token and try again.")
AUTO_RESUME_MINIMUM = 300


class RoutingError(Exception):
    """A request that names no sandbox: a text answer."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status, self.message = status, message


def host_name(request):
    host = request.headers.get("Host", "")
    return host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host


def routes_by_header(host):
    """Only these hosts are allowed to leave the routing to headers."""
    if host == "localhost" or (host.startswith("sandbox.") and host != "sandbox."):
        return True
    try:
        ipaddress.ip_address(host)
        return True
    except ValueError:
        return False


def target(request):
    """(sandbox id, port) of a data-plane request."""
    host, headers = host_name(request), request.headers
    sandbox_id, port = headers.get("E2b-Sandbox-Id", ""), headers.get("E2b-Sandbox-Port", "")
    if routes_by_header(host) and (sandbox_id or port):
        if not sandbox_id or not port:
            raise RoutingError(400, "missing header")
    else:
        first, dot, _ = host.partition(".")
        parts = first.split("-")
        if not dot or len(parts) < 2:
            raise RoutingError(400, "Invalid host")
        port, sandbox_id = parts[0], parts[1]
    if not port.isdigit():
        raise RoutingError(500, f'Unexpected error when routing request: invalid sandbox port "{port}"')
    if not ID.match(sandbox_id):
        raise RoutingError(400, "Invalid sandbox ID")
    return sandbox_id, int(port)


def is_data_plane(request):
    """Does the request name a sandbox in its headers or its host?"""
    headers = request.headers
    return ("E2b-Sandbox-Id" in headers or "E2b-Sandbox-Port" in headers
            or re.match(r"\d+-[a-z0-9]+\.", host_name(request)) is not None)


def wants_html(request):
    """The trap: a browser's name in the User-Agent, unless JSON is asked for or a script's fetch says so."""
    accept = request.headers.get("Accept", "").lower()
    mode = request.headers.get("Sec-Fetch-Mode", "").lower()
    if "application/json" in accept and "text/html" not in accept:
        return False
    if mode in ("cors", "no-cors", "same-origin", "websocket") or (
            mode != "navigate" and "X-Requested-With" in request.headers):
        return False
    return BROWSER.search(request.headers.get("User-Agent", "")) is not None


async def send_error(exchange, status, body):
    """An error of the proxy, as JSON or as a page for browsers."""
    if wants_html(exchange.request):
        page = f"<!DOCTYPE html><html><body><h1>{status}</h1><p>{html.escape(body['message'])}</p></body></html>"
        await exchange.send(status, page.encode(), {"Content-Type": "text/html; charset=utf-8"})
        return
    await exchange.send(status, json.dumps({**body, "code": status}).encode(),
                        {"Content-Type": "application/json; charset=utf-8"})


class Proxy:
    """The way from a request to a sandbox's envd or to another port of it."""

    def __init__(self, registry):
        self.registry = registry

    async def serve(self, exchange):
        try:
            sandbox_id, port = target(exchange.request)
        except RoutingError as error:
            await exchange.send(error.status, error.message.encode() + b"\n",
                                {"Content-Type": "text/plain; charset=utf-8"})
            return
        if port == ENVD_PORT and exchange.request.path in HIDDEN:
            await send_error(exchange, 404, {"message": RESERVED, "path": exchange.request.path})
            return
        sandbox = await self._running(exchange, sandbox_id)
        if sandbox is None:
            return
        sandbox.exchanges.add(exchange)
        try:
            if port == ENVD_PORT and not sandbox.config["envd_down"]:
                await sandbox.envd.serve(exchange)
            else:
                await self._forward(exchange, sandbox, port)
        except MachineError:        # the sandbox died under the request: its connection is broken off
            exchange.cut()
        finally:
            sandbox.exchanges.discard(exchange)

    async def _running(self, exchange, sandbox_id):
        """The sandbox, running, resumed for this request if it wants that; None when an error has been answered."""
        sandbox = self.registry.find(sandbox_id)
        if sandbox and sandbox.moving and sandbox.auto_resume:
            async with sandbox.settled:     # someone else's request is waking it already
                pass
            sandbox = self.registry.find(sandbox_id)
        if sandbox and sandbox.moving:
            await send_error(exchange, 409, {"sandboxId": sandbox_id, "message":
                                             "The sandbox is still transitioning. Try again in a moment."})
            return None
        if sandbox and sandbox.state == "paused" and sandbox.auto_resume:
            return await self._auto_resume(exchange, sandbox)
        if sandbox is None or sandbox.state != "running":
            await send_error(exchange, 502, {"sandboxId": sandbox_id, "message": "The sandbox was not found"})
            return None
        return sandbox

    async def _auto_resume(self, exchange, sandbox):
        if sandbox.token and not sandbox.envd.token_matches(exchange):
            await send_error(exchange, 403, {"sandboxId": sandbox.id, "message": DENIED})
            return None
        limit = sandbox.config["max_concurrent"]
        if limit is not None and self.registry.busy() >= limit:
            await send_error(exchange, 429, {"sandboxId": sandbox.id, "message": "Sandbox limit reached"})
            return None
        await sandbox.resume(max(sandbox.timeout, AUTO_RESUME_MINIMUM))
        return sandbox

    async def _forward(self, exchange, sandbox, port):
        """Pass a request on to a server inside the sandbox: HTTP/1.1, one request a connection."""
        try:
            _, (fd,) = await sandbox.machine.call("connect", port=port)
        except MachineError:
            await send_error(exchange, 502, {"sandboxId": sandbox.id, "port": port, "message":
                                             "The sandbox is running but port is not open"})
            return
        reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=fd))
        request, body = exchange.request, await exchange.read()
        head = [f"{request.method} {request.path_qs} HTTP/1.1", "Connection: close", f"Content-Length: {len(body)}"]
        head += [f"{name}: {value}" for name, value in request.headers.items()
                 if name.lower() not in ("connection", "content-length", "transfer-encoding")]
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        status, headers, length = await read_head(reader)
        await exchange.open(status, headers, length)
        while data := await reader.read(1 << 16):
            await exchange.write(data)
        writer.close()
        await exchange.close()


async def read_head(reader):
    """Status, headers and length of an answer."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    headers = {name.title(): value for name, value in headers.items()}
    for name in ("Connection", "Transfer-Encoding"):
        headers.pop(name, None)
    length = headers.pop("Content-Length", None)
    return int(lines[0].split()[1]), headers, int(length) if length else None
