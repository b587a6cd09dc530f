# SPDX-License-Identifier: ISC
"""The log of a session command: its formats by request header, and following it.

The file has a three-byte prefix before each line, 01 01 01 or 02 02 02. Newer SDKs get JSON, older ones the raw bytes,
nobody in particular gets both streams merged, unless he asks for the prefixes by a header.
"""
import asyncio
import os
import re

from ..common.machine import MachineError
from ..common.websocket import ReceiveEnd, WebSocket
from .files import read_whole
from .shell import ERR, OUT
from .wire import ServiceError, send_json, to_text

PREFIX = re.compile(OUT + b"|" + ERR)
MARKED = re.compile(b"(" + OUT + b"|" + ERR + b")((?:(?!" + OUT + b"|" + ERR + b").)*)", re.DOTALL)
VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-?[\w.+-]*)?$")
VERSION_PROTOCOL = "X-Daytona-SDK-Version~"
FRAME = 1024
IDLE_POLL, IDLE_POLLS = 0.02, 50
NORMAL = 1000
TEXT = {"Content-Type": "text/plain; charset=utf-8"}


def sdk_version(request):
    """The SDK's version by header or subprotocol, "" if it told none."""
    header = request.headers.get("X-Daytona-SDK-Version", "")
    if header:
        return header
    for word in request.headers.get("Sec-WebSocket-Protocol", "").split(","):
        if word.strip().startswith(VERSION_PROTOCOL):
            return word.strip()[len(VERSION_PROTOCOL):]
    return ""


def older_than(version, limit):
    """Is it? None if it cannot be understood."""
    match = VERSION.match(version)
    return tuple(int(part or 0) for part in match.groups()) < limit if match else None


def is_legacy(request):
    """SDKs whose sessions start in the home directory."""
    return sdk_version(request) != "0.0.0-dev" and older_than(sdk_version(request), (0, 103, 0)) is True


class Format:
    """How the log is told to whoever sent this request."""

    def __init__(self, request):
        version = sdk_version(request)
        self.merged = ("dev" not in version and older_than(version, (0, 27, 0)) is True) or (
            not version and request.headers.get("X-Daytona-Split-Output") != "true")
        self.demuxed = "dev" in version or older_than(version, (0, 167, 0)) is False

    def fields(self, log):
        """The texts of a sync command's answer and of a JSON log."""
        if self.merged:
            return {"output": to_text(PREFIX.sub(b"", log))}
        if not self.demuxed:
            return {"output": to_text(log)}
        out, err = demux(log)
        return {"output": to_text(log), "stdout": to_text(out), "stderr": to_text(err)}


def demux(log):
    """(stdout, stderr); what stands before the first prefix is lost."""
    streams = {OUT: b"", ERR: b""}
    for match in MARKED.finditer(log):
        streams[match[1]] += match[2]
    return streams[OUT], streams[ERR]


class Merger:
    """Takes the prefixes out of a stream of pieces. It looks at the last two bytes of a piece as one, so a prefix that
    begins in the second of them survives: the daemon's own fault."""

    def __init__(self):
        self.held = b""

    def take(self, piece):
        data = self.held + piece
        end = 0
        for match in PREFIX.finditer(data):
            end = match.end()
        tail = data[max(end, len(data) - 2):]
        self.held = tail if tail and tail in (OUT[:len(tail)], ERR[:len(tail)]) else b""
        return PREFIX.sub(b"", data[:len(data) - len(self.held)])

    def rest(self):
        return self.held


async def send_log(daemon, exchange, shell, command):
    """GET …/logs: the whole file each time."""
    form = Format(exchange.request)
    log = await read_log(daemon, command)
    if form.demuxed and not form.merged:
        await send_json(exchange, 200, form.fields(log))
        return
    await exchange.send(200, PREFIX.sub(b"", log) if form.merged else log, TEXT if log or not form.merged else {})


async def read_log(daemon, command):
    try:
        return await read_whole(daemon, command.log)
    except MachineError as error:
        raise log_error(command, error) from None


def log_error(command, error):
    if error.errno_name == "ESHUTDOWN":
        return error
    return ServiceError("not found" if error.errno_name == "ENOENT" else "bad request",
                        f"open {command.log}: {error.text.lower()}")


class Follower:
    """Reads a log as it grows, in pieces of at most 1 KiB; the end is noticed a second after it, at the earliest."""

    def __init__(self, shell, command, follow, fault):
        self.shell, self.command, self.follow, self.fault = shell, command, follow, fault

    async def pieces(self, fd):
        idle = 0
        while not self.shell.cancelled.is_set():
            data = os.read(fd, FRAME)
            if data:
                idle = 0
                yield data
                await asyncio.sleep(0)
                if self.fault == "replay":
                    self.fault = None
                    os.lseek(fd, 0, os.SEEK_SET)
                continue
            if not self.follow:
                return
            idle += 1
            if idle >= IDLE_POLLS:
                idle = 0
                await self.shell.look(self.command)
                if self.command.exit_code is not None:
                    return
            await asyncio.sleep(IDLE_POLL)


async def open_log(daemon, command):
    try:
        return (await daemon.machine.call("open", path=command.log, how="read"))[1][0]
    except MachineError as error:
        raise log_error(command, error) from None


async def follow_log(daemon, exchange, shell, command):
    """The WebSocket: frames of the file from its first byte, a close with 1000 at the end, whatever the exit code."""
    request, fault = exchange.request, exchange.action.get("follow")
    fd = await open_log(daemon, command)
    try:
        version = [word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",")
                   if word.strip().startswith(VERSION_PROTOCOL)]
        socket = await WebSocket.accept(exchange, version[0] if version else None)
        follower = Follower(shell, command, request.query.get("follow") == "true", fault)
        merger = Merger() if Format(request).merged else None
        sending = asyncio.create_task(send_pieces(socket, follower, fd, merger))
        leaving = asyncio.create_task(wait_for_leaving(socket))
        done, _ = await asyncio.wait([sending, leaving], return_when=asyncio.FIRST_COMPLETED)
        if sending in done and fault == "linger":
            await asyncio.wait([leaving])
        for task in (sending, leaving):
            task.cancel()
        await asyncio.wait([sending, leaving])
    finally:
        os.close(fd)
    if not sending.cancelled():
        sending.result()
        await socket.send_close(NORMAL)
    await socket.finish()


async def send_pieces(socket, follower, fd, merger):
    async for piece in follower.pieces(fd):
        piece = merger.take(piece) if merger else piece
        if piece:
            await socket.send(piece)
    if merger and merger.rest():
        await socket.send(merger.rest())


async def wait_for_leaving(socket):
    try:
        while True:
            await socket.receive()
    except ReceiveEnd:
        pass


async def stream_log(daemon, exchange, shell, command):
    """?follow=true without an upgrade: the runner follows on its own, without our headers, so the streams are merged
    and nothing tells how it ended."""
    fd, merger = await open_log(daemon, command), Merger()
    try:
        await exchange.open(200, {"Content-Type": "application/octet-stream"})
        async for piece in Follower(shell, command, True, exchange.action.get("follow")).pieces(fd):
            await exchange.write(merger.take(piece))
        await exchange.write(merger.rest())
    finally:
        os.close(fd)
    await exchange.close()
