# SPDX-License-Identifier: ISC
"""The durable half of Vercel's API: sandboxes by name, lists of sessions, snapshots."""
import asyncio
import re

from .api import (JSON, ApiError, Scope, authenticate, bad_request, field, not_found, page, read_body, scope_of,
                  string_map, timeout_invalid)

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
RUNTIMES = ("node26", "node24", "node22", "python3.13")
PORTS, LOWEST_PORT, HIGHEST_PORT = 15, 1024, 65535
TAGS, TAG_VALUE = 5, 256
SHORTEST_TIMEOUT = 1000
DAY_MS = 24 * 3600 * 1000
SORT_KEYS = {"createdAt": lambda sandbox: sandbox.created_at, "name": lambda sandbox: sandbox.name,
             "statusUpdatedAt": lambda sandbox: sandbox.status_updated_at,
             "currentSnapshotId": lambda sandbox: sandbox.current_snapshot.id if sandbox.current_snapshot else ""}


# -- checks -----------------------------------------------------------------------------------------------------------


def check_name(name):
    if not NAME.match(name):
        raise bad_request("Invalid request: `name` should match pattern \"^[a-zA-Z0-9_-]+$\".")


def check_ports(ports):
    if len(ports) > PORTS:
        raise bad_request(f"Invalid request: `ports` should NOT have more than {PORTS} items.")
    for port in ports:
        if not isinstance(port, int) or not LOWEST_PORT <= port <= HIGHEST_PORT:
            raise bad_request(f"Invalid request: `ports` should be >= {LOWEST_PORT} and <= {HIGHEST_PORT}.")


def check_tags(tags):
    if len(tags) > TAGS or any(len(value) > TAG_VALUE for value in tags.values()):
        raise bad_request(f"Invalid request: `tags` should NOT have more than {TAGS} properties, nor values of more "
                          f"than {TAG_VALUE} characters.")


def check_resources(resources, config):
    vcpus = field(resources, "vcpus", int)
    if vcpus is not None and vcpus != 1 and (vcpus < 1 or vcpus % 2):
        raise bad_request("Invalid request: `vcpus` should be 1 or an even number.")
    if vcpus is not None and vcpus > config["max_vcpus"]:
        raise bad_request(f"Invalid request: `vcpus` should be at most {config['max_vcpus']} on this plan.")


def check_timeout(timeout, config):
    if timeout < SHORTEST_TIMEOUT:
        raise bad_request(f"Invalid request: `timeout` should be >= {SHORTEST_TIMEOUT}.")
    if timeout > config["max_timeout_ms"]:
        raise timeout_invalid(config)


def check_keeping(body):
    expiration, keep = field(body, "snapshotExpiration", int), field(body, "keepLastSnapshots", dict)
    if expiration is not None and expiration != 0 and expiration < DAY_MS:
        raise bad_request(f"Invalid request: `snapshotExpiration` should be 0 or >= {DAY_MS}.")
    if keep is not None and not 1 <= (field(keep, "count", int) or 0) <= 10:
        raise bad_request("Invalid request: `keepLastSnapshots.count` should be >= 1 and <= 10.")


def check_options(body, config):
    """What create, fork and update have in common. Unknown members are passed over."""
    if field(body, "name", str) is not None:
        check_name(body["name"])
    if field(body, "ports", list):
        check_ports(body["ports"])
    check_tags(string_map(body, "tags") or {})
    check_resources(field(body, "resources", dict) or {}, config)
    if field(body, "timeout", int) is not None:
        check_timeout(body["timeout"], config)
    check_keeping(body)
    string_map(body, "env")
    for name, kind in (("persistent", bool), ("networkPolicy", dict), ("region", str)):
        field(body, name, kind)


def check_source(body, config, version):
    """Image, runtime and source, of which some exclude each other."""
    image, runtime = field(body, "image", str), field(body, "runtime", str)
    kind = (field(body, "source", dict) or {}).get("type")
    if version == "v3" and runtime is not None:
        raise bad_request("Invalid request: should NOT have additional property `runtime`.")
    if image is not None and (version == "v2" or len(image) > 255):
        raise bad_request("Invalid request: `image` is invalid.")
    if runtime is not None and runtime not in RUNTIMES:
        raise bad_request(f"Invalid request: `runtime` should be one of {', '.join(RUNTIMES)}.")
    if runtime is not None and kind == "snapshot":
        raise bad_request("Invalid request: `runtime` cannot be used with a snapshot.")
    if kind not in (None, "snapshot", "git", "tarball"):
        raise bad_request("Invalid request: `source.type` is invalid.")
    if image is not None and config["images"] is not None and image not in config["images"]:
        raise ApiError(400, "not_found", f"Image '{image}' not found.")


