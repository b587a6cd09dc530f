#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""A fake Vercel Sandbox: its API and the sandboxes' interactive endpoint on one loopback port, with real processes.

    /usr/bin/python3 -m tests.fake.vercel --port 0 --root DIR

tests/fake/README.md says how tests aim faults at it and what it tells of the requests it got.
"""
import re
from urllib.parse import unquote

from ..common.machine import MachineError
from ..common.server import Fake, main
from . import interactive
from .api import JSON, ApiError, error_body, not_found
from .commands import missing_machine
from .control import Control
from .errors import ERRORS, PAGE
from .sessions import PREFIX, Sessions
from .state import Registry

API = re.compile(r"(?:/api)?(/v[23]/sandboxes(?:[/?].*)?)$")
NAMED = re.compile(r"/v[23]/sandboxes/(?:sessions/(?=[^/]))?(?!sessions$|snapshots(?:/|$))([^/]+)")


def api_path(request):
    """The path below either of the two base URLs, or None for what is no call of the API."""
    match = API.match(request.path_qs.partition("?")[0])
    return match and match.group(1)


class FakeVercel(Fake):
    """vercel.com/api and the hosts of the sandboxes."""

    errors = ERRORS
    id_pattern = r"(?<=/cmd/)[^/]+|(?<=/sandboxes/sessions/)[^/]+|(?<=/sandboxes/snapshots/)(?!tree$)[^/]+" \
                 r"|(?<=v2/sandboxes/)(?!sessions|snapshots)[^/]+"
    default_config = {
        "tokens": None,                 # None: any
        "teams": None,                  # None: any
        "projects": None,
        "images": None,                 # None: any
        "default_image": "vercel/sandbox/universal:latest",
        "user": "ubuntu",               # of every image that is no legacy runtime
        "home": "/vercel",
        "work_dir": None,               # the image's WORKDIR; None: its home
        "max_timeout_ms": 24 * 3600 * 1000,     # the plan's: Hobby has 45 min
        "max_vcpus": 8,
        "create_waits": True,           # create and resume answer once the session runs; else it is `pending`
        "boot_ms": 0,                   # how long these take, besides what the machine needs
        "stop_ms": 0,                   # how long a session is `stopping`
        "snapshot_ms": 0,               # and `snapshotting`
        "snapshot_status": 200,         # the documents have 201
        "always_interactive": False,    # also what was not created with __interactive has the endpoint
        "pty_tail": "kept",             # output pending at the end of a terminal's process: kept, lost
        "on_drop": "hangup",            # what becomes of that process when its client leaves: hangup, keep
        "stdin": "null",                # of commands: null (/dev/null), or pipe (open, and nothing ever comes)
        "own_group": True,              # each command leads a process group
        "kill_scope": "process",        # whom kill and timeout reach: process, group
        "command_end": "pipes",         # a command ends with the last holder of its output (pipes), or its leader
        "utf8": "stream",               # a character in two reads of the server's is kept (stream), damaged (chunk)
        "json_escapes": False,          # a log's characters beyond ASCII as \uXXXX, in pairs if need be
        "stream_on_stop": "error_line",     # how open streams learn of the session's end: error_line, eof, reset
        "not_executable_status": 400,   # of executable_not_found
        "max_write_bytes": None,        # more in one fs/write is a 413
        "read_length": False,           # fs/read tells the size before
        "mkdir_recursive": True,
    }

    def __init__(self, root):
        super().__init__(root)
        self.registry = Registry(root, self.config)
        self.control = Control(self.registry, self.config)
        self.session_calls = Sessions(self.registry, self.config)

    def sandbox_of(self, request):
        """The sandbox's name, for calls by session id and terminals as well."""
        if request.path == interactive.PATH:
            session = interactive.session_of(self.registry, request)
            return session and session.sandbox.name
        match = NAMED.match(api_path(request) or "")
        return self.registry.name_of(unquote(match.group(1))) if match else None

    async def serve(self, exchange):
        request, path = exchange.request, api_path(exchange.request)
        if path is None and request.path == interactive.PATH:
            await interactive.serve(self.registry, exchange)
        elif path is None and request.path == "/health":
            await interactive.health(exchange)
        elif path is None:
            await exchange.send(404, PAGE.format("404: NOT_FOUND").encode(),
                                {"Content-Type": "text/html; charset=utf-8"})
        else:
            await self._serve_api(exchange, path)

    async def _serve_api(self, exchange, path):
        try:
            await self._route(exchange, path)
        except ApiError as error:
            # The rest of the request's body first: an answer in its middle would be lost in a reset.
            await exchange.read()
            await exchange.send_json(error.status, error_body(error.code, error.message), JSON)
        except MachineError as error:
            # The session ended under the handler.
            session = self.registry.sessions.get((PREFIX.match(path) or {"id": None})["id"])
            gone = session and missing_machine(session, error)
            if not gone or exchange.response is not None:
                raise
            await exchange.send_json(gone.status, error_body(gone.code, gone.message), JSON)

    async def _route(self, exchange, path):
        if PREFIX.match(path):
            await self.session_calls.serve(exchange, path)
            return
        for method, pattern, handler in self.control.routes:
            match = re.fullmatch(pattern, path)
            if match and method == exchange.request.method:
                await handler(exchange, **{name: unquote(value) for name, value in match.groupdict().items()})
                return
        raise not_found("The requested endpoint does not exist.")

    def sandboxes(self):
        return [sandbox.report() for sandbox in self.registry.sandboxes]

    def end_sandbox(self, sandbox_id, how):
        """By name or session id."""
        sandbox = self.registry.newest(self.registry.name_of(sandbox_id))
        if sandbox is None:
            return False
        if how == "expire":
            sandbox.session.expire()
        else:
            sandbox.session.abort("killed by the test")
        return True

    async def reset(self):
        await self.registry.clear()


if __name__ == "__main__":
    main(FakeVercel, __doc__)
