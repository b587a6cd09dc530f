# SPDX-License-Identifier: ISC
"""The interactive endpoint: a process on a terminal, over a WebSocket of its own with a token in its query.

The client's first message says what to run; then its binary messages are input and its text messages resize. Ours are
binary output and, before a normal close, one text with the exit code. There is no end of input, no signal and no coming
back; what becomes of the process when the connection drops nobody has said (`on_drop`).
"""
import asyncio
import fcntl
import json
import os
import secrets
import struct
import termios
from dataclasses import dataclass

from ..common.exchange import Dropped
from ..common.machine import MachineError
from ..common.streams import read_some, write_all
from ..common.websocket import NORMAL, TEXT, ReceiveEnd, WebSocket
from .api import JSON, bad_request, error_body

PATH = "/ws/interactive"
CHUNK = 32 << 10
LARGEST_MESSAGE = 1 << 20
POLICY_VIOLATION = 1008
NOT_FOUND = 127
SILENCE = 0.2       # seconds


async def connect_info(session, exchange):
    """A URL and a token, which is good until the session ends."""
    await exchange.read()
    if not session.sandbox.interactive:
        raise bad_request("This sandbox has no interactive port.")
    token = secrets.token_hex(32)
    session.tokens.add(token)
    host = exchange.request.headers.get("Host", "localhost")
    await exchange.send_json(200, {"url": f"ws://{host}{PATH}", "token": token}, JSON)


async def health(exchange):
    await exchange.send(200, b"ok\n", {"Content-Type": "text/plain; charset=utf-8"})


@dataclass
class Start:
    """The client's first message."""
    argv: list
    env: dict
    cwd: str
    size: tuple     # rows, columns


def parse_start(data, session):
    """A Start, or ValueError."""
    message = json.loads(data)
    if not isinstance(message, dict) or message.get("type") != "start":
        raise ValueError("the first message must be of the type start")
    command, arguments, env = message.get("command"), message.get("args", []), message.get("env", [])
    texts = [command, *arguments, *env]
    if not command or not all(isinstance(text, str) for text in texts):
        raise ValueError("command, args and env must be texts")
    if not all("=" in text for text in env):
        raise ValueError("env must be of the form NAME=VALUE")
    rows, cols = int(message.get("rows") or 24), int(message.get("cols") or 80)
    return Start([command, *arguments], dict(text.split("=", 1) for text in env),
                 message.get("cwd") or session.profile.cwd, (rows & 0xffff, cols & 0xffff))


def session_of(registry, request):
    """Whose token it is that a handshake brings; None if it is nobody's."""
    token = request.query.get("token")
    return next((session for session in registry.sessions.values() if token in session.tokens), None)


async def serve(registry, exchange):
    """The WebSocket itself."""
    session = session_of(registry, exchange.request)
    if session is None or session.status != "running":
        await exchange.send_json(401, error_body("unauthorized", "Invalid token"), JSON)
        return
    socket = await WebSocket.accept(exchange, limit=LARGEST_MESSAGE)
    try:
        _, data = await first_of(session, exchange, socket.receive())
        start = parse_start(data, session)
    except ReceiveEnd:
        await socket.finish()
        return
    except (ValueError, TypeError) as error:
        await socket.send_close(POLICY_VIOLATION, str(error)[:100])
        await socket.finish()
        return
    await Terminal(session, exchange, socket, start).run()


