# SPDX-License-Identifier: ISC
"""The sandboxes of a fake E2B: their machines, states, clocks and snapshots.

A sandbox is running, paused or gone, with `moving` set while it goes from one to another. Its TTL is a real timer: at
the end it is paused (autoPause) or killed, and everything that was open to it is cut, as by the provider's proxy.
"""
import asyncio
import hashlib
import hmac
import os
import secrets
import string
import subprocess
import time

from ..common.machine import Machine, remove_root
from .envd import Envd, parse_version

ID_LETTERS = string.digits + string.ascii_lowercase
SECRET = b"fake e2b"


def new_id(prefix="i", length=19):
    return prefix + "".join(secrets.choice(ID_LETTERS) for _ in range(length))


def token_for(kind, sandbox_id):
    """Tokens are a function of the id, so that connect and get tell the same one again."""
    return f"{kind}_" + hmac.new(SECRET, f"{kind}:{sandbox_id}".encode(), hashlib.sha256).hexdigest()


class Sandbox:
    """One sandbox, from its creation on; kept after its end so that tests can ask what became of it."""

    def __init__(self, registry, sandbox_id, template, body, secure):
        self.registry, self.config = registry, registry.config
        self.id, self.template = sandbox_id, template
        self.metadata = body.get("metadata") or {}
        self.env_vars = body.get("envVars") or {}
        self.auto_pause = body.get("autoPause", False)
        self.keep_memory = body.get("autoPauseMemory", True)
        self.auto_resume = (body.get("autoResume") or {}).get("enabled", False)
        self.network = body.get("network")
        self.internet = body.get("allow_internet_access", True)
        self.version = self.config["envd_version"]
        self.token = token_for("ea", sandbox_id) if secure else None
        private = self.network is not None and self.network.get("allowPublicTraffic", True) is False
        self.traffic_token = token_for("ta", sandbox_id) if private else None
        self.root = os.path.join(registry.root, sandbox_id)
        self.state, self.moving, self.ended = "creating", None, None
        self.started_at = self.end_at = self.created_at = time.time()
        self.timeout = 0
        self.machine = self.envd = None
        self.exchanges = set()
        self.settled = asyncio.Lock()       # held while the state changes; connect waits for it
        self._timer = None

    # -- lifetime -----------------------------------------------------------------------------------------------------

    def set_end(self, seconds):
        """The sandbox lives `seconds` from now."""
        self.end_at = time.time() + seconds
        if self._timer:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(seconds, 0), self.expire)

    def extend(self, seconds):
        """Like set_end, but never earlier than now planned."""
        if time.time() + seconds > self.end_at:
            self.set_end(seconds)

    def expire(self):
        """The TTL is over."""
        if self.state == "running" and self.auto_pause:
            asyncio.ensure_future(self.pause(self.keep_memory))
        else:
            self.kill("expired")

    def kill(self, reason):
        """End it at once; True if there was something to end."""
        if self.state == "killed":
            return False
        self.state, self.ended, self.moving = "killed", reason, None
        self.end_at = time.time()
        self._stop_clock()
        self.cut_exchanges()
        if self.machine:
            self.machine.kill()
        asyncio.get_running_loop().run_in_executor(None, self._remove_disk)
        return True

    def _remove_disk(self):
        if self.machine:
            self.machine.process.wait()
        remove_root(self.root)

    def _stop_clock(self):
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def cut_exchanges(self):
        """Break every request that is under way to the sandbox."""
        for exchange in list(self.exchanges):
            if not exchange.finished:
                exchange.cut()

    # -- states -------------------------------------------------------------------------------------------------------

    async def boot(self, seconds):
        """Start the machine and the daemon in it, and the clock. A sandbox killed meanwhile stays killed."""
        machine = await Machine.start(self.root, "e2b.local")
        if self.state == "killed":
            machine.kill()
            return
        self.machine = machine
        env = {"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": self.id, "E2B_TEMPLATE_ID": self.template,
               "E2B_EVENTS_ADDRESS": "http://192.0.2.1", **self.env_vars}
        self.envd = Envd(machine, self.version, self.token, env, self.config)
        self._run(seconds)

    def _run(self, seconds):
        self.state, self.started_at, self.timeout = "running", time.time(), seconds
        self.set_end(seconds)

    async def pause(self, keep_memory=True):
        """Running to paused: with its memory (processes are stopped) or without (they are gone). Streams die."""
        async with self.settled:
            if self.state != "running":
                return
            self.moving, self.state = "pausing", "paused"
            self._stop_clock()
            self.end_at = time.time()
            for exchange in self.exchanges:
                exchange.wedged = self.config["stall_on_pause"]
            self.cut_exchanges()
            if keep_memory:
                await self.machine.freeze()
            else:
                self.machine.kill()
                self.machine = None
            await asyncio.sleep(self.config["pause_ms"] / 1000)
            self.moving = None

    async def resume(self, seconds):
        """Paused to running; False if it is not paused any more."""
        async with self.settled:
            if self.state != "paused":
                return False
            self.moving = "resuming"
            await asyncio.sleep(self.config["resume_ms"] / 1000)
            self.moving = None
            if self.state != "paused":
                return False
            if self.machine is None:
                await self.boot(seconds)
            else:
                await self.machine.thaw()
                self._run(seconds)
            return True

    def show(self):
        """For GET /_fake/sandboxes."""
        return {"id": self.id, "template": self.template, "state": self.state, "moving": self.moving,
                "ended": self.ended, "metadata": self.metadata, "timeout": self.timeout, "started_at": self.started_at,
                "end_at": self.end_at, "ttl": self.end_at - time.time(), "envd_version": self.version,
                "token": self.token, "auto_pause": self.auto_pause, "env_vars": self.env_vars, "root": self.root,
                "processes": sorted(self.envd.processes) if self.envd and self.state != "killed" else []}


