# SPDX-License-Identifier: ISC
"""The sandboxes of a fake Vercel: durable things with a name, whose sessions come and go, and their snapshots."""
import asyncio
import os
import secrets
from dataclasses import dataclass

from ..common.machine import remove_root
from .api import bad_request, new_id, not_found, now_ms, snapshot_not_found, without_none
from .session import ENDED, INTERACTIVE_PORT, Session
from .snapshot import Snapshot, disk_size

MEMORY_PER_VCPU = 2048
DEFAULT_TIMEOUT = 300000


@dataclass
class Profile:
    """What an image says of its user."""
    user: str
    home: str
    cwd: str


LEGACY = Profile("vercel-sandbox", "/home/vercel-sandbox", "/vercel/sandbox")


def shown_policy(policy):
    """A network policy as responses tell it."""
    if policy is None or "mode" in policy:
        return policy or {"mode": "allow-all"}
    allowed, subnets = policy.get("allow", []), policy.get("subnets", {})
    rules = [] if isinstance(allowed, list) else [
        {"domain": domain, "headerNames": sorted({name for rule in rules for change in rule.get("transform", [])
                                                  for name in change.get("headers", {})})}
        for domain, rules in allowed.items() if rules]
    return {"mode": "custom", "allowedDomains": list(allowed), "allowedCIDRs": subnets.get("allow", []),
            "deniedCIDRs": subnets.get("deny", []), "injectionRules": rules}


class Sandbox:
    """One sandbox. `body` is a create request that has been checked."""

    def __init__(self, registry, scope, body, snapshot=None):
        self.registry, self.config = registry, registry.config
        self.team, self.project = scope.team, scope.project
        self.name = body.get("name") or "sandbox-" + new_id("")[:12].lower()
        self.runtime = body.get("runtime")
        self.image = None if self.runtime else body.get("image") or self.config["default_image"]
        self.profile = LEGACY if self.runtime else Profile(
            self.config["user"], self.config["home"], self.config["work_dir"] or self.config["home"])
        self.region = body.get("region") or "iad1"
        self.interactive = bool(body.get("__interactive")) or self.config["always_interactive"]
        self.env, self.tags = body.get("env") or {}, body.get("tags") or {}
        self.persistent = body.get("persistent", True)
        self.timeout = body.get("timeout") or DEFAULT_TIMEOUT
        self.vcpus = (body.get("resources") or {}).get("vcpus") or 2
        self.memory = self.vcpus * MEMORY_PER_VCPU
        self.network_policy = shown_policy(body.get("networkPolicy"))
        self.snapshot_expiration = body.get("snapshotExpiration")
        self.keep_last = body.get("keepLastSnapshots")
        self.options = {name: body[name] for name in ("failoverRegions", "networkId", "mounts") if body.get(name)}
        self.subdomains, self.ports = {}, []
        self.set_ports(body.get("ports") or [])
        self.created_at = self.updated_at = self.status_updated_at = now_ms()
        self.current_snapshot, self.deleted = snapshot, False
        self.sessions = []
        self._resuming = asyncio.Lock()
        self.begin(snapshot)

    @property
    def session(self):
        return self.sessions[-1]

    def begin(self, snapshot):
        """A new session."""
        if snapshot:
            snapshot.use()
        self.sessions.append(Session(self, snapshot))
        self.registry.sessions[self.session.id] = self.session

    async def resume(self):
        """A running session: the current one, or a new one from the current snapshot. True if it is new."""
        async with self._resuming:
            if self.session.status in ("stopping", "snapshotting"):
                await asyncio.shield(self.session.over)
            if self.session.status not in ENDED:
                return False
            if self.current_snapshot is None or not self.current_snapshot.usable():
                raise snapshot_not_found("Cannot resume sandbox: no snapshot available.")
            self.begin(self.current_snapshot)
            return True

    def note_status(self, session):
        if self.sessions and session is self.session:
            self.status_updated_at = self.updated_at = now_ms()

    def set_ports(self, ports):
        self.ports = list(dict.fromkeys(ports))
        for port in [*self.ports, INTERACTIVE_PORT]:
            self.subdomains.setdefault(port, "sb-" + secrets.token_hex(6))

    def update(self, body):
        """A checked PATCH: all but the ports is for the next session."""
        names = {"persistent": "persistent", "timeout": "timeout", "tags": "tags", "env": "env", "region": "region",
                 "snapshotExpiration": "snapshot_expiration", "keepLastSnapshots": "keep_last"}
        for key, name in names.items():
            if key in body:
                setattr(self, name, body[key])
        if (body.get("resources") or {}).get("vcpus"):
            self.vcpus = body["resources"]["vcpus"]
            self.memory = self.vcpus * MEMORY_PER_VCPU
        if "networkPolicy" in body:
            self.network_policy = shown_policy(body["networkPolicy"])
        for name in ("failoverRegions", "networkId", "mounts"):
            if name in body:
                self.options[name] = body[name]
        if "ports" in body:
            self.set_ports(body["ports"])
        if body.get("currentSnapshotId"):
            self.current_snapshot = self.registry.find_snapshot(self.team, body["currentSnapshotId"])
        self.updated_at = now_ms()

    def routes(self, system=False):
        ports = [*self.ports, *([INTERACTIVE_PORT] if system and self.interactive else [])]
        return [{"url": f"https://{self.subdomains[port]}.vercel.run", "subdomain": self.subdomains[port], "port": port,
                 **({"system": True} if port == INTERACTIVE_PORT else {})} for port in ports]

    def show(self):
        """The API's Sandbox object."""
        session = self.session
        running = session.status == "running"
        return without_none({
            "name": self.name, "persistent": self.persistent, "region": self.region, "vcpus": self.vcpus,
            "memory": self.memory, "runtime": self.runtime, "image": self.image, "timeout": self.timeout,
            "networkPolicy": self.network_policy, "createdAt": self.created_at, "updatedAt": self.updated_at,
            "statusUpdatedAt": self.status_updated_at, "currentSessionId": session.id, "status": session.status,
            "currentSnapshotId": self.current_snapshot and self.current_snapshot.id, "cwd": self.profile.cwd,
            "expiresAt": session.started_at + session.timeout if running else None, "tags": self.tags or None,
            "totalDurationMs": sum(one.stopped_at - (one.started_at or one.stopped_at)
                                   for one in self.sessions if one.stopped_at),
            "snapshotExpiration": self.snapshot_expiration, "keepLastSnapshots": self.keep_last, **self.options})

    def report(self):
        """For GET /_fake/sandboxes; `id` is the name, by which the control endpoint knows a sandbox."""
        return {**self.show(), "id": self.name, "env": self.env, "deleted": self.deleted,
                "root": self.session.root, "sessions": [
                    {**session.show(), "reason": session.reason,
                     "commands": [command.show() for command in session.commands.values()]}
                    for session in self.sessions]}


