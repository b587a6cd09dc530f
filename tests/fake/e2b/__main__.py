#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""A fake E2B: control plane and data plane on one loopback port, with real processes in its sandboxes.

    /usr/bin/python3 -m tests.fake.e2b --port 0 --root DIR

tests/fake/README.md says how tests aim faults at it and what it tells of the requests it got.
"""
import re

from ..common.server import Fake, main
from . import proxy
from .control import Control
from .errors import ERRORS
from .state import Registry

SANDBOX_PATH = re.compile(r"/(?:v2/)?sandboxes/([a-z0-9]+)")


class FakeE2b(Fake):
    """Both planes of E2B."""

    errors = ERRORS
    id_pattern = r"(?<=/sandboxes/)[^/]+"
    default_config = {
        "api_keys": None,               # None: any key of the right form
        "blocked_keys": [],
        "templates": ["base", "code-interpreter-v1"],
        "forbidden_templates": [],
        "envd_version": "0.6.13",       # of sandboxes created from now on
        "domain": None,
        "v2_create": True,              # False: POST /v2/sandboxes does not exist, as on self-hosted servers
        "idempotency": False,           # True: Idempotency-Key counts on POST /v2/sandboxes
        "max_concurrent": None,
        "plan_hours": 24,
        "create_ms": 0,                 # how long creating, pausing and resuming take
        "pause_ms": 0,
        "resume_ms": 0,
        "stall_on_pause": False,        # a stream cut by a pause keeps its place and stalls the program's output
        "exit_retention_s": 30,
        "disk_free": None,              # bytes an upload may have before the disk is full
        "envd_down": False,             # nothing listens on envd's port
    }

    def __init__(self, root):
        super().__init__(root)
        self.registry = Registry(root, self.config)
        self.control = Control(self.registry, self.config)
        self.proxy = proxy.Proxy(self.registry)

    def sandbox_of(self, request):
        if proxy.is_data_plane(request):
            try:
                return proxy.target(request)[0]
            except proxy.RoutingError:
                return None
        match = SANDBOX_PATH.match(request.path)
        return match.group(1) if match else None

    async def serve(self, exchange):
        path = exchange.request.path
        control = re.match(r"/(v2/)?(sandboxes|snapshots|templates)(/|$)", path)
        if proxy.is_data_plane(exchange.request) or not control:
            await self.proxy.serve(exchange)
        else:
            await self.control.serve(exchange)

    def sandboxes(self):
        return [sandbox.show() for sandbox in self.registry.sandboxes.values()]

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
        self.control.keys.clear()


if __name__ == "__main__":
    main(FakeE2b, __doc__)