class Registry:
    """All sandboxes and snapshots of one fake."""

    def __init__(self, root, config):
        self.root, self.config = root, config
        self.sandboxes = {}
        self.snapshots = {}

    def find(self, sandbox_id):
        """The living sandbox of that id, or None."""
        sandbox = self.sandboxes.get(sandbox_id)
        return sandbox if sandbox and sandbox.state in ("running", "paused") else None

    def running(self):
        return [sandbox for sandbox in self.sandboxes.values() if sandbox.state == "running"]

    def busy(self):
        """What counts against the concurrency limit."""
        return sum(sandbox.state in ("running", "creating") for sandbox in self.sandboxes.values())

    async def create(self, template, body, seconds, secure):
        """What was asked for is made, even when who asked is gone before it is done."""
        return await asyncio.shield(asyncio.ensure_future(self._create(template, body, seconds, secure)))

    async def _create(self, template, body, seconds, secure):
        await asyncio.sleep(self.config["create_ms"] / 1000)
        sandbox = Sandbox(self, new_id(), template, body, secure)
        self.sandboxes[sandbox.id] = sandbox
        if template in self.snapshots:
            await copy_tree(self.snapshots[template]["root"], sandbox.root)
        await sandbox.boot(seconds)
        return sandbox

    async def snapshot(self, sandbox, name):
        """A template made of a sandbox's disk."""
        snapshot_id = name or new_id("snap")
        root = os.path.join(self.root, "snapshot-" + new_id(""))
        await copy_tree(sandbox.root, root)
        self.snapshots[snapshot_id] = {"root": root, "sandbox": sandbox.id, "names": [name] if name else []}
        return snapshot_id

    def drop_snapshot(self, snapshot_id):
        snapshot = self.snapshots.pop(snapshot_id, None)
        if snapshot:
            remove_root(snapshot["root"])
        return snapshot is not None

    def knows_template(self, name):
        """Is it one of ours? A name may carry a namespace and a tag."""
        plain = name.rsplit("/", 1)[-1].split(":", 1)[0]
        return name in self.snapshots or plain in self.config["templates"]

    async def clear(self):
        for sandbox in self.sandboxes.values():
            sandbox.kill("reset")
        dead = [sandbox.machine.dead for sandbox in self.sandboxes.values() if sandbox.machine]
        if dead:
            await asyncio.wait(dead)
        for snapshot_id in list(self.snapshots):
            self.drop_snapshot(snapshot_id)
        self.sandboxes.clear()


async def copy_tree(source, target):
    command = ["cp", "-a", "--reflink=auto", source, target]
    await asyncio.get_running_loop().run_in_executor(None, lambda: subprocess.run(command, check=True))


def supports_tokens(version):
    return parse_version(version) >= (0, 2, 0)
