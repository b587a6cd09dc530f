# SPDX-License-Identifier: ISC
"""E2B's control plane: the REST calls that create, list, find, prolong, pause, resume and kill sandboxes."""
import re
import time
from urllib.parse import unquote_plus

from . import listing
from .api import ApiError, changing, check_key, check_types, not_found, read_body
from .listing import iso
from .state import supports_tokens

CLIENT_ID = "6532622b"
ID = re.compile(r"[a-z0-9]+$")
V1_DEFAULT, V2_DEFAULT, REFRESH_MINIMUM, REFRESH_MAXIMUM = 15, 300, 15, 3600


class Control:
    """The routes. Each handler gets (exchange, sandbox id from the path)."""

    def __init__(self, registry, config):
        self.registry, self.config = registry, config
        self.keys = {}      # Idempotency-Key: (request, answer or None while it runs)
        sandbox = r"/sandboxes/(?P<id>[^/]+)"
        self.routes = [(method, re.compile(path + "$"), handler) for method, path, handler in (
            ("POST", r"/sandboxes", self.create_v1), ("POST", r"/v2/sandboxes", self.create_v2),
            ("GET", r"/sandboxes", self.list_v1), ("GET", r"/v2/sandboxes", self.list_v2),
            ("GET", sandbox, self.get), ("DELETE", sandbox, self.kill),
            ("POST", sandbox + "/connect", self.connect_v1), ("POST", "/v2" + sandbox + "/connect", self.connect_v2),
            ("POST", sandbox + "/resume", self.resume), ("POST", sandbox + "/pause", self.pause),
            ("POST", sandbox + "/timeout", self.set_timeout), ("POST", sandbox + "/refreshes", self.refresh),
            ("PUT", sandbox + "/network", self.network), ("POST", sandbox + "/snapshots", self.snapshot),
            ("POST", sandbox + "/fork", self.fork), ("GET", "/v2" + sandbox + "/logs", self.logs),
            ("GET", sandbox + "/metrics", self.metrics), ("GET", r"/snapshots", self.list_snapshots),
            ("DELETE", r"/templates/(?P<id>.+)", self.delete_template),
        )]

    async def serve(self, exchange):
        request = exchange.request
        try:
            check_key(exchange, self.config)
            handler, argument = self._route(request.method, request.path)
            await handler(exchange, argument)
        except ApiError as error:
            await exchange.read()
            await exchange.send_json(error.status, error.body, error.headers)

    def _route(self, method, path):
        if not self.config["v2_create"] and (method, path) == ("POST", "/v2/sandboxes"):
            raise ApiError(405, "method not allowed")
        allowed = [(handler, match.groupdict().get("id")) for verb, pattern, handler in self.routes
                   if verb == method and (match := pattern.match(path))]
        if allowed:
            return allowed[0]
        if any(pattern.match(path) for _, pattern, _ in self.routes):
            raise ApiError(405, "method not allowed")
        raise ApiError(404, "no matching operation was found")

    # -- finding ------------------------------------------------------------------------------------------------------

    def _find(self, text):
        """The living sandbox of a path; the old form ID-CLIENTID is accepted."""
        short, dash, client = text.partition("-")
        if not ID.match(short) or (dash and not ID.match(client)):
            raise ApiError(400, "Invalid sandbox ID")
        sandbox = self.registry.find(short)
        if sandbox is None:
            raise not_found(short)
        return sandbox

    def _running(self, text):
        """The sandbox, running: 404 when it is paused, 409 while it is on the way to another state."""
        sandbox = self._find(text)
        if sandbox.moving:
            raise changing(sandbox)
        if sandbox.state != "running":
            raise not_found(sandbox.id)
        return sandbox

    # -- create -------------------------------------------------------------------------------------------------------

    async def create_v1(self, exchange, _):
        body = await read_body(exchange, ["templateID"])
        await exchange.send_json(201, await self._create(body, V1_DEFAULT, body.get("secure") is True))

    async def create_v2(self, exchange, _):
        body, key = await read_body(exchange, ["templateID"]), exchange.request.headers.get("Idempotency-Key")
        if key is None or not self.config["idempotency"]:
            shown = await self._create(body, V2_DEFAULT, True)
        else:
            shown = await self._create_once(key, body)
        await exchange.send_json(201, shown)

    async def _create_once(self, key, body):
        """Create, or tell again what the same request with the same key made (newer servers, behind a flag)."""
        if key in self.keys:
            seen, shown = self.keys[key]
            if seen != body:
                raise ApiError(409, "Idempotency-Key was used with another request", "idempotency_request_mismatch")
            if shown is None:
                raise ApiError(409, "the request with this Idempotency-Key is still running", "idempotency_in_progress")
            return shown
        self.keys[key] = (body, None)
        try:
            shown = await self._create(body, V2_DEFAULT, True)
        except ApiError:
            del self.keys[key]
            raise
        self.keys[key] = (body, shown)
        return shown

    async def _create(self, body, default, secure):
        """Make a sandbox; the `Sandbox` to answer with."""
        check_types(body)
        template = body["templateID"]
        if not self.registry.knows_template(template):
            raise ApiError(404, f"template '{template}' not found")
        if template in self.config["forbidden_templates"]:
            raise ApiError(403, f"you don't have access to template '{template}'")
        seconds = self._timeout(body.get("timeout"), default)
        self._check_create(body, secure)
        self._check_room()
        sandbox = await self.registry.create(template, body, seconds, secure)
        if sandbox.state != "running":
            raise ApiError(500, "Failed to place sandbox: it ended while starting", "sandbox_create_failed")
        return show(sandbox, self.config)

    def _check_create(self, body, secure):
        if body.get("autoPauseMemory") is False and not body.get("autoPause"):
            raise ApiError(400, "autoPauseMemory=false only applies when autoPause is true.")
        if body.get("autoPauseMemory") is False and (body.get("autoResume") or {}).get("enabled"):
            raise ApiError(400, "autoPauseMemory=false (filesystem-only auto-pause) cannot be combined with autoResume")
        if secure and not supports_tokens(self.config["envd_version"]):
            raise ApiError(400, "You need to re-build template to allow using secured access. Please visit "
                                "https://e2b.dev/docs/sandbox/secured-access for more information.")
        if (body.get("network") or {}).get("allowPublicTraffic") is False and not secure:
            raise ApiError(400, "You cannot create a sandbox without public access unless you enable secure envd "
                                "access via 'secure' flag.")

    def _timeout(self, seconds, default=None):
        """A TTL in seconds within the plan's bounds."""
        if seconds is None:
            seconds = default
        if not isinstance(seconds, int) or isinstance(seconds, bool):
            raise ApiError(400, 'validation error: request body has an error: Error at "/timeout": value must be an '
                                "integer")
        if seconds <= 0:
            raise ApiError(400, "Timeout must be greater than 0")
        if seconds > self.config["plan_hours"] * 3600:
            raise ApiError(400, f"Timeout cannot be greater than {self.config['plan_hours']} hours")
        return seconds

    def _check_room(self):
        limit = self.config["max_concurrent"]
        if limit is not None and self.registry.busy() >= limit:
            raise ApiError(429, f"you have reached the maximum number of concurrent E2B sandboxes ({limit}). If you "
                                "need more, please contact us at 'https://e2b.dev/docs/getting-help'")

    # -- one sandbox --------------------------------------------------------------------------------------------------

    async def get(self, exchange, text):
        await exchange.send_json(200, detail(self._find(text), self.config))

    async def kill(self, exchange, text):
        self._find(text).kill("killed")
        await exchange.send(204)

    async def connect_v1(self, exchange, text):
        body = await read_body(exchange, ["timeout"])
        await self._connect(exchange, text, body, None)

    async def connect_v2(self, exchange, text):
        await self._connect(exchange, text, await read_body(exchange), V2_DEFAULT)

    async def _connect(self, exchange, text, body, default):
        """Prolong a running sandbox (200, never shortened) or resume a paused one (201); a move is waited out."""
        seconds, sandbox = self._timeout(body.get("timeout"), default), self._find(text)
        async with sandbox.settled:
            sandbox = self._find(text)
            if sandbox.state == "running":
                sandbox.extend(self._clamped(sandbox, seconds))
                await exchange.send_json(200, show(sandbox, self.config))
                return
        self._check_room()
        resumed = await sandbox.resume(seconds)
        self._find(text)
        await exchange.send_json(201 if resumed else 200, show(sandbox, self.config))

    async def resume(self, exchange, text):
        body = await read_body(exchange, ["timeout"])
        seconds, sandbox = self._timeout(body["timeout"]), self._find(text)
        if sandbox.state == "running":
            raise ApiError(409, f"Sandbox {sandbox.id} is already running")
        self._check_room()
        await sandbox.resume(seconds)
        await exchange.send_json(201, show(sandbox, self.config))

    async def pause(self, exchange, text):
        body, sandbox = await read_body(exchange), self._find(text)
        if sandbox.moving:
            raise ApiError(409, f"Sandbox '{sandbox.id}' cannot be paused while in '{sandbox.moving}' state")
        if sandbox.state == "paused":
            raise ApiError(409, f"Error pausing sandbox - sandbox '{sandbox.id}' is already paused")
        await sandbox.pause(body.get("memory", True))
        await exchange.send(204)

    async def set_timeout(self, exchange, text):
        """End = now + timeout, longer or shorter, within the plan's longest life."""
        body = await read_body(exchange, ["timeout"])
        seconds = body["timeout"]
        if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds < 0:
            raise ApiError(400, 'validation error: request body has an error: Error at "/timeout": number must be at '
                                "least 0")
        sandbox = self._running(text)
        sandbox.set_end(self._clamped(sandbox, seconds))
        sandbox.timeout = seconds
        if seconds == 0:
            sandbox.expire()
        await exchange.send(204)

    def _clamped(self, sandbox, seconds):
        left = self.config["plan_hours"] * 3600 - (time.time() - sandbox.started_at)
        if left <= 0:
            raise ApiError(400, "Max instance length exceeded")
        return min(seconds, left)

    async def refresh(self, exchange, text):
        """Prolong only; at least 15 s, at most an hour."""
        body = await read_body(exchange)
        seconds = body.get("duration", REFRESH_MINIMUM)
        if not isinstance(seconds, int) or not 0 <= seconds <= REFRESH_MAXIMUM:
            raise ApiError(400, 'validation error: request body has an error: Error at "/duration": number must be at '
                                f"most {REFRESH_MAXIMUM}")
        sandbox = self._running(text)
        sandbox.extend(self._clamped(sandbox, max(seconds, REFRESH_MINIMUM)))
        await exchange.send(204)

    async def network(self, exchange, text):
        body = await read_body(exchange)
        self._running(text).network = body
        await exchange.send(204)

    async def logs(self, exchange, text):
        self._find(text)
        await exchange.send_json(200, {"logs": []})

    async def metrics(self, exchange, text):
        self._find(text)
        await exchange.send_json(200, [{
            "timestamp": iso(time.time()), "timestampUnix": int(time.time()), "cpuCount": 2, "cpuUsedPct": 1.0,
            "memUsed": 64 << 20, "memTotal": 512 << 20, "memCache": 0, "diskUsed": 1 << 30, "diskTotal": 8 << 30}])

    # -- snapshots and forks ------------------------------------------------------------------------------------------

    async def snapshot(self, exchange, text):
        body = await read_body(exchange)
        name = body.get("name")
        snapshot_id = await self.registry.snapshot(self._running(text), name)
        await exchange.send_json(201, {"snapshotID": snapshot_id, "names": [name] if name else []})

    async def list_snapshots(self, exchange, _):
        wanted = exchange.request.query.get("sandboxID")
        await exchange.send_json(200, [
            {"snapshotID": snapshot_id, "names": snapshot["names"]}
            for snapshot_id, snapshot in self.registry.snapshots.items() if wanted in (None, snapshot["sandbox"])])

    async def delete_template(self, exchange, text):
        if not self.registry.drop_snapshot(unquote_plus(text)):
            raise ApiError(404, f"template '{text}' not found")
        await exchange.send(204)

    async def fork(self, exchange, text):
        """Copies of a running sandbox's disk; each of them alone may fail."""
        body, made = await read_body(exchange), []
        original, seconds = self._running(text), self._timeout(body.get("timeout"), V2_DEFAULT)
        snapshot_id = await self.registry.snapshot(original, None)
        for _ in range(body.get("count", 1)):
            try:
                self._check_room()
            except ApiError as error:
                made.append({"error": error.body})
                continue
            copy = await self.registry.create(snapshot_id, {"metadata": original.metadata}, seconds,
                                              original.token is not None)
            made.append({"sandbox": show(copy, self.config)})
        self.registry.drop_snapshot(snapshot_id)
        await exchange.send_json(201, made)

    # -- lists --------------------------------------------------------------------------------------------------------

    async def list_v1(self, exchange, _):
        found = self._filtered(exchange, ["running"])
        found.sort(key=lambda sandbox: -sandbox.created_at)
        await exchange.send_json(200, [listing.entry(sandbox) for sandbox in found])

    async def list_v2(self, exchange, _):
        query = exchange.request.query
        try:
            page = listing.Page(query)
            found = self._filtered(exchange, listing.wanted_states(query))
        except ValueError as error:
            raise ApiError(400, str(error)) from None
        shown, token = page.cut(found)
        headers = {"X-Total-Running": str(sum(sandbox.state == "running" for sandbox in found))}
        if token:
            headers["X-Next-Token"] = token
        await exchange.send_json(200, [listing.entry(sandbox) for sandbox in shown], headers)

    def _filtered(self, exchange, states):
        query = exchange.request.query
        try:
            wanted = listing.parse_metadata(query["metadata"]) if "metadata" in query else {}
        except ValueError as error:
            raise ApiError(400, f"Error parsing metadata: {error}") from None
        living = [sandbox for sandbox in self.registry.sandboxes.values() if sandbox.state in states]
        template = query.get("template")
        return [sandbox for sandbox in living if wanted.items() <= sandbox.metadata.items()
                and template in (None, sandbox.template)]


def show(sandbox, config):
    """`Sandbox`: the answer of create and connect."""
    shown = {"templateID": sandbox.template, "sandboxID": sandbox.id, "clientID": CLIENT_ID, "alias": sandbox.template,
             "envdVersion": sandbox.version, "domain": config["domain"], "trafficAccessToken": sandbox.traffic_token}
    return {**shown, "envdAccessToken": sandbox.token} if sandbox.token else shown


def detail(sandbox, config):
    """`SandboxDetail`: the answer of get."""
    shown = {**show(sandbox, config), **listing.entry(sandbox), "allowInternetAccess": sandbox.internet,
             "lifecycle": {"onTimeout": "pause" if sandbox.auto_pause else "kill", "autoResume": sandbox.auto_resume}}
    del shown["trafficAccessToken"]
    return {**shown, "network": sandbox.network} if sandbox.network else shown