# -- endpoints --------------------------------------------------------------------------------------------------------


class Control:
    """The routes. Each handler gets (exchange, the named groups of its path, decoded)."""

    def __init__(self, registry, config):
        self.registry, self.config = registry, config
        one, snapshot = "/v2/sandboxes/(?P<name>[^/]+)", "/v2/sandboxes/snapshots/(?P<number>[^/]+)"
        self.routes = [
            ("POST", "/(?P<version>v[23])/sandboxes", self.create), ("GET", "/v2/sandboxes", self.list),
            ("GET", "/v2/sandboxes/sessions", self.list_sessions),
            ("GET", "/v2/sandboxes/snapshots", self.list_snapshots),
            ("GET", "/v2/sandboxes/snapshots/tree", self.snapshot_tree),
            ("GET", snapshot, self.get_snapshot), ("DELETE", snapshot, self.delete_snapshot),
            ("GET", one, self.get), ("PATCH", one, self.update), ("DELETE", one, self.delete),
            ("POST", one + "/fork", self.fork),
        ]

    def _scope(self, exchange, name="projectId"):
        """By the query: lists call the project `project`, everything else `projectId`."""
        return scope_of(exchange.request, self.config, exchange.request.query.get(name))

    async def _send(self, exchange, sandbox, **more):
        """A sandbox with its session, which has been waited for unless `create_waits` is off."""
        session = sandbox.session
        if self.config["create_waits"]:
            await asyncio.wait([session.booting])       # awaiting a task itself would cancel it with us
        system = exchange.request.query.get("__includeSystemRoutes") == "true"
        await exchange.send_json(200, {"sandbox": sandbox.show(), "session": session.show(),
                                       "routes": sandbox.routes(system), **more}, JSON)

    async def create(self, exchange, version):
        body = await read_body(exchange)
        scope = scope_of(exchange.request, self.config, field(body, "projectId", str))
        check_options(body, self.config)
        check_source(body, self.config, version)
        source = body.get("source") or {}
        if version == "v2" and source.get("type") != "snapshot":
            body.setdefault("runtime", RUNTIMES[1])
        snapshot = None
        if source.get("type") == "snapshot":
            snapshot = self.registry.find_snapshot(scope.team, source.get("snapshotId"))
            body = {"image": snapshot.sandbox.image, "runtime": snapshot.sandbox.runtime, **body}
        await self._send(exchange, self.registry.create(scope, body, snapshot))

    async def fork(self, exchange, name):
        """A new sandbox on the last snapshot of another; what was not said is as with that one."""
        body, scope = await read_body(exchange), self._scope(exchange)
        check_options(body, self.config)
        origin = self.registry.find(scope, name)
        number = origin.current_snapshot and origin.current_snapshot.id
        snapshot = self.registry.find_snapshot(scope.team, number)
        inherited = {"image": origin.image, "runtime": origin.runtime, "ports": origin.ports, "env": origin.env,
                     "timeout": origin.timeout, "resources": {"vcpus": origin.vcpus}, "tags": origin.tags,
                     "persistent": origin.persistent}
        await self._send(exchange, self.registry.create(scope, {**inherited, **body}, snapshot))

    async def get(self, exchange, name):
        sandbox = self.registry.find(self._scope(exchange), name)
        resumed = False
        if exchange.request.query.get("resume") == "true":
            resumed = await sandbox.resume()
        await self._send(exchange, sandbox, resumed=resumed)

    async def update(self, exchange, name):
        body, sandbox = await read_body(exchange), self.registry.find(self._scope(exchange), name)
        check_options(body, self.config)
        sandbox.update(body)
        await exchange.send_json(200, {"sandbox": sandbox.show(), "routes": sandbox.routes()}, JSON)

    async def delete(self, exchange, name):
        """A running one is stopped first. Its snapshots outlive it unless that is asked for."""
        await exchange.read()
        sandbox = self.registry.find(self._scope(exchange), name)
        sandbox.deleted = True
        await sandbox.session.stop()
        if exchange.request.query.get("deleteOrphanSnapshots") == "true":
            self.registry.delete_orphans(sandbox)
        await exchange.send_json(200, {"sandbox": sandbox.show()}, JSON)

    async def list(self, exchange):
        scope, query = self._scope(exchange, "project"), exchange.request.query
        key, order = query.get("sortBy", "createdAt"), query.get("sortOrder", "desc")
        if key not in SORT_KEYS or order not in ("asc", "desc"):
            raise bad_request("Invalid request: `sortBy` or `sortOrder` is invalid.")
        if query.get("namePrefix") and key != "name":
            raise bad_request("Invalid request: `namePrefix` requires `sortBy` to be `name`.")
        found = [sandbox for sandbox in self.registry.living(scope) if self._matches(sandbox, query)]
        found.sort(key=SORT_KEYS[key])
        if order == "desc":
            found.reverse()
        answer = page(exchange.request, found, "sandboxes")
        answer["sandboxes"] = [sandbox.show() for sandbox in answer["sandboxes"]]
        await exchange.send_json(200, answer, JSON)

    @staticmethod
    def _matches(sandbox, query):
        tags = query.getall("tags", [])
        if len(tags) > 1:
            raise bad_request("Invalid request: `tags` should NOT have more than 1 items.")
        key, _, value = tags[0].partition(":") if tags else ("", "", "")
        return (sandbox.name.startswith(query.get("namePrefix", ""))
                and (not tags or sandbox.tags.get(key) == value)
                and query.get("status") in (None, sandbox.session.status))

    # -- sessions and snapshots ---------------------------------------------------------------------------------------

    async def _send_page(self, exchange, owned, name):
        """A page of what belongs to the sandboxes of a project, or to one of them."""
        scope, query = self._scope(exchange, "project"), exchange.request.query
        found = [thing for thing in owned if Scope(thing.sandbox.team, thing.sandbox.project) == scope
                 and query.get("name") in (None, thing.sandbox.name)]
        if query.get("sortOrder", "desc") == "desc":
            found.reverse()
        answer = page(exchange.request, found, name)
        answer[name] = [thing.show() for thing in answer[name]]
        await exchange.send_json(200, answer, JSON)

    async def list_sessions(self, exchange):
        await self._send_page(exchange, list(self.registry.sessions.values()), "sessions")

    async def list_snapshots(self, exchange):
        owned = [one for one in self.registry.snapshots.values() if one.usable()]
        await self._send_page(exchange, owned, "snapshots")

    def _known_snapshot(self, exchange, number):
        """Any that ever was, of this team."""
        team, _ = authenticate(exchange.request, self.config)
        snapshot = self.registry.snapshots.get(number)
        if snapshot is None or snapshot.sandbox.team != team:
            raise not_found("Snapshot not found.")
        return snapshot

    async def get_snapshot(self, exchange, number):
        await exchange.send_json(200, {"snapshot": self._known_snapshot(exchange, number).show()}, JSON)

    async def delete_snapshot(self, exchange, number):
        await exchange.read()
        snapshot = self._known_snapshot(exchange, number)
        if snapshot.status == "created":
            self.registry.delete_snapshot(snapshot)
        await exchange.send_json(200, {"snapshot": snapshot.show()}, JSON)

    async def snapshot_tree(self, exchange):
        """The ancestors (desc) or descendants (asc) of a snapshot, nearest first."""
        self._scope(exchange, "project")
        query = exchange.request.query
        anchor = self._known_snapshot(exchange, query.get("snapshotId"))
        if query.get("sortOrder", "desc") == "desc":
            line = ancestors(anchor)
        else:
            line = [one for one in self.registry.snapshots.values() if anchor in ancestors(one)]
        answer = page(exchange.request, line, "snapshots")
        answer["snapshots"] = [self._node(one) for one in answer["snapshots"]]
        await exchange.send_json(200, {**answer, "anchor": self._node(anchor)}, JSON)

    def _node(self, snapshot):
        siblings = [one.show() for one in self.registry.snapshots.values()
                    if one is not snapshot and one.parent is snapshot.parent and one.parent]
        return {"snapshot": snapshot.show(), "siblings": siblings, "count": str(len(siblings) + 1)}


def ancestors(snapshot):
    line = []
    while snapshot.parent:
        snapshot = snapshot.parent
        line.append(snapshot)
    return line
