# SPDX-License-Identifier: ISC
"""A command of a session: its process, its log from the first byte on, its end.

A log is text. What a process writes that is no UTF-8 becomes U+FFFD, which nobody can turn back; stdout and stderr are
two pipes, so their order is approximate. The log is kept as long as the session lives and costs the process no waiting.
"""
import asyncio
import codecs
import json
import os
import signal

from ..common.machine import MachineError
from ..common.streams import read_some
from .api import new_id, now_ms, without_none

CHUNK = 32 << 10


def encode_line(value, escaped=False):
    """One line of application/x-ndjson; what is not ASCII as it is, or escaped."""
    return json.dumps(value, ensure_ascii=escaped, separators=(",", ":")).encode() + b"\n"


class Command:
    """One started command. `changed` resolves, and is replaced, with every new line and with the end."""

    def __init__(self, session, spawned, request):
        self.session, self.config, self.spawned = session, session.config, spawned
        self.id = new_id("cmd_")
        self.name, self.arguments, self.cwd = request.name, request.arguments, request.cwd
        self.started_at = now_ms()
        self.exit_code = self.duration = None
        self.lines = []
        self.changed = asyncio.get_running_loop().create_future()
        self._limit = request.timeout and asyncio.get_running_loop().call_later(
            request.timeout / 1000, lambda: asyncio.create_task(self.signal(signal.SIGKILL)))
        self._life = asyncio.create_task(self._live())

    @property
    def ended(self):
        return self.exit_code is not None

    def show(self):
        """The API's Command object."""
        return {"id": self.id, "name": self.name, "args": self.arguments, "cwd": self.cwd, "sessionId": self.session.id,
                "exitCode": self.exit_code, "startedAt": self.started_at,
                **without_none({"durationMs": self.duration})}

    def _note_change(self):
        changed, self.changed = self.changed, asyncio.get_running_loop().create_future()
        changed.set_result(True)

    # -- output -------------------------------------------------------------------------------------------------------

    def _decoder(self):
        """From bytes to the log's text: a character in two reads is kept, or damaged as well (`utf8` "chunk")."""
        if self.config["utf8"] == "chunk":
            return lambda data, _: data.decode("utf-8", "replace")
        return codecs.getincrementaldecoder("utf-8")("replace").decode

    def _log(self, stream, text):
        if text:
            self.lines.append(encode_line({"stream": stream, "data": text}, self.config["json_escapes"]))
            self._note_change()

    async def _pump(self, fd, stream, decode):
        while data := await read_some(fd, CHUNK):
            self._log(stream, decode(data, False))
            await asyncio.sleep(0)

    async def _live(self):
        """To the end of the process and, unless `command_end` says otherwise, of everyone who has its output."""
        outputs = [(fd, stream, self._decoder()) for fd, stream in (
            (self.spawned.stdout, "stdout"), (self.spawned.stderr, "stderr"))]
        pumps = [asyncio.create_task(self._pump(*output)) for output in outputs]
        status = await self.spawned.exited
        if self.config["command_end"] == "leader":
            for pump in pumps:
                pump.cancel()
        await asyncio.wait(pumps)
        for fd, stream, decode in outputs:
            self._drain(fd, stream, decode)
            self._log(stream, decode(b"", True))
            os.close(fd)
        if self.spawned.stdin >= 0:
            os.close(self.spawned.stdin)
        if self._limit:
            self._limit.cancel()
        # What the end of the machine took with it has no exit code.
        if not self.session.closing.done():
            self.duration = now_ms() - self.started_at
            self.exit_code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            self._note_change()

    def _drain(self, fd, stream, decode):
        """What is in the pipe this moment."""
        try:
            while data := os.read(fd, CHUNK):
                self._log(stream, decode(data, False))
        except OSError:
            pass

    # -- signals ------------------------------------------------------------------------------------------------------

    async def signal(self, number):
        """To the process, or to its group (`kill_scope`); one that is gone does not matter."""
        group = self.config["kill_scope"] == "group" and self.config["own_group"]
        if self.spawned.exited.done() and not group:    # its number may be another's by now
            return
        try:
            await self.session.machine.signal(-self.spawned.pid if group else self.spawned.pid, number)
        except MachineError as error:
            if error.errno_name not in ("ESRCH", "ESHUTDOWN"):
                raise
