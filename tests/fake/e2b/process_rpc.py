# SPDX-License-Identifier: ISC
"""process.Process: the RPCs that start, feed, watch and end processes in a fake sandbox."""
import asyncio
import base64
import errno
import fcntl
import random
import signal
import struct
import termios

from ..common.machine import HOMES, PATH, MachineError
from . import rpc
from .process import CLOSED, DATA_END, Process
from .rpc import RpcError, field

DEFAULT_KEEPALIVE = 90
SIGNALS = {"SIGNAL_SIGTERM": signal.SIGTERM, "SIGNAL_SIGKILL": signal.SIGKILL, 15: signal.SIGTERM, 9: signal.SIGKILL}
WRAPPER = 'echo 100 > /proc/$$/oom_score_adj && exec /usr/bin/ionice -c 2 -n 4 /usr/bin/nice -n 0 "${@}"'
DEADLINE = object()


# -- processes of a sandbox -----------------------------------------------------------------------------------------

def find(envd, message):
    """The process that a selector means. By tag as envd does it: the search stops at the first other tag."""
    selector = field(message, "process", dict, {})
    pid, tag = field(selector, "pid", int), field(selector, "tag", str)
    if pid is not None:
        if pid in envd.processes:
            return envd.processes[pid]
        raise RpcError("not_found", f"process with pid {pid} not found")
    if tag is None:
        raise RpcError("unimplemented", "invalid input type *process.ProcessSelector")
    found = None
    for process in envd.processes.values():
        if process.tag is not None and process.tag != tag:
            break
        found = process if process.tag == tag else found
    if found is None:
        raise RpcError("not_found", f"process with tag {tag} not found")
    return found


def retain(envd, process):
    """Keep the end for late Connects: envd 0.6.13 does for 30 s, older ones forget at once."""
    if envd.processes.get(process.pid) is process:
        del envd.processes[process.pid]
    if envd.version >= (0, 6, 13):
        envd.terminated[process.pid] = process
        asyncio.get_running_loop().call_later(envd.config["exit_retention_s"], forget, envd, process)


def forget(envd, process):
    if envd.terminated.get(process.pid) is process:
        del envd.terminated[process.pid]


def environment(envd, user, extra):
    env = {"PATH": PATH, "HOME": HOMES[user], "USER": user, "LOGNAME": user}
    return {**env, **envd.env, **extra}


async def spawn(envd, message, user):
    """Start what a StartRequest asks for; a Process."""
    config, pty = field(message, "process", dict, {}), field(message, "pty", dict)
    cwd = envd.resolve(field(config, "cwd", str, ""), user)
    env = environment(envd, user, field(config, "envs", dict, {}))
    argv = ["/bin/sh", "-c", WRAPPER, "--", field(config, "cmd", str, ""), *field(config, "args", list, [])]
    wants_stdin = field(message, "stdin", bool)
    if wants_stdin is None or envd.version < (0, 3, 0):
        wants_stdin = True
    try:
        await envd.machine.call("status", path=cwd)
        spawned = await envd.machine.spawn(argv, env, cwd, stdin="pipe" if wants_stdin else "null",
                                           pty=size_of(pty) if pty is not None else None, root=user == "root")
    except MachineError as error:
        if error.errno_name == "ENOENT":
            raise RpcError("invalid_argument", f"cwd '{cwd}' does not exist") from None
        raise RpcError("invalid_argument", f"{doing(argv[4:], cwd, pty)}: fork/exec /bin/sh: "
                                           f"{error.text.lower()}") from None
    process = Process(spawned, config, field(message, "tag", str), lambda p: retain(envd, p))
    for old in [p for p in envd.terminated.values() if p.pid == process.pid or (p.tag and p.tag == process.tag)]:
        forget(envd, old)
    envd.processes[process.pid] = process
    return process


def doing(command, cwd, pty):
    """How envd names a start that failed."""
    command = " ".join(command)
    if pty is None:
        return f"error starting process '{command}'"
    rows, cols = size_of(pty)
    return f"error starting pty with command '{command}' in dir '{cwd}' with '{cols}' cols and '{rows}' rows"


def size_of(pty):
    size = field(pty, "size", dict, {})
    return field(size, "rows", int, 0) & 0xffff, field(size, "cols", int, 0) & 0xffff