async def first_of(session, exchange, waiting):
    """The result of a coroutine, unless the session ends first: then the connection just ends."""
    task = asyncio.ensure_future(waiting)
    try:
        await asyncio.wait([task, session.closing], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            exchange.cut("fin")
            raise Dropped
        return task.result()
    finally:
        task.cancel()


class Terminal:
    """One process and its one client."""

    def __init__(self, session, exchange, socket, start):
        self.session, self.exchange, self.socket, self.start = session, exchange, socket, start
        self.spawned = None
        self.chunks = 0         # how many were read from the terminal
        self.gone = False       # the client is

    async def run(self):
        start = self.start
        try:
            self.spawned = await self.session.machine.spawn(
                start.argv, self.session.environment(start.env), start.cwd, pty=start.size, search=True)
        except MachineError as error:
            if error.errno_name == "ESHUTDOWN":
                self.exchange.cut("fin")
                return
            await self.socket.send(f"{start.argv[0]}: {error.text}\r\n".encode())
            await self._say_exit(NOT_FOUND)
            return
        output, receiving = asyncio.create_task(self._output()), asyncio.create_task(self._receive())
        ended = asyncio.create_task(self._wait_end())
        try:
            await asyncio.wait([ended, receiving, self.session.closing], return_when=asyncio.FIRST_COMPLETED)
            await self._finish(ended, output)
        finally:
            asyncio.create_task(self._release(output, receiving, ended))

    async def _wait_end(self):
        """The exit status of the process, which may leave others behind on the terminal."""
        return await asyncio.shield(self.spawned.exited)

    async def _finish(self, ended, output):
        """The process has ended, or the client has left, or the session is over (and nobody is told)."""
        if self.session.closing.done():
            self.exchange.cut("fin")
        elif ended.done():
            if self.session.config["pty_tail"] == "kept":
                await self._drain(output)
            output.cancel()
            status = ended.result()
            await self._say_exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
        else:
            await self.socket.finish()

    async def _say_exit(self, code):
        await self.socket.send_text(json.dumps({"type": "exit", "code": code}))
        await self.socket.send_close(NORMAL)
        await self.socket.finish()

    async def _output(self):
        """At the client's pace: a terminal that nobody reads stops its writer."""
        while data := await read_some(self.spawned.pty, CHUNK):
            self.chunks += 1
            if self.session.config["pty_tail"] == "lost":
                await self._hold_back()
            if self.gone:
                continue
            try:
                await self.socket.send(data)
            except (Dropped, ConnectionError):
                self.gone = True

    async def _hold_back(self):
        """pty_tail "lost": wait for newer output, or for silence. An end now takes this chunk with it."""
        end = asyncio.get_running_loop().time() + SILENCE
        while asyncio.get_running_loop().time() < end and not self._pending():
            await asyncio.sleep(0.01)

    def _pending(self):
        """The bytes that can be read from the terminal."""
        return struct.unpack("i", fcntl.ioctl(self.spawned.pty, termios.FIONREAD, b"\0\0\0\0"))[0]

    async def _drain(self, output):
        """What the process wrote before its end: to the terminal's end, or to silence if others have it open."""
        seen = None
        while not output.done() and seen != self.chunks:
            seen = self.chunks
            await asyncio.wait([output], timeout=SILENCE)

    async def _receive(self):
        """Input and sizes, until the client leaves."""
        try:
            while True:
                kind, data = await self.socket.receive()
                if kind == TEXT:
                    self._control(data)
                else:
                    await write_all(self.spawned.pty, data)
        except (ReceiveEnd, OSError):
            pass

    def _control(self, data):
        """A text message; what is not understood is passed over."""
        try:
            message = json.loads(data)
            rows, cols = int(message["rows"]), int(message["cols"])
        except (ValueError, TypeError, KeyError):
            return
        if message.get("type") == "resize":
            fcntl.ioctl(self.spawned.pty, termios.TIOCSWINSZ, struct.pack("HHHH", rows & 0xffff, cols & 0xffff, 0, 0))

    async def _release(self, output, receiving, ended):
        """Hang the terminal up. With `on_drop` "keep" a process whose client is gone goes on, unread and unfed."""
        self.gone = True
        receiving.cancel()
        if self.session.config["on_drop"] == "keep":
            await asyncio.wait([ended, self.session.closing], return_when=asyncio.FIRST_COMPLETED)
        output.cancel()
        ended.cancel()
        await asyncio.wait([output, receiving, ended])      # none may still have the descriptor in the event loop
        os.close(self.spawned.pty)
