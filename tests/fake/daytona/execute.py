# SPDX-License-Identifier: ISC
"""POST /process/execute and /process/code-run: a command to its end, both outputs in one text."""
import asyncio
import os
import re
import signal

from ..common.machine import MachineError
from ..common.streams import read_some, write_all
from .wire import ServiceError, read_json, send_json, to_text

CHUNK = 1 << 16
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
LANGUAGES = {"python": ["/usr/bin/python3", "-"], "javascript": ["/usr/bin/env", "node", "-"]}


async def execute(daemon, exchange):
    """The command is the shell's standard input: what it starts may eat the rest of it. No limit on time but `timeout`.

    The client's leaving changes nothing: the command goes on to its end.
    """
    try:
        body = await read_json(exchange, "ExecuteRequest")
        command, seconds = body.required("command", "string"), body.get("timeout", "uint32", 0)
        cwd, envs = body.get("cwd", "string"), body.get("envs", "map[string]string", {})
    except ValueError as error:
        raise ServiceError("bad request", f"invalid request body: {error}") from None
    if not command.strip():
        raise ServiceError("bad request", "command cannot be empty or whitespace-only")
    code, output = await asyncio.shield(asyncio.create_task(
        run(daemon, [daemon.shell()], command, cwd, envs, seconds)))
    await send_json(exchange, 200, {"exitCode": code, "result": output})


async def run_code(daemon, exchange):
    try:
        body = await read_json(exchange, "CodeRunRequest")
        code, language = body.required("code", "string"), body.required("language", "string")
        seconds, envs = body.get("timeout", "uint32", 0), body.get("envs", "map[string]string", {})
        arguments = body.get("argv", "[]string", [])
    except ValueError as error:
        raise ServiceError("invalid body request", str(error)) from None
    if language not in LANGUAGES:
        raise ServiceError("bad request", f"unsupported language: {language}")
    status, output = await asyncio.shield(asyncio.create_task(
        run(daemon, LANGUAGES[language] + arguments, code, None, envs, seconds)))
    await send_json(exchange, 200, {"exitCode": status, "result": output})


def check_names(envs):
    for name in envs:
        if not ENV_NAME.match(name):
            raise ServiceError("bad request", f"invalid environment variable name: '{name}'")


async def run(daemon, argv, script, cwd, envs, seconds):
    """(exit code, output as text). A command that cannot be started is a -1 with the reason as its output."""
    check_names(envs)
    try:
        spawned = await daemon.machine.spawn(argv, {**daemon.env, **envs}, cwd or daemon.work_dir, "pipe", setpgid=True,
                                             output="merged")
    except MachineError as error:
        if error.errno_name == "ESHUTDOWN":
            raise
        return -1, f"fork/exec {argv[0]}: {error.text.lower()}"
    feeding = asyncio.create_task(feed(spawned.stdin, script.encode("utf-8", "replace")))
    reading = asyncio.create_task(collect(spawned.stdout))
    expired = await expire(daemon, spawned, seconds)
    output = await finish(daemon, reading)
    feeding.cancel()
    if daemon.machine.dead.done():
        raise MachineError("ESHUTDOWN", "the machine is gone")
    if expired:
        raise ServiceError("request timeout", "command execution timeout")
    status = spawned.exited.result()
    return (os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1), to_text(output)


async def expire(daemon, spawned, seconds):
    """Wait for the shell's end; True if the time was over first, and then its whole group is killed."""
    done, _ = await asyncio.wait([spawned.exited], timeout=seconds or None)
    if done:
        return False
    await daemon.signal([-spawned.pid], signal.SIGKILL)
    await asyncio.wait([spawned.exited])
    return True


async def finish(daemon, reading):
    """All output: the end comes when the last holder of the pipe is gone, however long the shell is dead by then."""
    done, _ = await asyncio.wait([reading, daemon.machine.dead], timeout=daemon.config["execute_drain_s"],
                                 return_when=asyncio.FIRST_COMPLETED)
    if reading not in done:
        reading.cancel()
    await asyncio.wait([reading])
    return reading.result() if not reading.cancelled() else b""


async def feed(fd, data):
    """The script into the shell, as fast as it reads; a shell that is gone does not matter."""
    try:
        await write_all(fd, data)
    except OSError:
        pass
    finally:
        os.close(fd)


async def collect(fd):
    output = bytearray()
    try:
        while data := await read_some(fd, CHUNK):
            output += data
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        pass        # cut off: what there is by now
    finally:
        os.close(fd)
    return bytes(output)
