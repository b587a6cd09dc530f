# SPDX-License-Identifier: ISC
"""Files into the sandbox: POST /files/upload (one, spooled first) and POST /files/bulk-upload (streamed)."""
import os
import posixpath
import tempfile

from aiohttp import ClientError, MultipartReader, web

from ..common.machine import MachineError
from ..common.streams import write_all
from .files import BLOCK, bad_request, required
from .wire import ToolboxError, send_json

FORM_ERRORS = (web.RequestPayloadError, ClientError, ValueError)


def form(exchange):
    """The parts of the request's body; ValueError if it is no form."""
    if not exchange.request.content_type.startswith("multipart/"):
        raise ValueError("request Content-Type isn't multipart/form-data")
    return MultipartReader(exchange.request.headers, exchange.request.content)


async def upload(daemon, exchange):
    """The field `file`, received whole before a byte of it is written."""
    path, = required(daemon, exchange, "path")
    with tempfile.TemporaryFile() as spool:
        try:
            found = await receive(form(exchange), spool)
        except FORM_ERRORS:
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


async def receive(reader, spool):
    """Copy the part `file` into a temporary file; False if there is none."""
    found = False
    while (part := await reader.next()) is not None:
        while data := await part.read_chunk(BLOCK):
            if part.name == "file":
                spool.write(data)
        found = found or part.name == "file"
    return found


class Batch:
    """One bulk upload: where the files go, what was written, what went wrong."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.destinations, self.files, self.errors = {}, [], []

    async def take(self, part):
        """One part: a path, or a file whose path has been told before. Others are passed over."""
        name = part.name or ""
        index = name.removeprefix("files[").removesuffix("].path").removesuffix("].file")
        if name.endswith(".path"):
            path = (await part.read()).decode("utf-8", "replace").strip()
            if path:
                self.destinations[index] = path
            else:
                self.errors.append(f"path[{index}]: empty path")
        elif name.endswith(".file"):
            if index in self.destinations:
                await self._save(self.destinations[index], part)
                return
            self.errors.append(f"file[{index}]: missing .path metadata")
        while await part.read_chunk(BLOCK):
            pass

    async def _save(self, path, part):
        """Straight into the target: truncated first, not atomic, parents made, symlinks followed."""
        daemon, parent = self.daemon, posixpath.dirname(path) or "."
        target, doing, fd, written = daemon.resolve(path), f"mkdir {parent}", -1, 0
        try:
            await daemon.machine.call("make_directories", path=daemon.resolve(parent), mode=0o755)
            doing = "create"
            _, (fd,) = await daemon.machine.call("open", path=target, how="write")
            doing = "write"
            while data := await part.read_chunk(BLOCK):
                await write_all(fd, data)
                written += len(data)
        except OSError as error:
            if getattr(error, "errno_name", None) == "ESHUTDOWN":
                raise
            self.errors.append(f"{path}: {doing}: open {path}: {(error.strerror or str(error)).lower()}")
            while await part.read_chunk(BLOCK):
                pass
        else:
            self.files.append({"path": path, "bytes": written})
        finally:
            if fd >= 0:
                os.close(fd)


async def upload_many(daemon, exchange):
    """Pairs of files[i].path and files[i].file. With any error it is a 400, though some files are written."""
    try:
        reader = form(exchange)
    except ValueError:
        raise ToolboxError(400, {"errors": ["invalid multipart form"]}) from None
    batch = Batch(daemon)
    try:
        while (part := await reader.next()) is not None:
            await batch.take(part)
    except FORM_ERRORS as error:
        batch.errors.append(f"reading part: {error}")
    await exchange.read()
    files = batch.files or None     # Go's empty slice
    if batch.errors:
        raise ToolboxError(400, {"errors": batch.errors, "files": files})
    await send_json(exchange, 200, {"files": files})


ROUTES = [("POST", "/files/upload", upload), ("POST", "/files/bulk-upload", upload_many)]
