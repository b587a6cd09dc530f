# SPDX-License-Identifier: ISC
"""A terminal as the daemon keeps it: one shell, any number of clients, no history, no back-pressure on output.

The rules (daemon 0.190): each client has a queue of 256 chunks; whoever is that far behind is dropped with 1008. A
write that takes ten seconds breaks its client silently. The end of the shell closes every client at once, and what was
still queued is lost (the `pty_tail` setting: race, lost, kept).
"""
import asyncio
import fcntl
import json
import os
import signal
import struct
import termios
import time

from ..common.exchange import Dropped
from ..common.streams import read_some, write_all
from .wire import rfc3339

CHUNK = 32 << 10
QUEUED_CHUNKS, QUEUED_INPUTS = 256, 1024
WRITE_WAIT = 10.0
HELD_BACK = 0.2     # seconds of quiet after which pty_tail "lost" lets the newest chunk go
NORMAL, INTERNAL_ERROR, POLICY_VIOLATION = 1000, 1011, 1008
KILLED = 137
REASONS = {130: "Ctrl+C", KILLED: "SIGKILL", 143: "SIGTERM"}


def exit_reason(code):
    """The daemon's words for an exit status; none for success."""
    if code == 0:
        return None
    return REASONS.get(code) or (f"signal {code - 128}" if code > 128 else "non-zero exit")


class Client:
    """One WebSocket of a terminal. `ended` resolves when we have closed it."""

    def __init__(self, socket, wants_exit, tail):
        self.socket, self.wants_exit, self.tail = socket, wants_exit, tail
        self.queue = asyncio.Queue(QUEUED_CHUNKS)
        self.ended = asyncio.get_running_loop().create_future()
        self.has_sent = asyncio.Event()
        self.broken = self.leaving = False
        self.writer = asyncio.create_task(self._write())

    async def _write(self):
        while True:
            data = await self.queue.get()
            if self.tail == "lost":
                await self._hold_back()
            deadline = asyncio.get_running_loop().call_later(WRITE_WAIT, self._give_up)
            try:
                await self.socket.send(data)
            except (Dropped, ConnectionError):
                self.broken = True
                return
            finally:
                deadline.cancel()
                self.queue.task_done()
            self.has_sent.set()

    def _give_up(self):
        """The write deadline: nothing more is written, nobody is told."""
        self.broken = True
        self.writer.cancel()

    async def _hold_back(self):
        """Wait for a newer chunk, or for quiet: a terminal that ends now takes this chunk with it."""
        waited = 0.0
        while self.queue.empty() and waited < HELD_BACK:
            await asyncio.sleep(0.01)
            waited += 0.01

    async def flush(self):
        """Wait until everything queued is sent (or cannot be)."""
        empty = asyncio.create_task(self.queue.join())
        await asyncio.wait([empty, self.writer], return_when=asyncio.FIRST_COMPLETED)
        empty.cancel()

    async def drop(self):
        """Too slow: 1008, if a frame can still be written within ten seconds, else just the end."""
        if self.leaving:
            return
        self.leaving = True
        try:
            if self.broken:
                raise Dropped
            await asyncio.wait_for(self.socket.send_close(POLICY_VIOLATION, "slow consumer"), WRITE_WAIT)
        except (asyncio.TimeoutError, Dropped, ConnectionError):
            self.abort()
        self.end()

    def abort(self):
        """Close the connection with what the kernel has of it: the last frame may be cut."""
        exchange = self.socket.exchange
        exchange.finished, exchange.entry["ended"] = True, "abort"
        if exchange.request.transport:
            exchange.request.transport.abort()

    async def close(self, code, reason):
        """The end of the terminal: perhaps a control message, then the close frame."""
        if self.leaving:
            return
        self.leaving = True
        if self.tail != "kept":
            self.writer.cancel()
        try:
            if self.wants_exit:
                await self.socket.send_text(json.dumps({"type": "control", "status": "exited", **reason}))
            text = json.dumps(reason, separators=(",", ":"))
            await asyncio.wait_for(self.socket.send_close(code, text), WRITE_WAIT)
        except (asyncio.TimeoutError, Dropped, ConnectionError):
            self.abort()
        self.end()

    def end(self):
        self.leaving = True
        self.writer.cancel()
        if not self.ended.done():
            self.ended.set_result(True)