async def send_signal(envd, process, number):
    """Signal the leader only. TERM and KILL also stop the wait for the end of the output."""
    process.cancel_output.set()
    try:
        await envd.machine.signal(process.pid, number)
    except MachineError as error:
        if error.errno_name != "ESRCH":     # a leader that has ended while its output goes on is a zombie for envd
            raise RpcError("internal", f"error sending signal: {error.text}") from None


# -- streams --------------------------------------------------------------------------------------------------------

def keepalive_interval(exchange):
    try:
        return int(exchange.request.headers.get("Keepalive-Ping-Interval", ""))
    except ValueError:
        return DEFAULT_KEEPALIVE


def request_timeout(exchange):
    """Connect-Timeout-Ms in seconds, or None."""
    text = exchange.request.headers.get("Connect-Timeout-Ms", "")
    if not text:
        return None
    if len(text) > 10:
        raise RpcError("invalid_argument", f'parse timeout: "{text}" has >10 digits')
    if not text.isdigit():
        raise RpcError("invalid_argument", f'parse timeout: strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text) / 1000


def data_event(kind, data):
    """A data event as JSON text, built by hand: this is what a big output spends its time on."""
    space = random.choice(("", " "))
    text = base64.b64encode(data).decode()
    return f'{{"event":{space}{{"data":{space}{{"{kind}":{space}"{text}"}}}}}}'.encode()


class Follower:
    """Sends one process's events down one stream until its end, the client's departure or a deadline."""

    def __init__(self, exchange, process, timeout):
        self.exchange, self.process = exchange, process
        self.stream = rpc.Stream(exchange)
        self.subscriber = process.subscribe()
        self.keepalive = keepalive_interval(exchange)
        exchange.closed.add_done_callback(self._gone)
        self.deadline = timeout is not None and asyncio.get_running_loop().call_later(
            timeout, self.subscriber.interrupt, DEADLINE)

    def _gone(self, _):
        if not self.exchange.wedged:
            self.subscriber.interrupt(CLOSED)

    async def run(self):
        try:
            await self.stream.send({"event": {"start": {"pid": self.process.pid}}})
            if self.keepalive <= 0:     # envd's ticker panics
                self.exchange.cut()
                return
            await self._data()
            await self._end()
            await self.stream.end()
        except RpcError as error:
            await self.stream.end(error)
        finally:
            self._release()

    async def _data(self):
        while True:
            try:
                event = await self._next()
            except asyncio.TimeoutError:
                await self.stream.send({"event": {"keepalive": {}}})
                continue
            if event is DATA_END:
                return
            if event is DEADLINE:
                raise RpcError("deadline_exceeded", "context deadline exceeded")
            if event is CLOSED:
                raise ConnectionResetError
            await self.stream.send_encoded(data_event(*event))

    async def _next(self):
        if not self.subscriber.queue.empty():
            return self.subscriber.queue.get_nowait()
        return await asyncio.wait_for(self.subscriber.queue.get(), self.keepalive)

    async def _end(self):
        end = await self.process.end
        if not self.exchange.action.get("no_end_event"):
            await self.stream.send({"event": {"end": end}})

    def _release(self):
        if self.exchange.wedged:        # the peer vanished without a word and TCP has not noticed yet
            return
        self.subscriber.cancel()
        self.exchange.closed.remove_done_callback(self._gone)
        if self.deadline:
            self.deadline.cancel()


async def start(envd, exchange, message):
    user = envd.auth_user(exchange)
    timeout = request_timeout(exchange)
    process = await spawn(envd, message, user)
    if timeout:     # 0 ends the stream at once, but is no limit for the process
        process.deadline = asyncio.get_running_loop().call_later(
            timeout, lambda: asyncio.ensure_future(kill_late(envd, process)))
    await Follower(exchange, process, timeout).run()


async def kill_late(envd, process):
    """The process context's deadline: SIGKILL for the leader, whoever is still connected."""
    try:
        await send_signal(envd, process, signal.SIGKILL)
    except RpcError:
        pass


async def connect(envd, exchange, message):
    timeout = request_timeout(exchange)
    try:
        process = find(envd, message)
    except RpcError:
        process = retained(envd, message)
        if process is None:
            raise
        await serve_retained(exchange, process)
        return
    await Follower(exchange, process, timeout).run()


def retained(envd, message):
    selector = field(message, "process", dict, {})
    pid, tag = field(selector, "pid", int), field(selector, "tag", str)
    if pid is not None:
        return envd.terminated.get(pid)
    return next((p for p in envd.terminated.values() if tag is not None and p.tag == tag), None)


async def serve_retained(exchange, process):
    """An already ended process: its start and its end, none of its output."""
    stream = rpc.Stream(exchange)
    await stream.send({"event": {"start": {"pid": process.pid}}})
    await stream.send({"event": {"end": process.end.result()}})
    await stream.end()


# -- unary ----------------------------------------------------------------------------------------------------------

async def give_input(process, message):
    """A ProcessInput: bytes for stdin or for the terminal."""
    data, pty = field(message, "stdin", str), field(message, "pty", str)
    is_tty = process.spawned.pty >= 0
    if data is not None and pty is not None:
        raise RpcError("invalid_argument", "unmarshal message: proto: error parsing \"pty\", oneof "
                                           "process.ProcessInput.input is already set")
    if pty is not None:
        if not is_tty:
            raise RpcError("internal", "error writing to tty: tty not assigned to process — "
                                       "input should be written to the stdin, not the tty")
        try:
            await process.write_pty(rpc.decode_bytes(pty))
        except OSError as error:
            raise RpcError("internal", f"error writing to tty: error writing to tty of process "
                                       f"'{process.pid}': {error}") from None
    elif data is not None:
        if is_tty:
            raise RpcError("internal", "error writing to stdin: tty assigned to process — "
                                       "input should be written to the pty, not the stdin")
        try:
            await process.write_stdin(rpc.decode_bytes(data))
        except OSError as error:
            raise RpcError("internal", f"error writing to stdin: {error}") from None
    else:
        raise RpcError("unimplemented", "invalid input type <nil>")


async def send_input(envd, _, message):
    await give_input(find(envd, message), field(message, "input", dict, {}))
    return {}


async def close_stdin(envd, _, message):
    process = find(envd, message)
    if process.spawned.pty >= 0:
        raise RpcError("unknown", "error closing stdin: cannot close stdin for PTY process — "
                                  "send Ctrl+D (0x04) instead")
    await process.close_stdin()
    return {}


async def signal_process(envd, _, message):
    process, name = find(envd, message), message.get("signal", 0)
    if name not in SIGNALS:
        shown = name if isinstance(name, int) and name else "SIGNAL_UNSPECIFIED"
        raise RpcError("unimplemented", f"invalid signal: {shown}")
    await send_signal(envd, process, SIGNALS[name])
    return {}


async def update(envd, _, message):
    process, pty = find(envd, message), field(message, "pty", dict)
    if pty is None:
        return {}
    if process.spawned.pty < 0:
        raise RpcError("internal", "error resizing tty: tty not assigned to process")
    rows, cols = size_of(pty)
    try:
        fcntl.ioctl(process.spawned.pty, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
    except OSError as error:
        raise RpcError("internal", f"error resizing tty: {errno.errorcode.get(error.errno)}") from None
    return {}


async def list_processes(envd, *_):
    shown = []
    for process in envd.processes.values():
        config = {key: process.config.get(key) for key in ("cmd", "args", "envs", "cwd")}
        shown.append(rpc.without_defaults({"config": rpc.without_defaults(config), "pid": process.pid,
                                           "tag": process.tag}))
    random.shuffle(shown)       # envd walks a map
    return rpc.without_defaults({"processes": shown})


async def stream_input(envd, exchange):
    """Client streaming: a start message that names the process, then data, in order, with TCP's back-pressure."""
    process = None
    try:
        async for message in rpc.read_messages(exchange):
            if "start" in message:
                process = find(envd, field(message, "start", dict))
            elif "data" in message:
                if process is None:     # envd dereferences nil here and its connection dies
                    exchange.cut()
                    return
                await give_input(process, field(field(message, "data", dict), "input", dict, {}))
            elif "keepalive" not in message:
                raise RpcError("unimplemented", "invalid event type <nil>")
    except RpcError as error:
        await rpc.Stream(exchange).end(error)
        return
    stream = rpc.Stream(exchange)
    await stream.send({})
    await stream.end()


UNARY = {"SendInput": send_input, "CloseStdin": close_stdin, "SendSignal": signal_process, "Update": update,
         "List": list_processes}
SERVER_STREAM = {"Start": start, "Connect": connect}
CLIENT_STREAM = {"StreamInput": stream_input}
