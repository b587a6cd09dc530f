# SPDX-License-Identifier: ISC
"""The command endpoints of a session: start, list, get and wait, kill, logs."""
import asyncio
import json
from dataclasses import dataclass

from ..common.exchange import Dropped
from ..common.machine import MachineError
from .api import JSON, ApiError, bad_request, field, not_found, read_body, string_map
from .command import Command, encode_line
from .errors import STOPPED, STREAM_CLOSED

NDJSON = {"Content-Type": "application/x-ndjson"}       # exactly so: the SDK compares the whole value
SHORTEST_TIMEOUT = 100
DEFAULT_SIGNAL = 15


@dataclass
class Request:
    """What is to be run."""
    name: str
    arguments: list
    cwd: str
    env: dict
    sudo: bool
    timeout: int


def parse(body, session):
    """A checked start request."""
    name, arguments = field(body, "command", str), field(body, "args", list, [])
    if not name:
        raise bad_request("Invalid request: missing required property `command`.")
    if not all(isinstance(item, str) for item in arguments):
        raise bad_request("Invalid request: `args` should be an array of strings.")
    timeout = field(body, "timeout", int)
    if timeout is not None and timeout < SHORTEST_TIMEOUT:
        raise bad_request(f"Invalid request: `timeout` should be >= {SHORTEST_TIMEOUT}.")
    return Request(name, arguments, field(body, "cwd", str) or session.profile.cwd, string_map(body, "env") or {},
                   bool(field(body, "sudo", bool)), timeout)


async def spawn(session, request):
    """Start it, or answer why not."""
    try:
        await session.machine.call("stat", path=request.cwd)
    except MachineError as error:
        raise missing_machine(session, error) or bad_request(
            f"Invalid request: cannot use the directory {request.cwd}: {error.text.lower()}") from None
    try:
        spawned = await session.machine.spawn(
            [request.name, *request.arguments], session.environment(request.env, request.sudo), request.cwd,
            stdin=session.config["stdin"], root=request.sudo, setpgid=session.config["own_group"], search=True)
    except MachineError as error:
        raise missing_machine(session, error) or start_error(session.config, request, error) from None
    command = Command(session, spawned, request)
    session.commands[command.id] = command
    return command


def missing_machine(session, error):
    """The answer when it was the session that ended, or None."""
    return ApiError(410, *STOPPED) if error.errno_name == "ESHUTDOWN" or session.closing.done() else None


def start_error(config, request, error):
    """The status is nowhere documented."""
    if error.errno_name == "E2BIG":
        return bad_request("Invalid request: the arguments are too long.")
    return ApiError(config["not_executable_status"], "executable_not_found",
                    f"Executable '{request.name}' not found or not executable: {error.text.lower()}")


# -- streams ----------------------------------------------------------------------------------------------------------


class LineStream:
    """An answer of JSON lines, each flushed; broken ones where a knob wants them."""

    def __init__(self, exchange):
        self.exchange = exchange

    async def open(self):
        await self.exchange.open(200, NDJSON)

    async def send(self, line):
        exchange = self.exchange
        spoilt = exchange.action.get("frame", {})
        await exchange.message(line, lambda kind: spoil(kind, line))
        if spoilt.get("kind") == "error" and spoilt.get("n", 1) == exchange.events:
            await exchange.close()
            raise Dropped

    async def fail(self, how):
        """The end of a stream whose session has ended: an error line, just an end, or a reset."""
        if how == "error_line":
            await self.exchange.write(encode_line({"stream": "error", "data": STREAM_CLOSED}))
        if how == "reset":
            self.exchange.cut("reset")
        else:
            await self.exchange.close()
        raise Dropped


def spoil(kind, line):
    """A line with something wrong, or (blank) something that is right but rare."""
    if kind == "error":
        return encode_line({"stream": "error", "data": STREAM_CLOSED})
    if kind == "blank":
        return b"\n\n" + line + b"\n"
    if kind == "cut":
        return line[:len(line) // 2]
    if kind == "null_exit":
        value = json.loads(line)
        value.get("command", {})["exitCode"] = None
        return encode_line(value)
    return b"{\"stream\": stdout}\n"


async def wait_change(exchange, session, command):
    """Wait for news of a command; Dropped when the client has left, True when the session has ended."""
    await asyncio.wait([command.changed, exchange.closed, session.closing], return_when=asyncio.FIRST_COMPLETED)
    if exchange.closed.done():
        raise Dropped
    return session.closing.done()


async def follow(exchange, session, command, stream):
    """The log from its first line to the command's end. Without a stream: just wait for that end."""
    sent = 0
    while True:
        while stream and sent < len(command.lines):
            await stream.send(command.lines[sent])
            sent += 1
        if command.ended:
            return
        if await wait_change(exchange, session, command):
            return


# -- endpoints --------------------------------------------------------------------------------------------------------


async def start(session, exchange):
    """Detached, or a stream to the command's end. The command goes on whatever becomes of the client."""
    body = await read_body(exchange)
    command = await spawn(session, parse(body, session))
    if not (field(body, "wait", bool) or exchange.request.query.get("wait") == "true"):
        await exchange.send_json(200, {"command": command.show()}, JSON)
        return
    logs = field(body, "logs", bool) or exchange.request.query.get("logs") == "true"
    stream = LineStream(exchange)
    await stream.open()
    await stream.send(encode_line({"command": {**command.show(), "exitCode": None}}))
    await follow(exchange, session, command, stream if logs else None)
    if not command.ended:
        await stream.fail(session.config["stream_on_stop"])
    await stream.send(encode_line({"command": command.show()}))
    await exchange.close()


async def list_all(session, exchange):
    """Newest first."""
    shown = [command.show() for command in reversed(session.commands.values())]
    await exchange.send_json(200, {"commands": shown}, JSON)


def find(session, number):
    if number not in session.commands:
        raise not_found(f"Command '{number}' not found.")
    return session.commands[number]


async def get(session, exchange, command):
    found = find(session, command)
    if exchange.request.query.get("wait") == "true":
        await follow(exchange, session, found, None)
        if not found.ended:
            raise ApiError(410, *STOPPED)
    await exchange.send_json(200, {"command": found.show()}, JSON)


async def kill(session, exchange, command):
    """The command must still be running; the answer does not wait for its end."""
    body, found = await read_body(exchange), find(session, command)
    number = field(body, "signal", int, DEFAULT_SIGNAL)
    if not 0 < number < 65:
        raise bad_request("Invalid request: `signal` should be a POSIX signal number.")
    if found.ended:
        raise bad_request("Command is not running.")
    await found.signal(number)
    await exchange.send_json(200, {"command": found.show()}, JSON)


async def logs(session, exchange, command):
    """Everything from the first byte, then what comes."""
    found, stream = find(session, command), LineStream(exchange)
    await stream.open()
    await follow(exchange, session, found, stream)
    if not found.ended:
        await stream.fail(session.config["stream_on_stop"])
    await exchange.close()


ONE = "/cmd/(?P<command>[^/]+)"
ROUTES = [("POST", "/cmd", start), ("GET", "/cmd", list_all), ("GET", ONE, get), ("POST", ONE + "/kill", kill),
          ("GET", ONE + "/logs", logs)]