class Terminal:
    """A pty session."""

    def __init__(self, daemon, name, cwd, envs, cols, rows, lazy):
        self.daemon, self.name, self.cwd, self.envs = daemon, name, cwd, envs
        self.cols, self.rows, self.lazy = cols, rows, lazy
        self.created = time.time_ns()
        self.started = self.active = False
        self.clients = []
        self.spawned = None
        self.inputs = asyncio.Queue(QUEUED_INPUTS)
        self.tasks = []
        self._closing = None

    def info(self):
        return {"id": self.name, "cwd": self.cwd, "envs": dict(sorted(self.envs.items())), "cols": self.cols,
                "rows": self.rows, "createdAt": rfc3339(self.created), "active": self.active, "lazyStart": self.lazy}

    async def start(self):
        """Run the shell: interactive and a login shell."""
        self.started = True
        self.spawned = await self.daemon.machine.spawn(
            [self.daemon.shell(), "-i", "-l"], {**self.daemon.env, **self.envs}, self.cwd, pty=(self.rows, self.cols))
        self.active = True
        self.tasks = [asyncio.create_task(task) for task in (self._read(), self._write(), self._wait())]

    # -- clients ------------------------------------------------------------------------------------------------------

    def attach(self, socket, wants_exit, fault):
        """A new client: it gets what comes from now on."""
        tail = fault[len("tail_"):] if fault and fault.startswith("tail_") else self.daemon.config["pty_tail"]
        client = Client(socket, wants_exit, tail)
        self.clients.append(client)
        return client

    def detach(self, client):
        if client in self.clients:
            self.clients.remove(client)
        client.end()

    async def feed(self, data):
        """Input; waits while 1024 messages are queued, and with it the reading of that client's socket."""
        await self.inputs.put(data)

    def _broadcast(self, data):
        for client in self.clients:
            try:
                client.queue.put_nowait(data)
            except asyncio.QueueFull:
                asyncio.create_task(client.drop())

    async def _close_clients(self, code):
        reason = exit_reason(code)
        message = {"exitCode": code, **({"exitReason": reason} if reason else {})}
        clients, self.clients = self.clients, []
        if clients:
            await asyncio.wait([asyncio.create_task(client.close(NORMAL if code == 0 else INTERNAL_ERROR, message))
                                for client in clients])

    # -- the shell ----------------------------------------------------------------------------------------------------

    async def _read(self):
        """Output to whoever is attached, at the program's pace; it goes on for those that outlive the shell."""
        while data := await read_some(self.spawned.pty, CHUNK):
            self._broadcast(data)
            await asyncio.sleep(0)

    async def _write(self):
        while True:
            data = await self.inputs.get()
            try:
                await write_all(self.spawned.pty, data)
            except OSError:
                return

    async def _wait(self):
        """The end of the shell: the session is gone, its clients are told, output that is left is thrown away."""
        status = await self.spawned.exited
        self.active = False
        if any(client.tail == "kept" for client in self.clients):
            await self._keep_tail()
        if self.daemon.ptys.get(self.name) is self:
            del self.daemon.ptys[self.name]
        await self._close_clients(os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1)
        await asyncio.wait(self.tasks[:1])
        self.forget()

    async def _keep_tail(self):
        """pty_tail "kept": all that the shell wrote reaches the clients before the close."""
        self.tasks[0].cancel()
        await asyncio.wait(self.tasks[:1])
        while True:
            try:
                data = os.read(self.spawned.pty, CHUNK)
            except OSError:     # nothing there, or the end
                break
            self._broadcast(data)
        for client in self.clients:
            if client.tail == "kept":
                await client.flush()

    def resize(self, cols, rows):
        if not self.active:
            raise OSError("cannot resize inactive PTY session")
        self.cols, self.rows = cols, rows
        fcntl.ioctl(self.spawned.pty, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    async def kill(self):
        """DELETE: the descendants, then the shell, with SIGKILL; the clients get its code."""
        if self.active:
            self.active = False
            _, pids = await self.daemon.descendants(self.spawned.pid)
            await self.daemon.signal([*pids, self.spawned.pid], signal.SIGKILL)
            for task in self.tasks:
                task.cancel()
        await self._close_clients(KILLED)
        self.forget()

    def forget(self):
        """Let go of the terminal, without a word to anyone."""
        self.active = False
        for client in list(self.clients):
            self.detach(client)
        if self.spawned and self._closing is None:
            self._closing = asyncio.create_task(self._close())

    async def _close(self):
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)      # none may still have the descriptor in the event loop
        os.close(self.spawned.pty)
