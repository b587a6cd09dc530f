# SPDX-License-Identifier: ISC
"""A session as the daemon keeps it: one shell that is fed through its standard input, a directory with a log a command.

A command is a block of shell text that makes three fifos, labels each line of both outputs in the background, sources
the command's file in the session's own shell, waits for the labelers and writes the exit code. All the peculiarities
of sessions (lost NULs, an added newline, one command at a time, `exit` ending everything) come out of that text.
"""
import asyncio
import os
import signal
import uuid

from ..common.machine import MachineError
from ..common.streams import write_all
from .files import read_whole
from .wire import ServiceError

OUT, ERR = b"\1\1\1", b"\2\2\2"
EXIT_POLL = 0.05
TERMINATE_POLL = 0.1
OPEN_POLL = 0.01
LABEL = """( while IFS= read -r line || [ -n "$line" ]; do printf '%s%%%%s\\n' "$line"; done <"$%s" ) >>"$log" &
"""
WRAPPER = """{
log=%(log)s dir=%(dir)s ip=%(input)s
sp="$dir/stdout.pipe" ep="$dir/stderr.pipe"
{ rm -f "$sp" "$ep" "$ip" && mkfifo "$sp" "$ep" "$ip"; } || exit 1
cleanup() { rm -f "$sp" "$ep" "$ip"; }
trap cleanup EXIT HUP INT TERM
""" + LABEL % (r"\001\001\001", "sp") + "r1=$!\n" + LABEL % (r"\002\002\002", "ep") + """r2=$!
%(holder)s >"$ip" &
ip_pid=$!
{ . %(command)s; } <"$ip" >"$sp" 2>"$ep"
_ec=$?
kill "$ip_pid" 2>/dev/null
wait "$ip_pid" 2>/dev/null
wait "$r1" "$r2"
echo "$_ec" >>%(exit)s
cleanup
}
"""
HOLD_NOTHING = "cat /dev/null"                                                  # the end of input at once
HOLD_FOR_EVER = "while :; do sleep 3600; done"                                  # no end of input, ever
HOLD_UNTIL_INPUT = 'while [ ! -e "$dir/fed" ]; do sleep 0.02; done'             # newer daemons, by report


