# SPDX-License-Identifier: ISC
"""The session endpoints: create, list, delete, execute, input, exit codes and logs."""
import asyncio

from .logs import Format, follow_log, is_legacy, read_log, send_log, stream_log
from .shell import Shell
from .wire import ServiceError, ToolboxError, read_json, send_json, untyped_error

ENTRYPOINT = "entrypoint"
NO_ANSWER = {"output": None, "stdout": None, "stderr": None, "exitCode": None}


def find(daemon, name):
    if name not in daemon.sessions:
        raise ServiceError("not found", "session not found")
    return daemon.sessions[name]


def find_command(daemon, name, number):
    shell = find(daemon, name)
    if number not in shell.commands:
        raise ServiceError("not found", "command not found")
    return shell, shell.commands[number]


async def show(shell):
    for command in list(shell.commands.values()):
        await shell.look(command)
    return {"sessionId": shell.name, "commands": [command.show() for command in shell.commands.values()]}


async def create(daemon, exchange):
    try:
        name = (await read_json(exchange, "CreateSessionRequest")).required("sessionId", "string")
    except ValueError as error:
        raise ServiceError("invalid body request", str(error)) from None
    if name == ENTRYPOINT:
        raise ServiceError("bad request", "provided session ID is reserved and cannot be created/overridden")
    if name in daemon.sessions:
        raise ServiceError("conflict", "session already exists")
    cwd = daemon.env["HOME"] if is_legacy(exchange.request) else daemon.work_dir
    daemon.sessions[name] = await Shell.start(daemon, name, cwd)
    await exchange.send(201)


async def list_all(daemon, exchange):
    await send_json(exchange, 200, [await show(shell) for shell in list(daemon.sessions.values())])


async def get(daemon, exchange, name):
    await send_json(exchange, 200, await show(find(daemon, name)))


async def delete(daemon, exchange, name):
    if name == ENTRYPOINT:
        raise ServiceError("bad request", "can't delete entrypoint session")
    shell = find(daemon, name)
    await shell.delete()
    daemon.sessions.pop(name, None)
    await exchange.send(204)


async def execute(daemon, exchange, name):
    """202 at once, or 200 with everything at the end. A bad body is an empty 400, every other error a 500."""
    if name == ENTRYPOINT:
        raise ServiceError("bad request", "can't execute command in entrypoint session")
    try:
        body = await read_json(exchange, "SessionExecuteRequest")
        text = body.get("command", "string", "")
        asynchronous = body.get("runAsync", "bool", False) or body.get("async", "bool", False)
        echo = not body.get("suppressInputEcho", "bool", False)
    except ValueError:
        raise ToolboxError(400) from None
    if not text.strip():
        raise ToolboxError(400)
    try:
        shell = find(daemon, name)
        command = await shell.execute(text, asynchronous, echo)
        if asynchronous:
            await send_json(exchange, 202, {"cmdId": command.id, **NO_ANSWER})
            return
        await asyncio.shield(asyncio.create_task(shell.wait(command)))
        log = await read_log(daemon, command)
    except ServiceError as error:
        raise untyped_error(f"failed to execute command: {error}") from None
    await send_json(exchange, 200, {"cmdId": command.id, **NO_ANSWER, **Format(exchange.request).fields(log),
                                    "exitCode": command.exit_code})


async def get_command(daemon, exchange, name, number):
    shell, command = find_command(daemon, name, number)
    await shell.look(command)
    await send_json(exchange, 200, command.show())


async def send_input(daemon, exchange, name, number):
    if name == ENTRYPOINT:
        raise ServiceError("bad request", "can't send input to entrypoint session")
    try:
        data = (await read_json(exchange, "SessionSendInputRequest")).required("data", "string")
    except ValueError as error:
        raise ServiceError("invalid body request", str(error)) from None
    shell, command = find_command(daemon, name, number)
    await shell.send_input(command, data)
    await exchange.send(204)


async def logs(daemon, exchange, name, number):
    """A snapshot; or followed, over a WebSocket or (by the runner's help) in one long answer."""
    request = exchange.request
    upgrade = request.headers.get("Upgrade") == "websocket"
    streamed = not upgrade and request.query.get("follow") == "true"
    try:
        shell, command = find_command(daemon, name, number)
    except ServiceError:
        if streamed:
            raise ServiceError("bad request", "failed to create outgoing request: websocket: bad handshake") from None
        raise
    send = follow_log if upgrade else stream_log if streamed else send_log
    await send(daemon, exchange, shell, command)


async def entrypoint(daemon, exchange):
    """Our sandboxes have no entrypoint command."""
    find(daemon, ENTRYPOINT)


ROUTES = [
    ("GET", "/process/session", list_all), ("POST", "/process/session", create),
    ("GET", "/process/session/entrypoint", entrypoint), ("GET", "/process/session/entrypoint/logs", entrypoint),
    ("GET", "/process/session/:name", get), ("DELETE", "/process/session/:name", delete),
    ("POST", "/process/session/:name/exec", execute),
    ("GET", "/process/session/:name/command/:number", get_command),
    ("GET", "/process/session/:name/command/:number/logs", logs),
    ("POST", "/process/session/:name/command/:number/input", send_input),
]