class Registry:
    """Everything of one fake."""

    def __init__(self, root, config):
        self.root, self.config = root, config
        self.sandboxes = []         # the deleted too
        self.sessions, self.snapshots = {}, {}

    def create(self, scope, body, snapshot=None):
        if body.get("name") and self.lookup(scope, body["name"]):
            raise bad_request(f"A sandbox with the name '{body['name']}' already exists for this project.")
        sandbox = Sandbox(self, scope, body, snapshot)
        self.sandboxes.append(sandbox)
        return sandbox

    def living(self, scope):
        return [sandbox for sandbox in self.sandboxes
                if not sandbox.deleted and (sandbox.team, sandbox.project) == (scope.team, scope.project)]

    def lookup(self, scope, name):
        return next((sandbox for sandbox in self.living(scope) if sandbox.name == name), None)

    def find(self, scope, name):
        sandbox = self.lookup(scope, name)
        if sandbox is None:
            raise not_found(f"Sandbox '{name}' not found.")
        return sandbox

    def find_session(self, team, session_id):
        session = self.sessions.get(session_id)
        if session is None or session.sandbox.team != team:
            raise not_found("Session not found.")
        return session

    def find_snapshot(self, team, snapshot_id):
        """A snapshot that can be started from."""
        snapshot = self.snapshots.get(snapshot_id)
        if snapshot is None or snapshot.sandbox.team != team or not snapshot.usable():
            raise snapshot_not_found(f"Snapshot '{snapshot_id}' not found.")
        return snapshot

    def name_of(self, text):
        """The name of the sandbox that a session id or a name stands for."""
        session = self.sessions.get(text)
        return session.sandbox.name if session else text

    def newest(self, name):
        """The sandbox of that name that was made last."""
        return next((sandbox for sandbox in reversed(self.sandboxes) if sandbox.name == name), None)

    # -- snapshots ----------------------------------------------------------------------------------------------------

    async def take_snapshot(self, session, expiration, method):
        """The disk of an ended session becomes a snapshot, and its sandbox's current one."""
        sandbox = session.sandbox
        snapshot = Snapshot(session, self.root, sandbox.snapshot_expiration if expiration is None else expiration,
                            method)
        os.rename(session.root, snapshot.root)
        snapshot.size = await asyncio.get_running_loop().run_in_executor(None, disk_size, snapshot.root)
        self.snapshots[snapshot.id] = snapshot
        sandbox.current_snapshot = snapshot
        self._evict(sandbox)
        return snapshot

    def _evict(self, sandbox):
        """keepLastSnapshots: those beyond the count are deleted, or live on for another time only."""
        keep = sandbox.keep_last
        if not keep:
            return
        own = [snapshot for snapshot in self.snapshots.values()
               if snapshot.sandbox is sandbox and snapshot.status == "created"]
        for snapshot in own[:-keep["count"]]:
            if keep.get("deleteEvicted", True):
                self.delete_snapshot(snapshot)
            else:
                snapshot.lifetime = keep.get("expiration", snapshot.lifetime)

    def delete_snapshot(self, snapshot):
        snapshot.status, snapshot.updated_at = "deleted", now_ms()
        asyncio.get_running_loop().run_in_executor(None, remove_root, snapshot.root)

    def delete_orphans(self, sandbox):
        """The snapshots of a deleted sandbox that no other one stands on."""
        used = {other.current_snapshot.id for other in self.sandboxes
                if not other.deleted and other.current_snapshot}
        for snapshot in self.snapshots.values():
            if snapshot.sandbox is sandbox and snapshot.status == "created" and snapshot.id not in used:
                self.delete_snapshot(snapshot)

    async def clear(self):
        machines = [session.machine for session in self.sessions.values() if session.machine]
        for session in self.sessions.values():
            session.abort("reset")
        for snapshot in self.snapshots.values():
            if snapshot.status == "created":
                self.delete_snapshot(snapshot)
        boots = [session.booting for session in self.sessions.values()]
        if machines or boots:
            await asyncio.wait([*boots, *(machine.dead for machine in machines)])
        self.sandboxes.clear()
        self.sessions.clear()
        self.snapshots.clear()
