# SPDX-License-Identifier: ISC
"""The terminal endpoints: create, list, resize and delete over HTTP, connect over a WebSocket."""
import asyncio
import base64
import json
from socket import SO_SNDBUF, SOL_SOCKET

from ..common.machine import MachineError
from ..common.websocket import ReceiveEnd, WebSocket
from .terminal import Terminal
from .wire import ToolboxError, read_json, send_json

READ_LIMIT = 64 << 10
LARGEST = 1000
ENVS_LIMIT = 64 << 10
ENVS_PROTOCOL, EXIT_PROTOCOL, VERSION_PROTOCOL = ("X-Daytona-Pty-Envs~", "X-Daytona-Pty-Exit-Control",
                                                  "X-Daytona-SDK-Version~")


def pty_error(status, text):
    return ToolboxError(status, {"error": text})


def not_found():
    return pty_error(404, "PTY session not found")


async def create(daemon, exchange):
    try:
        body = await read_json(exchange, "PTYCreateRequest")
        name, cwd = body.get("id", "string", ""), body.get("cwd", "string", "")
        envs, lazy = body.get("envs", "map[string]string", {}), body.get("lazyStart", "bool", False)
        cols, rows = body.get("cols", "uint16", 80), body.get("rows", "uint16", 24)
    except ValueError as error:
        raise pty_error(400, str(error)) from None
    await make(daemon, name, cwd, envs, cols, rows, lazy)
    await send_json(exchange, 201, {"sessionId": name})


async def make(daemon, name, cwd, envs, cols, rows, lazy):
    """A new terminal in the daemon's table; an error answers in the shape of these handlers."""
    if not name:
        raise pty_error(400, "session ID is required")
    if name in daemon.ptys:
        raise pty_error(409, f"PTY session with ID '{name}' already exists")
    if cols > LARGEST or cols < 0:
        raise pty_error(400, "invalid value for cols - must be less than 1000")
    if rows > LARGEST or rows < 0:
        raise pty_error(400, "invalid value for rows - must be less than 1000")
    terminal = Terminal(daemon, name, cwd or daemon.work_dir, {"TERM": "xterm-256color", **envs}, cols, rows, lazy)
    daemon.ptys[name] = terminal
    if lazy:
        return
    try:
        await terminal.start()
    except MachineError as error:
        daemon.ptys.pop(name, None)
        if error.errno_name == "ESHUTDOWN":
            raise
        raise pty_error(500, "failed to start PTY session") from None


async def list_all(daemon, exchange):
    await send_json(exchange, 200, {"sessions": [terminal.info() for terminal in daemon.ptys.values()]})


async def get(daemon, exchange, name):
    if name not in daemon.ptys:
        raise not_found()
    await send_json(exchange, 200, daemon.ptys[name].info())


async def delete(daemon, exchange, name):
    terminal = daemon.ptys.pop(name, None)
    if terminal is None:
        raise not_found()
    await terminal.kill()
    await send_json(exchange, 200, {"message": "PTY session deleted"})


async def resize(daemon, exchange, name):
    try:
        body = await read_json(exchange, "PTYResizeRequest")
        cols, rows = body.get("cols", "uint16", 0), body.get("rows", "uint16", 0)
    except ValueError as error:
        raise pty_error(400, str(error)) from None
    for side, value in (("cols", cols), ("rows", rows)):
        if value > LARGEST:
            raise pty_error(400, f"{side} must be less than 1000")
    terminal = daemon.ptys.get(name)
    if terminal is None:
        raise pty_error(410, f"PTY session {name} not found")
    try:
        terminal.resize(cols, rows)
    except OSError as error:
        raise pty_error(500, str(error)) from None
    await send_json(exchange, 200, terminal.info())


# -- WebSockets -------------------------------------------------------------------------------------------------------


def offered_protocols(request):
    return [word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",") if word.strip()]


