#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""A fake Daytona (v0): control plane and toolbox on one loopback port, with real processes in its sandboxes.

    /usr/bin/python3 -m tests.fake.daytona --port 0 --root DIR

tests/fake/README.md says how tests aim faults at it and what it tells of the requests it got.
"""
import re
from urllib.parse import unquote

from ..common.server import Fake, main
from . import toolbox
from .control import Control
from .errors import ERRORS
from .state import Registry

SANDBOX_PATH = re.compile(r"/api/sandbox/([^/?]+)")


class FakeDaytona(Fake):
    """Control plane, proxy, runner and daemon of Daytona."""

    errors = ERRORS
    id_pattern = r"(?<=/toolbox/)[^/]+|(?<=/api/sandbox/)(?!paginated$|ssh-access/)[^/]+"
    idle_timeout = 70
    action_values = {
        "follow": {"linger", "replay"},
        "pty": {"data_first", "no_connected", "tail_lost", "tail_kept"},
    }
    default_config = {
        "api_keys": None,               # None: any that begins with dtn_
        "snapshots": ["daytona-small", "daytona-medium", "daytona-large", "daytonaio/sandbox:0.8.0"],
        "default_snapshot": "daytonaio/sandbox:0.8.0",
        "default_target": "us",
        "daemon_version": "0.190.0",
        "toolbox_url_in_object": True,  # False: toolboxProxyUrl is missing, as in old objects
        "quota": {},                    # of all sandboxes together: {"cpu": 10, "memory": 10, "disk": 30, "gpu": 0}
        "max_per_sandbox": {},          # {"cpu": 4, "memory": 8, "disk": 10}
        "create_waits": True,           # create and start answer once the sandbox is started (30 s at most)
        "create_ms": 0,                 # how long these take, besides what the machine needs
        "build_ms": 0,
        "start_ms": 0,
        "stop_ms": 0,
        "destroy_ms": 0,
        "start_fails": None,            # a text: sandboxes end in `error` with this reason
        "build_fails": None,
        "held_polls": 0,                # so many GETs after a change tell the state before it
        "lookup_cache_ms": 0,           # how long a GET may be answered from memory (the real one: 10 s)
        "list_lag_ms": 0,               # by how much the list trails
        "minute_s": 60.0,               # how long a minute of the intervals is
        "work_dir": "/home/daytona",
        "resolve_ms": 0,                # how long the runner looks for a stopped sandbox (the real one: 0.3 to 1 s)
        "daemon_down": False,           # nothing listens in the sandboxes: 502 while the state says started
        "execute_drain_s": None,        # how long execute waits for output after the shell's end; the real one may: 30
        "create_connect": False,        # the newer daemons' /process/pty/create-connect and exit control message
        "subprotocol_echo": True,       # and they agree on the exit control subprotocol
        "pty_tail": "race",             # output pending at the end of a terminal: race, lost, kept
        "pty_send_buffer": None,        # bytes of the kernel's send buffer of a terminal's WebSocket
        "terminate_grace_s": 5.0,       # between TERM and KILL when a session is deleted
        "exec_lag_ms": 20,              # how long after its 202 an asynchronous command really begins
        "input_eof": False,             # newer daemons: each input ends the command's stdin
    }

    def __init__(self, root):
        super().__init__(root)
        self.registry = Registry(root, self.config)
        self.control = Control(self.registry, self.config)
        self.toolbox = toolbox.Toolbox(self.registry, self.config)

    def sandbox_of(self, request):
        name = toolbox.sandbox_id(request)
        if name is None:
            match = SANDBOX_PATH.match(request.path_qs)
            name = unquote(match.group(1)) if match else None
        sandbox = self.registry.find(name) if name else None
        return sandbox.id if sandbox else name

    async def serve(self, exchange):
        if toolbox.sandbox_id(exchange.request) is not None:
            await self.toolbox.serve(exchange)
        else:
            await self.control.serve(exchange)

    def sandboxes(self):
        return [sandbox.report() for sandbox in self.registry.sandboxes.values()]

    def end_sandbox(self, sandbox_id, how):
        sandbox = self.registry.sandboxes.get(sandbox_id)
        if sandbox is None:
            return False
        if how == "expire":
            sandbox.expire()
        else:
            sandbox.kill("killed by the test")
        return True

    async def reset(self):
        await self.registry.clear()
        self.toolbox.verdicts.clear()
        self.control.seen.clear()
        self.control.ssh_tokens.clear()


if __name__ == "__main__":
    main(FakeDaytona, __doc__)