def quoted(text):
    """Go's %q, as the wrapper has it: a $ in it still means something to the shell."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Command:
    """One command of a session."""

    def __init__(self, directory, text, echo):
        self.id = str(uuid.uuid4())
        self.text, self.echo = text, echo
        self.exit_code = None
        self.dir = f"{directory}/{self.id}"
        self.log, self.input, self.exit_file = (f"{self.dir}/{name}" for name in ("output.log", "input.pipe",
                                                                                   "exit_code"))

    def show(self):
        shown = {"id": self.id, "command": self.text}
        return shown if self.exit_code is None else {**shown, "exitCode": self.exit_code}


class Shell:
    """One session. Its end is not noticed by anyone, as in the daemon."""

    def __init__(self, daemon, name, spawned):
        self.daemon, self.name, self.spawned = daemon, name, spawned
        self.dir = f"{daemon.env['HOME']}/.daytona/sessions/{name}"
        self.commands = {}
        self.cancelled = asyncio.Event()
        self.writing = asyncio.Lock()

    @classmethod
    async def start(cls, daemon, name, cwd):
        """Run the shell: neither interactive nor a login shell, its own outputs nowhere."""
        spawned = await daemon.machine.spawn([daemon.shell()], daemon.env, cwd, "pipe", setpgid=True, output="null")
        shell = cls(daemon, name, spawned)
        await daemon.machine.call("make_directories", path=shell.dir, mode=0o755)
        return shell

    # -- commands -----------------------------------------------------------------------------------------------------

    async def execute(self, text, asynchronous, echo):
        """Hand a command to the shell, which reads it once the one before has ended."""
        command, machine = Command(self.dir, text, echo), self.daemon.machine
        self.commands[command.id] = command
        await machine.call("make_directories", path=command.dir, mode=0o755)
        await self._store(command.log, b"")
        path = f"{command.dir}/cmd.sh"
        await self._store(path, text.encode("utf-8", "replace"))
        await machine.call("chmod", path=path, mode=0o600)
        holder = HOLD_NOTHING
        if asynchronous:
            holder = HOLD_UNTIL_INPUT if self.daemon.config["input_eof"] else HOLD_FOR_EVER
        block = WRAPPER % {"log": quoted(command.log), "dir": quoted(command.dir), "input": quoted(command.input),
                           "holder": holder, "command": quoted(path), "exit": quoted(command.exit_file)}
        if self.spawned.exited.done():
            raise ServiceError("bad request", "failed to write command: write |1: broken pipe")
        if asynchronous:
            asyncio.create_task(self._hand_over(block, self.daemon.config["exec_lag_ms"] / 1000))
        else:
            await self._hand_over(block, 0)
        return command

    async def _hand_over(self, block, lag):
        """Write the block to the shell, which may be busy. The lag keeps the fifos from being there with the answer."""
        async with self.writing:
            await asyncio.sleep(lag)
            try:
                await write_all(self.spawned.stdin, block.encode())
            except OSError:
                pass        # it died meanwhile: the command will never run

    async def _store(self, path, data):
        _, (fd,) = await self.daemon.machine.call("open", path=path, how="write")
        try:
            await write_all(fd, data)
        finally:
            os.close(fd)

    async def look(self, command):
        """Learn the exit code if the shell has written it by now."""
        if command.exit_code is not None:
            return
        try:
            text = await read_whole(self.daemon, command.exit_file)
            command.exit_code = int(text) if text.strip() else None
        except MachineError as error:
            if error.errno_name != "ENOENT":
                raise

    async def wait(self, command):
        """Until there is an exit code; only the end of the session ends it otherwise."""
        while command.exit_code is None:
            if self.cancelled.is_set():
                raise ServiceError("bad request", "session cancelled")
            await self.look(command)
            if command.exit_code is None:
                await asyncio.sleep(EXIT_POLL)

    async def send_input(self, command, text):
        """A line of input: a newline is added, and it is echoed into the log unless that was switched off."""
        if command.exit_code is not None:
            raise ServiceError("gone", f"command has already completed with exit code {command.exit_code}")
        data = text.encode("utf-8", "replace")
        data = data if data.endswith(b"\n") else data + b"\n"
        fd = await self._open_input(command)
        try:
            if self.daemon.config["input_eof"]:
                await self._store(f"{command.dir}/fed", b"")
            await write_all(fd, data)
        except OSError:
            raise ServiceError("internal server error", f"failed to write to input pipe: write {command.input}: "
                                                        "broken pipe") from None
        finally:
            os.close(fd)
        if command.echo:
            await self._append(command.log, OUT + data)

    async def _open_input(self, command):
        """The fifo's writing end. One without a reader is waited for; none at all is an error."""
        while True:
            try:
                return (await self.daemon.machine.call("open", path=command.input, how="existing"))[1][0]
            except MachineError as error:
                if error.errno_name == "ESHUTDOWN":
                    raise
                if error.errno_name != "ENXIO" or self.cancelled.is_set():
                    raise ServiceError("internal server error", f"failed to open input pipe: open {command.input}: "
                                                                f"{error.text.lower()}") from None
            await asyncio.sleep(OPEN_POLL)

    async def _append(self, path, data):
        try:
            _, (fd,) = await self.daemon.machine.call("open", path=path, how="append")
        except MachineError:
            return
        try:
            await write_all(fd, data)
        finally:
            os.close(fd)

    # -- the end ------------------------------------------------------------------------------------------------------

    async def delete(self):
        """TERM to the group and the tree, KILL after a grace; then the directory goes, logs and all."""
        pid = self.spawned.pid
        await self._signal(signal.SIGTERM)
        left = self.daemon.config["terminate_grace_s"]
        while left > 0:
            await asyncio.sleep(TERMINATE_POLL)
            left -= TERMINATE_POLL
            alive, children = await self.daemon.descendants(pid)
            if not alive or not children:
                break
        else:
            await self._signal(signal.SIGKILL)
        await self.daemon.signal([pid], signal.SIGKILL)
        self.forget()
        try:
            await self.daemon.machine.call("delete", path=self.dir, recursive=True)
        except MachineError as error:
            if error.errno_name != "ENOENT":
                raise ServiceError("bad request", error.text.lower()) from None

    async def _signal(self, number):
        _, children = await self.daemon.descendants(self.spawned.pid)
        await self.daemon.signal([-self.spawned.pid, *children], number)

    def forget(self):
        """Nobody will ask for it again."""
        self.cancelled.set()
        if self.spawned.stdin >= 0 and not self.writing.locked():
            os.close(self.spawned.stdin)
            self.spawned.stdin = -1
