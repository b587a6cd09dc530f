# SPDX-License-Identifier: ISC
"""The daemon in each sandbox (version 0.190): its routes, its environment, what its parts share."""
import posixpath
import re
from urllib.parse import unquote

from ..common.machine import PATH, MachineError
from . import download, execute, files, pty, session, upload
from .wire import ToolboxError, send_json

HOME = "/home/daytona"


async def version(daemon, exchange):
    await send_json(exchange, 200, {"version": daemon.config["daemon_version"]})


async def work_dir(daemon, exchange):
    await send_json(exchange, 200, {"dir": daemon.work_dir})


async def home_dir(_, exchange):
    await send_json(exchange, 200, {"dir": HOME})


ROUTES = [
    ("GET", "/version", version), ("GET", "/work-dir", work_dir), ("GET", "/user-home-dir", home_dir),
    ("GET", "/project-dir", home_dir),
    ("POST", "/process/execute", execute.execute), ("POST", "/process/code-run", execute.run_code),
    *files.ROUTES, *download.ROUTES, *upload.ROUTES, *pty.ROUTES, *session.ROUTES,
]
COMPILED = [(method, re.compile(re.sub(r":(\w+)", r"(?P<\1>[^/]+)", path) + "$"), handler)
            for method, path, handler in ROUTES]


class Daemon:
    """The data plane of one running sandbox. `config` is the fake's, `root` the machine's disk as seen from here."""

    def __init__(self, machine, root, config, env):
        self.machine, self.root, self.config = machine, root, config
        self.work_dir = config["work_dir"]
        self.env = {"PATH": PATH, "HOME": HOME, **env}
        self.sessions = {}
        self.ptys = {}

    async def serve(self, exchange, path):
        """Answer one request that the proxy let through. A handler gets the daemon, the exchange, the path's names."""
        for method, pattern, handler in COMPILED:
            match = pattern.match(path)
            if match and method == exchange.request.method:
                names = {name: unquote(value) for name, value in match.groupdict().items()}
                await handler(self, exchange, **names)
                return
        await exchange.send(404, b"404 page not found", {"Content-Type": "text/plain"})

    def close(self):
        """The sandbox stops: forget everything that lived in the daemon's memory."""
        for terminal in list(self.ptys.values()):
            terminal.forget()
        for shell in list(self.sessions.values()):
            shell.forget()
        self.ptys.clear()
        self.sessions.clear()

    def shell(self):
        """The shell for sessions, terminals and execute: zsh, bash, $SHELL or sh, by /etc/shells."""
        try:
            with open(f"{self.root}/etc/shells", encoding="utf-8") as f:
                listed = "".join(line for line in f if not line.startswith("#"))
        except OSError:
            return "/bin/sh"
        for path in ("/usr/bin/zsh", "/bin/zsh", "/usr/bin/bash", "/bin/bash"):
            if path in listed:
                return path
        return self.env.get("SHELL", "/bin/sh")

    def absolute(self, path):
        """A path that means the same anywhere: relative ones start at the daemon's own directory."""
        return posixpath.join(self.work_dir, path)

    async def call(self, op, **arguments):
        """An operation of the machine, answered in the daemon's way when it fails (all file handlers): 404, 403 or 400
        with an empty body."""
        try:
            return (await self.machine.call(op, **arguments))[0]
        except MachineError as error:
            raise file_error(error) from None

    async def descendants(self, pid):
        """(is the process there, the pids below it)."""
        result, _ = await self.machine.call("descendants", pid=pid)
        return result["alive"], result["pids"]

    async def signal(self, pids, number):
        """Signal each; those that are gone do not matter."""
        for pid in pids:
            try:
                await self.machine.signal(pid, number)
            except MachineError as error:
                if error.errno_name not in ("ESRCH", "EPERM"):
                    raise


def file_error(error):
    """The empty answer to a failed file operation; a dead machine stays what it is."""
    if error.errno_name == "ESHUTDOWN":
        return error
    return ToolboxError({"ENOENT": 404, "EACCES": 403, "EPERM": 403}.get(error.errno_name, 400))
