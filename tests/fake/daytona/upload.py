# SPDX-License-Identifier: ISC
"""Files into the sandbox: POST /files/upload (one, spooled first) and POST /files/bulk-upload (streamed)."""
import os
import posixpath
import tempfile

from ..common.machine import MachineError
from ..common.streams import write_all
from .files import BLOCK, bad_request, required
from .multipart import Form, FormError, boundary_of
from .wire import ToolboxError, send_json


def form(exchange):
    """The parts of the request's body; FormError if it is no form."""
    return Form(boundary_of(exchange.request.headers), exchange.request.content.readany)


async def upload(daemon, exchange):
    """The field `file`, received whole before a byte of it is written."""
    path, = required(daemon, exchange, "path")
    with tempfile.TemporaryFile() as spool:
        try:
            found = await receive(form(exchange), spool)
        except FormError:
            raise bad_request() from None
        if not found:
            raise bad_request()
        spool.seek(0)
        try:
            await daemon.call("make_directories", path=posixpath.dirname(path), mode=0o750)
            _, (fd,) = await daemon.machine.call("open", path=path, how="write")
        except (MachineError, ToolboxError) as error:
            if getattr(error, "errno_name", None) == "ESHUTDOWN":
                raise
            raise bad_request() from None
        try:
            while data := spool.read(BLOCK):
                await write_all(fd, data)
        finally:
            os.close(fd)
    await exchange.send(200)


async def receive(parts, spool):
    """Copy the first file named `file` into a temporary one; False if there is none."""
    found = False
    while (part := await parts.next()) is not None:
        wanted = part.name == "file" and part.filename is not None and not found
        while data := await part.read_chunk():
            if wanted:
                spool.write(data)
        found = found or wanted
    return found


class Batch:
    """One bulk upload: where the files go, what was written, what went wrong."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.destinations, self.files, self.errors = {}, [], []

    async def take(self, part):
        """One part: a path, or a file whose path has been told before. Others are passed over."""
        name = part.name
        index = name.removeprefix("files[").removesuffix("].path").removesuffix("].file")
        if name.endswith(".path"):
            await self._learn(index, part)
        elif name.endswith(".file"):
            if index in self.destinations:
                await self._save(self.destinations[index], part)
                return
            self.errors.append(f"file[{index}]: missing .path metadata")

    async def _learn(self, index, part):
        """Where a file is to go."""
        try:
            path = (await part.read()).decode("utf-8", "surrogateescape").strip()
        except FormError as error:
            self.errors.append(f"path[{index}]: {error}")
            return
        if path:
            self.destinations[index] = path
        else:
            self.errors.append(f"path[{index}]: empty path")

    async def _save(self, path, part):
        """Straight into the target: truncated first, not atomic, parents made, symlinks followed."""
        daemon, parent = self.daemon, posixpath.dirname(path) or "."
        target, doing, written = daemon.absolute(path), f"mkdir {parent}", 0
        try:
            await daemon.machine.call("make_directories", path=daemon.absolute(parent), mode=0o755)
            doing = "create"
            _, (fd,) = await daemon.machine.call("open", path=target, how="write")
        except MachineError as error:
            if error.errno_name == "ESHUTDOWN":
                raise
            call = f"mkdir {parent}" if doing != "create" else f"open {path}"
            self.errors.append(f"{path}: {doing}: {call}: {error.text.lower()}")
            return
        try:
            while data := await part.read_chunk():
                await write_all(fd, data)
                written += len(data)
            self.files.append({"path": path, "bytes": written})
        except (OSError, FormError) as error:
            self.errors.append(f"{path}: write: {getattr(error, 'strerror', None) or error}")
        finally:
            os.close(fd)


async def upload_many(daemon, exchange):
    """Pairs of files[i].path and files[i].file. With any error it is a 400, though some files are written."""
    try:
        parts = form(exchange)
    except FormError:
        raise ToolboxError(400, {"errors": ["invalid multipart form"]}) from None
    batch = Batch(daemon)
    try:
        while (part := await parts.next()) is not None:
            await batch.take(part)
    except FormError as error:
        batch.errors.append(f"reading part: {error}")
    await exchange.read()
    files = batch.files or None     # Go's empty slice
    if batch.errors:
        raise ToolboxError(400, {"errors": batch.errors, "files": files})
    await send_json(exchange, 200, {"files": files})


ROUTES = [("POST", "/files/upload", upload), ("POST", "/files/bulk-upload", upload_many)]
