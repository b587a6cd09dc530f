# SPDX-License-Identifier: ISC
"""A process of a fake sandbox as envd keeps it: reads of at most 32 KiB, fan-out to subscribers, stdin, its end.

The rules (envd 0.6.13, services/process/handler): output that nobody subscribes to is read and thrown away; a
subscriber that does not take its events stalls all the others and finally the program; the end comes only when
stdout and stderr are at their end, unless TERM or KILL was sent through the API, after which the leader's exit is
enough and what is still in the pipes is lost.
"""
import asyncio
import os
import signal

from ..common.streams import read_some, write_all

STD_CHUNK, PTY_CHUNK = 32 << 10, 16 << 10
FANOUT_BUFFER = 64
DATA_END, CLOSED = object(), object()


class Subscriber:
    """One stream's view of a process: a queue of one event, so that a slow stream is felt by the program."""

    def __init__(self, owner):
        self.owner = owner
        self.queue = asyncio.Queue(1)
        self.cancelled = False

    async def put(self, event):
        if not self.cancelled:
            await self.queue.put(event)

    def interrupt(self, event):
        """Make the stream's next event `event`, dropping what it has not taken; nothing if it has ended."""
        if not self.cancelled:
            self.cancel()
            self.queue.put_nowait(event)

    def cancel(self):
        self.cancelled = True
        if self in self.owner.subscribers:
            self.owner.subscribers.remove(self)
        while not self.queue.empty():
            self.queue.get_nowait()


class Process:
    """One started process."""

    def __init__(self, spawned, config, tag, on_end):
        self.spawned = spawned
        self.pid = spawned.pid
        self.config = config
        self.tag = tag
        self.on_end = on_end
        self.subscribers = []
        self.end = asyncio.get_running_loop().create_future()
        self.cancel_output = asyncio.Event()
        self.stdin_lock = asyncio.Lock()
        self.deadline = None
        self._source = asyncio.Queue(FANOUT_BUFFER)
        self._tasks = [asyncio.create_task(self._fan_out()), asyncio.create_task(self._live())]

    def subscribe(self):
        subscriber = Subscriber(self)
        self.subscribers.append(subscriber)
        return subscriber

    # -- output -----------------------------------------------------------------------------------------------------

    async def _pump(self, fd, kind, limit):
        while True:
            data = await read_some(fd, limit)
            if not data:
                return
            if any(not subscriber.cancelled for subscriber in self.subscribers):
                await self._source.put((kind, data))

    async def _fan_out(self):
        while True:
            event = await self._source.get()
            for subscriber in list(self.subscribers):
                await subscriber.put(event)
            if event is DATA_END:
                return

    def _streams(self):
        if self.spawned.pty >= 0:
            return [(self.spawned.pty, "pty", PTY_CHUNK)]
        return [(self.spawned.stdout, "stdout", STD_CHUNK), (self.spawned.stderr, "stderr", STD_CHUNK)]

    async def _live(self):
        """From start to end: pump, wait for the exit, tell it, close everything."""
        pumps = [asyncio.create_task(self._pump(*stream)) for stream in self._streams()]
        output = asyncio.create_task(asyncio.wait(pumps))
        cancelled = asyncio.create_task(self.cancel_output.wait())
        await asyncio.wait([output, cancelled], return_when=asyncio.FIRST_COMPLETED)
        status = await self.spawned.exited
        for task in (*pumps, output, cancelled):
            task.cancel()
        await asyncio.wait([*pumps, output, cancelled])
        if self.deadline:
            self.deadline.cancel()
        for fd, _, _ in self._streams():
            os.close(fd)
        if self.stdin_open() and not self.stdin_lock.locked():
            self._close_stdin()
        self.end.set_result(end_event(status))
        self.on_end(self)
        await self._source.put(DATA_END)

    # -- input ------------------------------------------------------------------------------------------------------

    def stdin_open(self):
        return self.spawned.stdin >= 0

    def _close_stdin(self):
        os.close(self.spawned.stdin)
        self.spawned.stdin = -1

    async def write_stdin(self, data):
        """Blocks while the pipe is full, holding the lock that later writes and the close queue behind."""
        async with self.stdin_lock:
            if not self.stdin_open():
                raise BrokenPipeError("stdin not enabled or closed")
            try:
                await write_all(self.spawned.stdin, data)
            except OSError as error:
                raise BrokenPipeError(f"error writing to stdin of process '{self.pid}': write |1: "
                                      f"{os.strerror(error.errno).lower()}") from None
            finally:
                if self.end.done():
                    self._close_stdin()

    async def close_stdin(self):
        async with self.stdin_lock:
            if self.stdin_open():
                self._close_stdin()

    async def write_pty(self, data):
        if self.end.done():
            raise BrokenPipeError("write /dev/ptmx: file already closed")
        await write_all(self.spawned.pty, data)


def end_event(status):
    """The `end` message for a wait status: as Go's os.ProcessState tells it, defaults left out."""
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        text = f"exit status {code}"
        return {"exited": True, "status": text, **({"exitCode": code, "error": text} if code else {})}
    text = "signal: " + (signal.strsignal(os.WTERMSIG(status)) or "unknown").lower()
    if os.WCOREDUMP(status):
        text += " (core dumped)"
    return {"exitCode": -1, "status": text, "error": text}
