# SPDX-License-Identifier: ISC
"""The frame of a fake provider: an HTTP/1.1 server on loopback, the /_fake/ control endpoint, start and end.

A provider subclasses Fake. `main` prints "listening on URL" when ready and ends on SIGTERM, on SIGINT, and when its
standard input closes or its parent dies; whatever the fake started dies with it.
"""
import argparse
import asyncio
import ctypes
import json
import os
import signal
import sys
import traceback

from aiohttp import web

from .exchange import Dropped, Exchange
from .journal import Journal
from .knobs import KnobError, Knobs

PR_SET_PDEATHSIG = 1
LINE_LIMIT = 1 << 16    # a percent-encoded path of 4 KiB fits


class Connection(web.RequestHandler):
    """A client's connection that can be waited on: `closed` resolves when it is gone."""

    def connection_made(self, transport):
        self.closed = asyncio.get_running_loop().create_future()
        super().connection_made(transport)

    def connection_lost(self, exc):
        if not self.closed.done():
            self.closed.set_result(True)
        super().connection_lost(exc)


class Server(web.Server):
    """aiohttp's bare server with our connections and no limit on bodies."""

    def __init__(self, handler, idle_timeout):
        super().__init__(handler)
        self.idle_timeout = idle_timeout

    def __call__(self):
        return Connection(self, loop=self._loop, access_log=None, keepalive_timeout=self.idle_timeout,
                          auto_decompress=False, max_line_size=LINE_LIMIT, max_field_size=LINE_LIMIT)

    def _make_request(self, message, payload, protocol, writer, task):
        return web.BaseRequest(message, payload, protocol, writer, task, self._loop, client_max_size=0)


class Fake:
    """Base of a fake provider. Subclasses give id_pattern, default_config, errors and action_values (see knobs), the
    seconds after which an idle connection is closed, and the methods below."""

    id_pattern = r"$^"
    default_config = {}
    errors = {}
    action_values = {}
    idle_timeout = 620      # about what the providers' edges have

    def __init__(self, root):
        self.root = root
        self.knobs = Knobs(self.errors, self.action_values)
        self.journal = Journal(self.id_pattern)
        self.delay = 0.0
        self.config = dict(self.default_config)

    # What a provider must add.

    def sandbox_of(self, request):
        """The id of the sandbox a request is about, or None."""
        raise NotImplementedError

    async def serve(self, exchange):
        """Answer one request."""
        raise NotImplementedError

    def sandboxes(self):
        """All sandboxes that ever existed, as JSON values."""
        raise NotImplementedError

    def end_sandbox(self, sandbox_id, how):
        """Make "kill" or "expire" happen to a sandbox; False if there is none."""
        raise NotImplementedError

    async def reset(self):
        """Forget everything and end all sandboxes."""
        raise NotImplementedError

    async def fake_endpoint(self, request, path, body):
        """A provider's own /_fake/ request: the JSON value to answer, or KeyError."""
        raise KeyError(path)

    # The common part.

    async def handle(self, request):
        """Entry for every request."""
        if request.path.startswith("/_fake/"):
            return await self._control(request)
        entry = self.journal.add(request, self.sandbox_of(request))
        rule = self.knobs.strike(entry)
        entry["knob"] = rule.number if rule else None
        exchange = Exchange(request, entry, rule, self.delay)
        for how in ("kill", "expire"):
            if exchange.action.get(how + "_sandbox"):
                exchange.on_trigger = lambda how=how: self.end_sandbox(entry["sandbox"], how)
        try:
            await self._answer(exchange)
        except (Dropped, ConnectionError):
            pass
        except Exception:       # a bug of the fake must fail the test that met it, visibly
            traceback.print_exc()
            entry["ended"] = "error"
            exchange.cut()
        # A response is a mapping, and an empty one is false.
        return exchange.response if exchange.response is not None else web.Response(status=500)

    async def _answer(self, exchange):
        """Serve one request unless a knob says otherwise; after_ms tears the handler out of what it waits for."""
        try:
            await exchange.expect_continue()
            await exchange.before()
            await self.serve(exchange)
        except asyncio.CancelledError:
            if not exchange.overdue:
                raise
            await exchange.strike()

    async def _control(self, request):
        path, text = request.path[len("/_fake/"):], await request.text()
        try:
            body = json.loads(text) if text else {}
            return web.json_response(await self._control_answer(request, path, body))
        except (KnobError, ValueError, TypeError) as error:
            return web.json_response({"message": str(error)}, status=400)
        except KeyError as error:
            return web.json_response({"message": f"no such thing: {error}"}, status=404)

    async def _control_answer(self, request, path, body):
        """The control endpoint: the JSON value to answer, or KeyError for what does not exist."""
        route = (request.method, path)
        if route == ("POST", "knobs"):
            rules = body if isinstance(body, list) else [body]
            return [self.knobs.add(rule).show() for rule in rules]
        if route == ("GET", "knobs"):
            return [rule.show() for rule in self.knobs.rules]
        if route == ("DELETE", "knobs"):
            return self.knobs.clear()
        if route == ("GET", "requests"):
            return self.journal.report(**request.query)
        if route == ("GET", "counts"):
            return {name: value for name, value in self.journal.report(**request.query).items() if name != "requests"}
        if route == ("DELETE", "requests"):
            return self.journal.clear()
        if route == ("POST", "delay"):
            self.delay = float(body["ms"]) / 1000
            return {"ms": body["ms"]}
        if route == ("GET", "config"):
            return self.config
        if route == ("POST", "config"):
            return self._configure(body)
        if route == ("POST", "reset"):
            return await self._reset()
        if route == ("GET", "sandboxes"):
            return self.sandboxes()
        parts = path.split("/")
        if request.method == "POST" and len(parts) == 3 and parts[0] == "sandboxes" and parts[2] in ("kill", "expire"):
            if not self.end_sandbox(parts[1], parts[2]):
                raise KeyError(parts[1])
            return {}
        return await self.fake_endpoint(request, path, body)

    def _configure(self, body):
        unknown = set(body) - set(self.default_config)
        if unknown:
            raise KnobError(f"unknown settings: {sorted(unknown)}")
        self.config.update(body)
        return self.config

    async def _reset(self):
        self.knobs.clear()
        self.delay = 0.0
        self.config.update(self.default_config)      # in place: the parts of a fake hold it
        await self.reset()
        self.journal.clear()
        return {}


def watch_parent(stop):
    """End with whoever started us: on the end of our standard input (when it is a pipe) and on the parent's death."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    def readable():
        if not os.read(0, 4096):
            stop()
    try:
        asyncio.get_running_loop().add_reader(0, readable)
    except (PermissionError, OSError, ValueError):
        pass        # a file or /dev/null: always "at its end", says nothing


async def run(fake, host, port):
    """Serve until told to stop."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    watch_parent(stopped.set)
    server = await loop.create_server(Server(fake.handle, fake.idle_timeout), host, port, backlog=512)
    print(f"listening on http://{host}:{server.sockets[0].getsockname()[1]}", flush=True)
    await stopped.wait()
    server.close()
    await fake.reset()


def main(fake_class, description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 = any free port")
    parser.add_argument("--root", required=True, help="directory for the disks of the sandboxes")
    arguments = parser.parse_args()
    os.makedirs(arguments.root, exist_ok=True)
    sys.stdout.reconfigure(line_buffering=True)
    asyncio.run(run(fake_class(os.path.abspath(arguments.root)), arguments.host, arguments.port))
