# SPDX-License-Identifier: ISC
"""The sandboxes of a fake Daytona: their machines, the state machine, idle time.

A sandbox has a state and a desired one; while they differ something is under way and most calls are refused. Stopping
ends every process and keeps the disk. Idle time is counted from the last request through the proxy.
"""
import asyncio
import os
import time
import uuid

from ..common.machine import Machine, remove_root
from .api import iso
from .daemon import HOME, Daemon

USER = "daytona"
ORGANIZATION = "4e6f0000-0000-4000-8000-000000000001"
SETTLED = ("started", "stopped", "archived", "destroyed", "error", "build_failed")


class Sandbox:
    """One sandbox, from its creation on; kept after its end so that tests can ask what became of it."""

    def __init__(self, registry, body):
        self.registry, self.config = registry, registry.config
        self.id = str(uuid.uuid4())
        self.name = body.get("name") or self.id
        build = body.get("buildInfo")
        self.build = build and {"dockerfileContent": build.get("dockerfileContent", ""),
                                "contextHashes": build.get("contextHashes", [])}
        self.snapshot = None if build else body.get("snapshot") or self.config["default_snapshot"]
        self.user = body.get("user") or USER
        self.env, self.labels = body.get("env") or {}, body.get("labels") or {}
        self.public, self.target = body.get("public", False), body.get("target") or self.config["default_target"]
        self.cpu, self.gpu = body.get("cpu") or 1, body.get("gpu") or 0
        self.memory, self.disk = body.get("memory") or 1, body.get("disk") or 3
        self.options = {name: body[name] for name in ("networkAllowList", "domainAllowList", "volumes") if name in body}
        self.network_block_all = body.get("networkBlockAll", False)
        self.auto_stop = body.get("autoStopInterval", 15)
        self.auto_archive = body.get("autoArchiveInterval", 7 * 24 * 60)
        self.auto_delete = body.get("autoDeleteInterval", -1)
        self.state = "pending_build" if build else "creating"
        self.desired, self.error, self.ended = "started", None, None
        self.created_at = self.updated_at = self.last_activity = time.time()
        self.stopped_at = self.destroyed_at = None
        self.root = os.path.join(registry.root, self.id)
        self.machine = self.daemon = None
        self.exchanges = set()
        self.held_polls = 0
        self.shown_before = self.state
        self.changed = asyncio.Event()
        self._clock = None
        self._change = asyncio.create_task(self._boot(self.config["build_ms"] if build else self.config["create_ms"]))

    # -- changing state -----------------------------------------------------------------------------------------------

    def _enter(self, state):
        self.shown_before, self.state = self.state, state
        self.updated_at = time.time()
        if state in SETTLED:
            self.held_polls = self.config["held_polls"]
            self.changed.set()
        else:
            self.changed.clear()
        self._set_clock()

    def begin(self, desired, state, change):
        """Set out for another state: `change` is the coroutine that gets there."""
        self.desired = desired
        self._enter(state)
        self._change = asyncio.create_task(change)

    async def settled(self, seconds):
        """Wait, at most so long, until nothing is under way."""
        try:
            await asyncio.wait_for(self.changed.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    async def _boot(self, milliseconds):
        await asyncio.sleep(milliseconds / 1000)
        if self.state == "pending_build":
            if self.config["build_fails"]:
                self.error = self.config["build_fails"]
                self._enter("build_failed")
                return
            self._enter("creating")
        if self.config["start_fails"]:
            self.error = self.config["start_fails"]
            self._enter("error")
            return
        machine = await Machine.start(self.root, self.id[:12], USER)
        if self.desired != "started":
            machine.kill()
            return
        await machine.call("make_directories", path=HOME + "/.daytona", mode=0o755)
        self.machine = machine
        self.daemon = Daemon(machine, self.root, self.config, self._environment())
        self.last_activity = time.time()
        self._enter("started")

    def _environment(self):
        return {"HOSTNAME": self.id[:12], "DAYTONA_SANDBOX_ID": self.id, "DAYTONA_SANDBOX_USER": self.user,
                "DAYTONA_SANDBOX_SNAPSHOT": self.snapshot or "", **self.env}

    def start(self):
        self.begin("started", "starting", self._boot(self.config["start_ms"]))

    def stop(self):
        """Asynchronous; one with an auto-delete interval of 0 is destroyed by it."""
        if self.auto_delete == 0:
            self.destroy("ephemeral")
        else:
            self.begin("stopped", "stopping", self._stop())

    async def _stop(self):
        await asyncio.sleep(self.config["stop_ms"] / 1000)
        self._end_machine()
        self.stopped_at = time.time()
        self._enter("stopped")

    def archive(self):
        self.begin("archived", "archiving", self._archive())

    async def _archive(self):
        await asyncio.sleep(self.config["stop_ms"] / 1000)
        self._enter("archived")

    def destroy(self, reason):
        """Asynchronous too, but the name is free at once."""
        self.name, self.ended = f"DESTROYED_{self.name}_{int(time.time() * 1000)}", reason
        self._change.cancel()
        self.begin("destroyed", "destroying", self._destroy(self.config["destroy_ms"]))

    async def _destroy(self, milliseconds):
        await asyncio.sleep(milliseconds / 1000)
        self._end_machine()
        self.destroyed_at = time.time()
        self._enter("destroyed")
        await asyncio.get_running_loop().run_in_executor(None, remove_root, self.root)

    def kill(self, reason):
        """End it this moment (for the control endpoint)."""
        if self.state == "destroyed":
            return
        self.ended = reason
        self._change.cancel()
        self.desired = "destroyed"
        self._end_machine()
        self.destroyed_at = time.time()
        self._enter("destroyed")
        asyncio.get_running_loop().run_in_executor(None, remove_root, self.root)

    def _end_machine(self):
        """Every process ends; what is being answered is cut off, what is not yet gets the proxy's 502."""
        for exchange in list(self.exchanges):
            if exchange.response is not None and not exchange.finished:
                exchange.cut("fin")
        if self.daemon:
            self.daemon.close()
        if self.machine:
            self.machine.kill()
            self.machine.process.wait()
        self.machine = self.daemon = None

    # -- idle time ----------------------------------------------------------------------------------------------------

    def touch(self):
        """Somebody used it: the idle time begins again."""
        self.last_activity = time.time()
        self._set_clock()

    def _set_clock(self):
        """Have the next thing happen that time brings: the auto-stop of a started, the auto-delete of a stopped one."""
        if self._clock:
            self._clock.cancel()
            self._clock = None
        minute = self.config["minute_s"]
        if self.state == "started" and self.auto_stop > 0:
            self._clock = self._at(self.last_activity + self.auto_stop * minute, self._idle)
        elif self.state == "stopped" and self.auto_delete > 0:
            self._clock = self._at(self.stopped_at + self.auto_delete * minute, lambda: self.destroy("auto-delete"))

    @staticmethod
    def _at(moment, function):
        return asyncio.get_running_loop().call_later(max(moment - time.time(), 0), function)

    def _idle(self):
        """The interval is over; a request or WebSocket that is still open counts as use (processes do not)."""
        if any(exchange.counts_as_use for exchange in self.exchanges):
            self.touch()
        else:
            self.expire()

    def expire(self):
        """Auto-stop."""
        if self.state == "started":
            self.ended = "auto-stop"
            self.stop()

    def set_interval(self, name, minutes):
        setattr(self, name, minutes)
        self._set_clock()

    # -- showing ------------------------------------------------------------------------------------------------------

    def visible_state(self):
        """What a GET tells: the `held_polls` setting keeps the former state for so many of them."""
        if self.held_polls > 0:
            self.held_polls -= 1
            return self.shown_before
        return self.state

    def show(self, state=None, toolbox_url=None):
        """The API's Sandbox object."""
        shown = {
            "id": self.id, "organizationId": ORGANIZATION, "name": self.name, "user": self.user, "env": self.env,
            "labels": self.labels, "public": self.public, "networkBlockAll": self.network_block_all,
            "target": self.target, "cpu": self.cpu, "gpu": self.gpu, "memory": self.memory, "disk": self.disk,
            "state": state or self.state, "desiredState": self.desired, "backupState": "None",
            "autoStopInterval": self.auto_stop, "autoArchiveInterval": self.auto_archive,
            "autoDeleteInterval": self.auto_delete, "createdAt": iso(self.created_at),
            "updatedAt": iso(self.updated_at), "lastActivityAt": iso(self.last_activity), "sandboxClass": "container",
            "daemonVersion": self.config["daemon_version"], "runnerId": "runner-1", **self.options,
        }
        optional = {"snapshot": self.snapshot, "buildInfo": self.build, "errorReason": self.error,
                    "toolboxProxyUrl": toolbox_url}
        shown.update({name: value for name, value in optional.items() if value is not None})
        if self.error:
            shown["recoverable"] = False
        return shown

    def report(self):
        """For GET /_fake/sandboxes."""
        daemon = self.daemon
        return {**self.show(), "ended": self.ended, "root": self.root, "idle": time.time() - self.last_activity,
                "open_requests": len(self.exchanges), "sessions": sorted(daemon.sessions) if daemon else [],
                "ptys": sorted(daemon.ptys) if daemon else []}


class Registry:
    """All sandboxes of one fake."""

    def __init__(self, root, config):
        self.root, self.config = root, config
        self.sandboxes = {}

    def create(self, body):
        sandbox = Sandbox(self, body)
        self.sandboxes[sandbox.id] = sandbox
        return sandbox

    def find(self, text):
        """By id, then by name; None for what is destroyed or never was."""
        known = self.sandboxes.get(text)
        if known and known.state != "destroyed":
            return known
        return next((sandbox for sandbox in self.living() if sandbox.name == text), None)

    def living(self):
        return [sandbox for sandbox in self.sandboxes.values() if sandbox.desired != "destroyed"]

    def used(self, resource):
        """How much of a quota is taken: by all that run, and of the disk also by those that are stopped."""
        states = ("stopped",) if resource == "disk" else ()
        return sum(getattr(sandbox, resource) for sandbox in self.living()
                   if sandbox.desired == "started" and not sandbox.error or sandbox.state in states)

    async def clear(self):
        machines = [sandbox.machine for sandbox in self.sandboxes.values() if sandbox.machine]
        for sandbox in self.sandboxes.values():
            sandbox.kill("reset")
        if machines:
            await asyncio.wait([machine.dead for machine in machines])
        self.sandboxes.clear()
