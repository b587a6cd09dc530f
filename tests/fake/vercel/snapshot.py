# SPDX-License-Identifier: ISC
"""A snapshot: the disk that a session left behind."""
import asyncio
import os

from .api import new_id, now_ms, without_none

DAY_MS = 24 * 3600 * 1000
DEFAULT_EXPIRATION = 30 * DAY_MS


async def copy_disk(source, target):
    """Copy a machine's disk as it is; what cannot be copied is a bug of the test that made it."""
    process = await asyncio.create_subprocess_exec("cp", "-a", "--reflink=auto", source, target)
    if await process.wait() != 0:
        raise RuntimeError(f"cannot copy {source}")


def disk_size(root):
    """The bytes of all files."""
    total = 0
    for directory, _, names in os.walk(root):
        for name in names:
            try:
                total += os.lstat(os.path.join(directory, name)).st_size
            except OSError:
                continue
    return total


class Snapshot:
    """One snapshot; kept after its deletion, without its disk."""

    def __init__(self, session, root, expiration, method):
        self.id = new_id("snap_")
        self.session, self.root, self.method = session, os.path.join(root, self.id), method
        self.sandbox = session.sandbox
        self.parent = session.snapshot
        self.status, self.size = "created", 0
        self.created_at = self.updated_at = self.used_at = now_ms()
        self.lifetime = DEFAULT_EXPIRATION if expiration is None else expiration    # since its last use; 0 = for ever

    @property
    def expires_at(self):
        return self.used_at + self.lifetime if self.lifetime else None

    def usable(self):
        return self.status == "created" and (self.expires_at is None or self.expires_at > now_ms())

    def use(self):
        self.used_at = self.updated_at = now_ms()

    def show(self):
        """The API's Snapshot object."""
        return without_none({
            "id": self.id, "sourceSessionId": self.session.id, "region": self.sandbox.region,
            "regions": [self.sandbox.region], "status": self.status, "sizeBytes": self.size,
            "expiresAt": self.expires_at, "createdAt": self.created_at, "updatedAt": self.updated_at,
            "lastUsedAt": self.used_at, "creationMethod": self.method, "parentId": self.parent and self.parent.id})
