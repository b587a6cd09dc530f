# SPDX-License-Identifier: ISC
"""Daytona's control plane: the REST calls that create, find, list, start, stop, label and delete sandboxes."""
import asyncio
import json
import re
import secrets
import time
from urllib.parse import unquote

from .api import VERSION, ApiError, check_types, error_body, in_progress, iso, key_is_good, not_found, read_body
from .errors import PAGE

JSON = {"Content-Type": "application/json; charset=utf-8", **VERSION}
CREATE_WAIT = START_WAIT = 30
LIST_HIDES = ("env", "toolboxProxyUrl", "networkBlockAll", "networkAllowList", "domainAllowList", "volumes",
              "buildInfo")
QUOTAS = {"cpu": ("CPU", ""), "memory": ("memory", "GiB"), "disk": ("disk", "GiB"), "gpu": ("GPU", "")}
PER_SANDBOX = {"cpu": ("CPU", ""), "memory": ("Memory", "GB"), "disk": ("Disk", "GB")}
UPGRADE = ("To increase concurrency limits, upgrade your organization's Tier by visiting "
           "https://app.daytona.io/dashboard/limits.")


class Control:
    """The routes. Each handler gets (exchange, the named groups of its path, decoded)."""

    def __init__(self, registry, config):
        self.registry, self.config = registry, config
        self.ssh_tokens = {}
        self.seen = {}          # what a lookup told last, and when: {name: (time, object)}
        one = r"/sandbox/(?P<name>[^/]+)"
        self.routes = [(method, re.compile("/api" + path + "$"), handler) for method, path, handler in (
            ("POST", "/sandbox", self.create), ("GET", "/sandbox", self.list),
            ("GET", "/sandbox/paginated", self.list_pages), ("GET", "/config", self.public_config),
            ("GET", "/sandbox/ssh-access/validate", self.validate_ssh),
            ("GET", one, self.get), ("DELETE", one, self.delete), ("POST", one + "/start", self.start),
            ("POST", one + "/stop", self.stop), ("POST", one + "/archive", self.archive),
            ("POST", one + "/recover", self.recover), ("POST", one + "/pause", self.pause),
            ("PUT", one + "/labels", self.set_labels),
            ("POST", one + r"/(?P<which>autostop|autoarchive|autodelete)/(?P<minutes>[^/]+)", self.set_interval),
            ("POST", one + "/public/(?P<value>true|false)", self.set_public),
            ("POST", one + "/last-activity", self.touch), ("GET", one + "/toolbox-proxy-url", self.toolbox_url),
            ("GET", one + "/build-logs-url", self.build_logs_url),
            ("GET", one + r"/ports/(?P<port>\d+)/preview-url", self.preview_url),
            ("POST", one + "/ssh-access", self.grant_ssh), ("DELETE", one + "/ssh-access", self.revoke_ssh),
        )]

    async def serve(self, exchange):
        request = exchange.request
        if request.path.startswith("/build-logs/"):
            await self.build_logs(exchange)
            return
        if not re.match(r"/api(/|$)", request.path):
            await exchange.send(200, PAGE.encode(), {"Content-Type": "text/html; charset=utf-8"})
            return
        try:
            handler, names = self._route(request)
            if not key_is_good(request, self.config) and handler != self.public_config:
                raise ApiError(401, "Invalid credentials")
            await handler(exchange, **names)
        except ApiError as error:
            await exchange.read()
            await exchange.send_json(error.status, error_body(request.path, error.status, error.message),
                                     {**JSON, **(error.headers or {})})

    def _route(self, request):
        raw = request.path_qs.partition("?")[0]
        for method, pattern, handler in self.routes:
            match = pattern.match(raw)
            if method == request.method and match:
                return handler, {name: unquote(value) for name, value in match.groupdict().items()}
        raise ApiError(404, f"Cannot {request.method} {request.path}")

    def _find(self, name):
        sandbox = self.registry.find(name)
        if sandbox is None:
            raise not_found(name)
        return sandbox

    def _url(self, exchange):
        return f"http://{exchange.request.headers.get('Host', 'localhost')}/toolbox"

    async def _send(self, exchange, sandbox, state=None, status=200):
        url = self._url(exchange) if self.config["toolbox_url_in_object"] else None
        await exchange.send_json(status, sandbox.show(state, url), JSON)

    # -- create -------------------------------------------------------------------------------------------------------

    async def create(self, exchange):
        """Answers what the sandbox was like before the wait, so `creating` may be told of a started one."""
        body = await read_body(exchange)
        self._check_create(body)
        self._check_quota(body)
        sandbox = self.registry.create(body)
        state = sandbox.state
        if sandbox.build is None and self.config["create_waits"]:
            await sandbox.settled(CREATE_WAIT)
            if sandbox.error:
                raise ApiError(400, f"Sandbox failed to start: {sandbox.error}")
        await self._send(exchange, sandbox, state)

    def _check_create(self, body):
        check_types(body)
        name, snapshot = body.get("name"), body.get("snapshot")
        if body.get("buildInfo") is not None:
            if snapshot:
                raise ApiError(400, "Cannot specify a snapshot when using a build info entry")
        elif any(body.get(resource) for resource in QUOTAS):
            raise ApiError(400, "Cannot specify Sandbox resources when using a snapshot")
        if snapshot and snapshot not in self.config["snapshots"]:
            raise ApiError(400, f"Snapshot {snapshot} not found. Did you add it through the Daytona Dashboard?")
        if body.get("autoStopInterval", 0) < 0:
            raise ApiError(400, "Auto-stop interval must be non-negative")
        if body.get("autoArchiveInterval", 0) < 0:
            raise ApiError(400, "Auto-archive interval must be non-negative")
        if name and any(sandbox.name == name for sandbox in self.registry.living()):
            raise ApiError(409, f"Sandbox with name {name} already exists")

    def _check_quota(self, body):
        """Quotas are 400s. The limit of one sandbox first, then that of all together."""
        for resource, (title, unit) in PER_SANDBOX.items():
            asked, limit = body.get(resource) or 0, self.config["max_per_sandbox"].get(resource)
            if limit is not None and asked > limit:
                raise ApiError(400, f"{title} request {asked}{unit} exceeds maximum allowed per sandbox "
                                    f"({limit}{unit}).\nNeed higher resource limits per-sandbox? Contact us at "
                                    "support@daytona.io.")
        self._check_total({"cpu": 1, "memory": 1, "disk": 3, "gpu": 0,
                           **{name: body[name] for name in QUOTAS if body.get(name)}})

    def _check_total(self, asked):
        for resource, (title, unit) in QUOTAS.items():
            limit = self.config["quota"].get(resource)
            if limit is not None and self.registry.used(resource) + asked[resource] > limit:
                raise ApiError(400, f"Total {title} limit exceeded. Maximum allowed: {limit}{unit}.\n{UPGRADE}")

    # -- one sandbox --------------------------------------------------------------------------------------------------

    async def get(self, exchange, name):
        """One lookup; with the `lookup_cache_ms` setting it may be an old one."""
        cached = self.seen.get(name)
        if cached and time.time() - cached[0] < self.config["lookup_cache_ms"] / 1000:
            await exchange.send_json(200, cached[1], JSON)
            return
        sandbox = self._find(name)
        url = self._url(exchange) if self.config["toolbox_url_in_object"] else None
        shown = sandbox.show(sandbox.visible_state(), url)
        self.seen[name] = (time.time(), shown)
        await exchange.send_json(200, shown, JSON)

    async def start(self, exchange, name):
        sandbox = self._find(name)
        if sandbox.state == "started" and sandbox.desired == "started":
            await self._send(exchange, sandbox)
            return
        self._check_sound(sandbox)
        if sandbox.state != sandbox.desired and sandbox.state != "archiving":
            raise in_progress()
        self._check_total({resource: getattr(sandbox, resource) if resource != "disk" else 0 for resource in QUOTAS})
        restored = sandbox.state != "stopped"
        sandbox.start()
        if not restored and self.config["create_waits"]:
            await sandbox.settled(START_WAIT)
            if sandbox.error:
                raise ApiError(400, f"Sandbox failed to start: {sandbox.error}")
        await self._send(exchange, sandbox, "starting" if not restored else "restoring")

    def _check_sound(self, sandbox):
        if sandbox.state in ("error", "build_failed"):
            raise ApiError(400, "Sandbox is in an errored state")

    async def stop(self, exchange, name):
        sandbox = self._find(name)
        self._check_sound(sandbox)
        if sandbox.state != sandbox.desired:
            raise in_progress()
        if sandbox.state != "started":
            raise ApiError(400, "Sandbox is not in a stoppable state")
        sandbox.stop()
        await self._send(exchange, sandbox)

    async def archive(self, exchange, name):
        sandbox = self._find(name)
        self._check_sound(sandbox)
        if sandbox.state != sandbox.desired:
            raise in_progress()
        if sandbox.state != "stopped":
            raise ApiError(400, "Sandbox is not stopped")
        sandbox.archive()
        await self._send(exchange, sandbox)

    async def pause(self, exchange, name):
        if self._find(name).state != "started":
            raise ApiError(400, "Sandbox must be in started state to pause")
        raise ApiError(422, "Pausing is not supported for this sandbox")

    async def recover(self, exchange, name):
        if self._find(name).state != "error":
            raise ApiError(400, "Sandbox must be in error state to recover")
        raise ApiError(400, "Sandbox is not in a recoverable state")

    async def delete(self, exchange, name):
        sandbox = self._find(name)
        if sandbox.state != sandbox.desired and sandbox.state not in ("pending_build", "error", "build_failed"):
            raise in_progress()
        sandbox.destroy("deleted")
        await self._send(exchange, sandbox)

    async def set_labels(self, exchange, name):
        body, sandbox = await read_body(exchange), self._find(name)
        if not isinstance(body.get("labels"), dict):
            raise ApiError(400, "labels must be an object")
        sandbox.labels = body["labels"]
        await exchange.send_json(200, {"labels": sandbox.labels}, JSON)

    async def set_interval(self, exchange, name, which, minutes):
        sandbox = self._find(name)
        if not re.fullmatch(r"-?\d+", minutes):
            raise ApiError(400, "Validation failed (numeric string is expected)")
        if int(minutes) < 0 and which != "autodelete":
            raise ApiError(400, f"Auto-{which[4:]} interval must be non-negative")
        sandbox.set_interval(f"auto_{which[4:]}", int(minutes))
        await self._send(exchange, sandbox)

    async def set_public(self, exchange, name, value):
        sandbox = self._find(name)
        sandbox.public = value == "true"
        await self._send(exchange, sandbox)

    async def touch(self, exchange, name):
        """Only by id."""
        sandbox = self.registry.sandboxes.get(name)
        if sandbox is None or sandbox.state == "destroyed":
            raise ApiError(404, f"Sandbox with ID {name} not found")
        await exchange.read()
        sandbox.touch()
        await exchange.send(201, b"", VERSION)

    async def toolbox_url(self, exchange, name):
        self._find(name)
        await exchange.send_json(200, {"url": self._url(exchange)}, JSON)

    async def build_logs_url(self, exchange, name):
        sandbox = self._find(name)
        if sandbox.build is None:
            raise ApiError(404, f"Sandbox {name} has no build info")
        host = exchange.request.headers.get("Host", "localhost")
        await exchange.send_json(200, {"url": f"http://{host}/build-logs/{sandbox.id}"}, JSON)

    async def build_logs(self, exchange):
        """The text of a build; with follow=true to its end."""
        sandbox = self.registry.find(exchange.request.path.rpartition("/")[2])
        if sandbox is None or not key_is_good(exchange.request, self.config):
            await exchange.send(404)
            return
        await exchange.open(200, {"Content-Type": "text/plain; charset=utf-8"})
        await exchange.write(b"Building image...\n")
        while exchange.request.query.get("follow") == "true" and sandbox.state == "pending_build":
            await asyncio.sleep(0.02)
        await exchange.write(b"Build completed successfully\n" if not sandbox.error else b"Build failed\n")
        await exchange.close()

    async def preview_url(self, exchange, name, port):
        sandbox = self._find(name)
        if not 0 < int(port) < 65536:
            raise ApiError(400, "Invalid port")
        await exchange.send_json(200, {"sandboxId": sandbox.id, "url": f"https://{port}-{sandbox.id}.proxy.invalid",
                                       "token": secrets.token_hex(16)}, JSON)

    async def public_config(self, exchange):
        await exchange.send_json(200, {"version": "0.190.0", "proxyToolboxUrl": self._url(exchange),
                                       "sshGatewayCommand": "ssh -p 2222 {{TOKEN}}@localhost"}, JSON)

    # -- SSH access ---------------------------------------------------------------------------------------------------

    async def grant_ssh(self, exchange, name):
        """A new token revokes all earlier ones of the sandbox."""
        sandbox, minutes = self._find(name), exchange.request.query.get("expiresInMinutes", "60")
        self.ssh_tokens = {token: owner for token, owner in self.ssh_tokens.items() if owner[0] != sandbox.id}
        token, now = secrets.token_hex(16), time.time()
        self.ssh_tokens[token] = (sandbox.id, now + float(minutes) * 60)
        await exchange.send_json(200, {
            "id": secrets.token_hex(8), "sandboxId": sandbox.id, "token": token, "createdAt": iso(now),
            "updatedAt": iso(now), "expiresAt": iso(now + float(minutes) * 60),
            "sshCommand": f"ssh -p 2222 {token}@localhost"}, JSON)

    async def revoke_ssh(self, exchange, name):
        sandbox, wanted = self._find(name), exchange.request.query.get("token")
        self.ssh_tokens = {token: owner for token, owner in self.ssh_tokens.items()
                           if owner[0] != sandbox.id or wanted not in (None, token)}
        await self._send(exchange, sandbox)

    async def validate_ssh(self, exchange):
        owner, end = self.ssh_tokens.get(exchange.request.query.get("token"), (None, 0))
        valid = owner is not None and end > time.time()
        await exchange.send_json(200, {"valid": valid, "sandboxId": owner if valid else None}, JSON)

    # -- lists --------------------------------------------------------------------------------------------------------

    async def list(self, exchange):
        """A page and the cursor of the next; with the `list_lag_ms` setting it trails what GET tells."""
        query, found = exchange.request.query, self._filtered(exchange)
        try:
            limit, start = int(query.get("limit", "100")), int(query.get("cursor") or "0")
        except ValueError:
            raise ApiError(400, "limit must be an integer number") from None
        if limit > 200:
            raise ApiError(400, "limit must not be greater than 200")
        if limit < 1:
            raise ApiError(400, "limit must not be less than 1")
        page = found[start:start + limit]
        after = str(start + limit) if start + limit < len(found) else None
        await exchange.send_json(200, {"items": [self._item(sandbox) for sandbox in page], "nextCursor": after}, JSON)

    async def list_pages(self, exchange):
        query, found = exchange.request.query, self._filtered(exchange)
        page, limit = int(query.get("page", "1")), int(query.get("limit", "100"))
        items = [self._item(sandbox) for sandbox in found[(page - 1) * limit:page * limit]]
        await exchange.send_json(200, {"items": items, "total": len(found), "page": page,
                                       "totalPages": -(-len(found) // limit)}, JSON)

    def _item(self, sandbox):
        return {name: value for name, value in sandbox.show().items() if name not in LIST_HIDES}

    def _filtered(self, exchange):
        query, lag = exchange.request.query, self.config["list_lag_ms"] / 1000
        try:
            labels = json.loads(query.get("labels", "{}"))
        except ValueError:
            raise ApiError(400, "Invalid labels JSON format") from None
        states, name, now = query.getall("states", []), query.get("name", ""), time.time()
        found = [sandbox for sandbox in self.registry.sandboxes.values()
                 if sandbox.created_at <= now - lag
                 and (sandbox.desired != "destroyed" or (lag and now - (sandbox.destroyed_at or now) < lag))
                 and labels.items() <= sandbox.labels.items() and sandbox.name.lower().startswith(name.lower())
                 and (not states or sandbox.state in states)]
        return sorted(found, key=lambda sandbox: -sandbox.created_at)