def chosen_protocol(daemon, request):
    """Daemon 0.190 agrees on a version protocol only. Newer ones must agree on the exit control too, or the SDK on Node
    (whose WebSocket insists on an answer to what it offers) could not use them."""
    newer = daemon.config["create_connect"] and daemon.config["subprotocol_echo"]
    for name in offered_protocols(request):
        if name.startswith(VERSION_PROTOCOL) or (name == EXIT_PROTOCOL and newer):
            return name
    return None


async def connect(daemon, exchange, name):
    """The upgrade always succeeds; whether there is such a terminal is told afterwards."""
    socket = await WebSocket.accept(exchange, chosen_protocol(daemon, exchange.request), READ_LIMIT)
    try:
        terminal = await ready(daemon, name)
    except ToolboxError as error:
        await socket.send_text(json.dumps({
            "error": "Failed to connect to PTY session: " + error.body["error"], "status": "error", "type": "control"}))
        await socket.finish()
        return
    await attach(daemon, exchange, socket, terminal)


async def ready(daemon, name):
    """The terminal, started if it waited for its first client."""
    terminal = daemon.ptys.get(name)
    if terminal is None:
        raise pty_error(404, f"PTY session {name} not found")
    if not terminal.started:
        try:
            await terminal.start()
        except MachineError as error:
            raise pty_error(500, f"failed to start PTY session: {error.text}") from None
    return terminal


async def create_connect(daemon, exchange):
    """The newer form in one trip; where it does not exist, the path is that of a terminal with this name."""
    if not daemon.config["create_connect"]:
        await get(daemon, exchange, "create-connect")
        return
    query, protocols = exchange.request.query, offered_protocols(exchange.request)
    try:
        envs = requested_envs(protocols)
        cols, rows = int(query.get("cols") or 80), int(query.get("rows") or 24)
    except ValueError as error:
        raise pty_error(400, str(error)) from None
    name = query.get("id", "")
    await make(daemon, name, query.get("cwd", ""), envs, cols, rows, False)
    terminal = daemon.ptys[name]
    socket = await WebSocket.accept(exchange, chosen_protocol(daemon, exchange.request), READ_LIMIT)
    await attach(daemon, exchange, socket, terminal)


def requested_envs(protocols):
    """The environment out of its subprotocol: base64url, without padding, of a JSON object."""
    for name in protocols:
        if not name.startswith(ENVS_PROTOCOL):
            continue
        text = name[len(ENVS_PROTOCOL):]
        envs = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if len(text) > ENVS_LIMIT or not isinstance(envs, dict) or any(
                not isinstance(value, str) or set(key) & set("=\0\n") for key, value in envs.items()):
            raise ValueError("invalid environment variables")
        return envs
    return {}


async def attach(daemon, exchange, socket, terminal):
    """One client of a terminal, until it leaves or the terminal ends. The terminal itself does not mind either."""
    fault, size = exchange.action.get("pty"), daemon.config["pty_send_buffer"]
    if size:
        exchange.request.transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_SNDBUF, size)
    wants_exit = daemon.config["create_connect"] and EXIT_PROTOCOL in offered_protocols(exchange.request)
    client = terminal.attach(socket, wants_exit, fault)
    connected = json.dumps({"status": "connected", "type": "control"})
    receiving = asyncio.create_task(receive(socket, terminal))
    try:
        if fault == "data_first":
            await client.has_sent.wait()
        if fault != "no_connected":
            await socket.send_text(connected)
        await asyncio.wait([receiving, client.ended], return_when=asyncio.FIRST_COMPLETED)
    finally:
        receiving.cancel()
        terminal.detach(client)
    await socket.finish()


async def receive(socket, terminal):
    """What the client types, until it leaves."""
    try:
        while True:
            _, data = await socket.receive()
            await terminal.feed(data)
    except ReceiveEnd:
        pass


ROUTES = [
    ("GET", "/process/pty", list_all), ("POST", "/process/pty", create),
    ("GET", "/process/pty/create-connect", create_connect), ("GET", "/process/pty/:name", get),
    ("DELETE", "/process/pty/:name", delete), ("GET", "/process/pty/:name/connect", connect),
    ("POST", "/process/pty/:name/resize", resize),
]
