# SPDX-License-Identifier: ISC
"""filesystem.Filesystem: WatchDir, and the watchers that are polled, over inotify as fsnotify does it.

The directory is opened inside the sandbox and watched from outside through its descriptor.
"""
import asyncio
import ctypes
import os
import posixpath
import struct
import uuid

from ..common.machine import MachineError
from ..common.streams import readable
from . import rpc
from .filesystem_rpc import call, entry_info, path_of
from .process_rpc import keepalive_interval
from .rpc import RpcError, field, without_defaults

LIBC = ctypes.CDLL(None, use_errno=True)
IN_MODIFY, IN_ATTRIB, IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
IN_ISDIR, IN_NONBLOCK = 0x40000000, os.O_NONBLOCK
EVENTS = {IN_CREATE: "EVENT_TYPE_CREATE", IN_MOVED_TO: "EVENT_TYPE_CREATE", IN_MODIFY: "EVENT_TYPE_WRITE",
          IN_DELETE: "EVENT_TYPE_REMOVE", IN_MOVED_FROM: "EVENT_TYPE_RENAME", IN_ATTRIB: "EVENT_TYPE_CHMOD"}
MASK = sum(EVENTS)
WITH_ENTRY = {"EVENT_TYPE_CREATE", "EVENT_TYPE_WRITE", "EVENT_TYPE_CHMOD"}


class Watch:
    """One watched directory; with `recursive` also what is and comes below it."""

    def __init__(self, envd, path, recursive, with_entry):
        self.envd, self.path, self.recursive = envd, path, recursive
        self.with_entry = with_entry and envd.version >= (0, 6, 3)
        self.fd = LIBC.inotify_init1(IN_NONBLOCK | os.O_CLOEXEC)
        self.names = {}

    @classmethod
    async def open(cls, envd, exchange, message):
        path = path_of(envd, exchange, message)
        await check_directory(envd, path)
        watch = cls(envd, path, field(message, "recursive", bool, False), field(message, "includeEntry", bool, False))
        await watch.add("")
        return watch

    async def add(self, name):
        """Watch the directory `name` below the path, and with recursive what it holds."""
        full = posixpath.join(self.path, name)
        try:
            _, (fd,) = await self.envd.machine.call("open", path=full, how="path")
            below = await call(self.envd, "walk", path=full, depth=1) if self.recursive else []
        except MachineError:
            return
        number = LIBC.inotify_add_watch(self.fd, f"/proc/self/fd/{fd}".encode(), MASK)
        os.close(fd)
        self.names[number] = name
        for entry in below:
            if entry["kind"] == "dir":
                await self.add(posixpath.join(name, entry["name"]))

    async def events(self):
        """The next FilesystemEvents, waiting for at least one."""
        found = []
        while not found:
            await readable(self.fd)
            found = await self.take()
        return found

    async def take(self):
        """The FilesystemEvents that have happened so far."""
        try:
            data = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return []
        found = []
        while data:
            number, mask, _, size = struct.unpack_from("iIII", data)
            name = data[16:16 + size].rstrip(b"\0").decode("utf-8", "replace")
            data = data[16 + size:]
            if name and number in self.names:
                found += await self._event(posixpath.join(self.names[number], name), mask)
        return found

    async def _event(self, name, mask):
        if self.recursive and mask & IN_ISDIR and mask & (IN_CREATE | IN_MOVED_TO):
            await self.add(name)
        events = []
        for bit, kind in EVENTS.items():
            if mask & bit:
                event = {"name": name, "type": kind}
                if self.with_entry and kind in WITH_ENTRY:
                    event["entry"] = await self._entry(name)
                events.append(without_defaults(event))
        return events

    async def _entry(self, name):
        try:
            return await entry_info(self.envd, posixpath.join(self.path, name))
        except RpcError:
            return None

    def close(self):
        os.close(self.fd)


async def check_directory(envd, path):
    try:
        info = await call(envd, "status", path=path)
    except MachineError as error:
        if error.errno_name == "ENOENT":
            raise RpcError("not_found", f"path {path} not found: stat {path}: no such file or directory") from None
        raise RpcError("internal", f"error statting path {path}: {error.text.lower()}") from None
    if info["kind"] != "dir":
        raise RpcError("invalid_argument", f"path {path} not a directory: %!w(<nil>)")      # sic


async def watch_dir(envd, exchange, message):
    watch = await Watch.open(envd, exchange, message)
    stream, gone = rpc.Stream(exchange), exchange.closed
    try:
        await stream.send({"start": {}})
        while not gone.done():
            events = asyncio.ensure_future(watch.events())
            done, _ = await asyncio.wait([events, gone], timeout=keepalive_interval(exchange),
                                         return_when=asyncio.FIRST_COMPLETED)
            if events not in done:
                events.cancel()
                await asyncio.gather(events, return_exceptions=True)
            if not done:
                await stream.send({"keepalive": {}})
            for event in events.result() if events in done else []:
                await stream.send({"filesystem": event})
    finally:
        watch.close()


async def create_watcher(envd, exchange, message):
    watch = await Watch.open(envd, exchange, message)
    watcher_id = uuid.uuid4().hex
    envd.watchers[watcher_id] = watch
    return {"watcherId": watcher_id}


def watcher_of(envd, message):
    watcher_id = field(message, "watcherId", str, "")
    if watcher_id not in envd.watchers:
        raise RpcError("not_found", f"watcher with id {watcher_id} not found")
    return watcher_id


async def get_watcher_events(envd, _, message):
    return without_defaults({"events": await envd.watchers[watcher_of(envd, message)].take()})


async def remove_watcher(envd, _, message):
    envd.watchers.pop(watcher_of(envd, message)).close()
    return {}


SERVER_STREAM = {"WatchDir": watch_dir}
UNARY = {"CreateWatcher": create_watcher, "GetWatcherEvents": get_watcher_events, "RemoveWatcher": remove_watcher}
