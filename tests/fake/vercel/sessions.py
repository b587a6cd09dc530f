# SPDX-License-Identifier: ISC
"""The half of Vercel's API that is addressed by session id: what concerns a running machine."""
import re
from urllib.parse import unquote

from . import commands, files, interactive
from .api import JSON, authenticate, bad_request, field, not_found, read_body
from .state import shown_policy

PREFIX = re.compile(r"/v[23]/sandboxes/sessions/(?P<id>[^/]+)(?P<path>/.*)?$")
SHORTEST_EXTENSION = 1000


async def stop(session, exchange):
    """Waits for the stop; one that has stopped says so again."""
    await exchange.read()
    await session.stop()
    answer = {"session": session.show(), "sandbox": session.sandbox.show()}
    if session.taken:
        answer["snapshot"] = session.taken.show()
    await exchange.send_json(200, answer, JSON)


async def extend(session, exchange):
    duration = field(await read_body(exchange), "duration", int)
    if duration is None or duration < SHORTEST_EXTENSION:
        raise bad_request(f"Invalid request: `duration` should be >= {SHORTEST_EXTENSION}.")
    session.extend(duration)
    await exchange.send_json(200, {"session": session.show()}, JSON)


async def set_policy(session, exchange):
    session.network_policy = session.sandbox.network_policy = shown_policy(await read_body(exchange))
    await exchange.send_json(200, {"session": session.show()}, JSON)


async def take_snapshot(session, exchange):
    """Ends the session."""
    expiration = field(await read_body(exchange), "expiration", int)
    await session.stop(expiration, explicit=True)
    await exchange.send_json(session.config["snapshot_status"],
                             {"snapshot": session.taken.show(), "session": session.show()}, JSON)


async def get(session, exchange):
    system = exchange.request.query.get("__includeSystemRoutes") == "true"
    await exchange.send_json(200, {"session": session.show(), "routes": session.sandbox.routes(system)}, JSON)


ROUTES = [
    ("POST", "/extend-timeout", extend), ("POST", "/network-policy", set_policy), ("POST", "/snapshot", take_snapshot),
    ("POST", "/interactive", interactive.connect_info), *commands.ROUTES, *files.ROUTES,
]
ANYTIME = [("GET", "", get), ("POST", "/stop", stop)]       # of a session that has ended, too
COMPILED = [(method, re.compile(path + "$"), handler, handler in (get, stop))
            for method, path, handler in ROUTES + ANYTIME]


class Sessions:
    """Everything below /v2/sandboxes/sessions/ID. A handler gets the session, the exchange, the path's names."""

    def __init__(self, registry, config):
        self.registry, self.config = registry, config

    async def serve(self, exchange, path):
        request, match = exchange.request, PREFIX.match(path)
        team, _ = authenticate(request, self.config)
        session = self.registry.find_session(team, unquote(match["id"]))
        for method, pattern, handler, anytime in COMPILED:
            found = pattern.match(match["path"] or "")
            if not found or method != request.method:
                continue
            if not anytime:
                await session.require_running()
            await handler(session, exchange, **{name: unquote(value) for name, value in found.groupdict().items()})
            return
        raise not_found("The requested endpoint does not exist.")
