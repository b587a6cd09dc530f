# SPDX-License-Identifier: ISC
"""A session of a fake sandbox: one run of its machine, from boot to stop, with a lifetime that really ends.

Stopping ends every process. The disk becomes a snapshot if the sandbox is persistent, or is gone. A session never comes
back: a resumed sandbox has another one, on a copy of the snapshot.
"""
import asyncio
import os
import time
import traceback

from ..common.machine import PATH, Machine, remove_root
from .api import ApiError, new_id, now_ms, timeout_invalid, without_none
from .errors import SNAPSHOTTING, STOPPED, STOPPING
from .snapshot import copy_disk

RUNNING = ("pending", "running")
ENDED = ("stopped", "failed", "aborted")
INTERACTIVE_PORT = 26661
SUDO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sudo.sh")


class Session:
    """One session; kept after its end. `closing` resolves when its processes are gone, `over` when the stop is done."""

    def __init__(self, sandbox, snapshot):
        self.sandbox, self.config, self.registry = sandbox, sandbox.config, sandbox.registry
        self.id = new_id("sbx_")
        self.profile, self.snapshot = sandbox.profile, snapshot
        self.vcpus, self.memory, self.timeout = sandbox.vcpus, sandbox.memory, sandbox.timeout
        self.network_policy = sandbox.network_policy
        self.status = "pending"
        self.created_at = self.updated_at = now_ms()
        self.started_at = self.requested_stop_at = self.stopped_at = self.snapshotted_at = None
        self.taken = self.reason = None         # the snapshot at the end; why it ended
        self.root = os.path.join(self.registry.root, self.id)
        self.machine = None
        self.commands = {}                      # by id, oldest first
        self.tokens = set()                     # of interactive connections
        loop = asyncio.get_running_loop()
        self.closing, self.over = loop.create_future(), loop.create_future()
        self._clock = None
        self.booting = asyncio.create_task(self._boot())

    # -- beginning ----------------------------------------------------------------------------------------------------

    async def _boot(self):
        """From the image's or the snapshot's disk to a running machine; what goes wrong is a bug, and seen."""
        try:
            await self._start_machine()
        except Exception:
            traceback.print_exc()
            self._end_machine()
            self._finish("failed")

    async def _start_machine(self):
        await asyncio.sleep(self.config["boot_ms"] / 1000)
        if self.snapshot:
            await copy_disk(self.snapshot.root, self.root)
        self._install_sudo()
        machine = await Machine.start(self.root, self.id[4:16].lower(), self.profile.user, self.profile.home)
        await machine.call("make_directories", path=self.profile.cwd, mode=0o755)
        if self.closing.done():     # aborted meanwhile
            machine.kill()
            return
        self.machine = machine
        self.started_at = now_ms()
        self._enter("running")
        self._set_clock()

    def _install_sudo(self):
        """The images have sudo, which cannot work in a machine with one real user: ours is first in PATH."""
        path = os.path.join(self.root, "vercel/bin/sudo")
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        with open(SUDO, "rb") as source, open(path, "wb") as target:
            target.write(source.read())
        os.chmod(path, 0o755)

    def environment(self, extra, sudo=False):
        """What a process gets; `extra` is the request's."""
        user, home = self.profile.user, self.profile.home
        base = {"PATH": "/vercel/bin:" + PATH, "HOME": home, "USER": user, "LOGNAME": user}
        if sudo:
            base.update(HOME="/root", USER="root", LOGNAME="root", SUDO_USER=user)
        return {**base, **self.sandbox.env, **extra}

    # -- the lifetime -------------------------------------------------------------------------------------------------

    def _enter(self, status):
        self.status, self.updated_at = status, now_ms()
        self.sandbox.note_status(self)

    def _set_clock(self):
        if self._clock:
            self._clock.cancel()
        left = (self.started_at + self.timeout) / 1000 - time.time()
        self._clock = asyncio.get_running_loop().call_later(max(left, 0), self.expire)

    def expire(self):
        """The timeout is over."""
        if self.status == "running":
            self.reason = "timeout"
            asyncio.create_task(self.stop())

    def extend(self, duration):
        if self.timeout + duration > self.config["max_timeout_ms"]:
            raise timeout_invalid(self.config)
        self.timeout += duration
        self.updated_at = now_ms()
        self._set_clock()

    async def require_running(self):
        """Let a request through, or answer as its time in the session's life demands."""
        if self.status == "pending":
            await asyncio.wait([self.booting, self.closing], return_when=asyncio.FIRST_COMPLETED)
        if self.status in ENDED:
            raise ApiError(410, *STOPPED)
        if self.status != "running":
            raise ApiError(422, *(SNAPSHOTTING if self.status == "snapshotting" else STOPPING))

    # -- the end ------------------------------------------------------------------------------------------------------

    async def stop(self, expiration=None, explicit=False):
        """Stop, or wait for a stop that is under way. `explicit`: for a snapshot that was asked for."""
        if self.status in RUNNING:
            await asyncio.wait([self.booting])
        if self.status == "running":
            self.reason = self.reason or ("snapshot" if explicit else "stop")
            self.requested_stop_at = now_ms()
            self._enter("snapshotting" if explicit else "stopping")
            asyncio.create_task(self._stop(explicit, expiration))
        await asyncio.shield(self.over)

    async def _stop(self, explicit, expiration):
        self._end_machine()
        await asyncio.sleep(self.config["snapshot_ms" if explicit else "stop_ms"] / 1000)
        if self.over.done():        # aborted meanwhile
            return
        if explicit or (self.sandbox.persistent and not self.sandbox.deleted):
            self.taken = await self.registry.take_snapshot(self, expiration, "manual" if explicit else "auto")
            self.snapshotted_at = self.taken.created_at
        else:
            await asyncio.get_running_loop().run_in_executor(None, remove_root, self.root)
        self._finish("stopped")

    def abort(self, reason):
        """The machine dies: no snapshot, nobody is told."""
        if self.status in ENDED or self.over.done():
            return
        self.reason = reason
        self._end_machine()
        self._finish("aborted")
        asyncio.create_task(self._discard())

    async def _discard(self):
        await asyncio.wait([self.booting])
        await asyncio.get_running_loop().run_in_executor(None, remove_root, self.root)

    def _finish(self, status):
        self.stopped_at = now_ms()
        self._enter(status)
        if not self.over.done():
            self.over.set_result(True)

    def _end_machine(self):
        if self._clock:
            self._clock.cancel()
        if self.machine:
            self.machine.kill()
            self.machine.process.wait()
        if not self.closing.done():
            self.closing.set_result(True)

    # -- showing ------------------------------------------------------------------------------------------------------

    def show(self):
        """The API's Session object."""
        stopped = self.stopped_at if self.status != "aborted" else None
        duration = self.stopped_at and self.stopped_at - (self.started_at or self.stopped_at)
        ended = self.status in ENDED
        return without_none({
            "id": self.id, "memory": self.memory, "vcpus": self.vcpus, "region": self.sandbox.region,
            "runtime": self.sandbox.runtime, "timeout": self.timeout, "status": self.status,
            "requestedAt": self.created_at, "startedAt": self.started_at, "requestedStopAt": self.requested_stop_at,
            "stoppedAt": stopped, "abortedAt": self.stopped_at if self.status == "aborted" else None,
            "duration": duration, "sourceSnapshotId": self.snapshot and self.snapshot.id,
            "snapshottedAt": self.snapshotted_at, "createdAt": self.created_at, "cwd": self.profile.cwd,
            "updatedAt": self.updated_at, "networkPolicy": self.network_policy,
            "interactivePort": INTERACTIVE_PORT if self.sandbox.interactive else None,
            "activeCpuDurationMs": len(self.commands) if ended else None,
            "networkTransfer": {"ingress": 0, "egress": 0} if ended else None,
            "sourceSandboxName": self.sandbox.name, "projectId": self.sandbox.project})
