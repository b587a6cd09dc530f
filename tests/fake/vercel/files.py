# SPDX-License-Identifier: ISC
"""The file endpoints of a session: write (a gzip of a tar archive), read, mkdir.

An entry's owner is ignored, its mode kept. Files are opened and written in place, one after the other: an archive that
cannot be unpacked to its end leaves what came before.
"""
import asyncio
import os
import posixpath
import tarfile
import tempfile
import urllib.parse

from ..common.machine import MachineError
from ..common.streams import read_some
from .api import JSON, ApiError, bad_request, field, not_found, read_body
from .commands import missing_machine

CHUNK = 64 << 10


class WriteError(Exception):
    """Why an archive could not be unpacked."""


async def write(session, exchange):
    request = exchange.request
    if request.headers.get("Content-Type", "").partition(";")[0].strip() not in ("application/gzip",
                                                                                 "application/x-gzip"):
        raise bad_request("Invalid request: expected a body of type application/gzip.")
    directory = posixpath.join(session.profile.cwd, request.headers.get("x-cwd", ""))
    with tempfile.TemporaryFile(dir=session.registry.root) as archive:
        await receive(exchange, archive, session.config["max_write_bytes"])
        archive.seek(0)
        try:
            await unpack(session, archive, directory)
        except (tarfile.TarError, EOFError, OSError) as error:
            if isinstance(error, MachineError):
                raise missing_machine(session, error) or bad_request(error.text) from None
            raise bad_request(f"Invalid archive: {error}") from None
        except WriteError as error:
            raise bad_request(str(error)) from None
    await exchange.send_json(200, {}, JSON)


async def receive(exchange, archive, limit):
    """The body, with a length or in chunks."""
    size = 0
    async for data in exchange.request.content.iter_any():
        size += len(data)
        if limit is not None and size > limit:
            raise ApiError(413, "too_large", "Request body is too large.")
        archive.write(data)


async def unpack(session, archive, directory):
    """Each entry in turn. Of other kinds than files and directories nobody has ever sent one."""
    loop, made = asyncio.get_running_loop(), set()
    with await loop.run_in_executor(None, lambda: tarfile.open(fileobj=archive, mode="r:gz")) as tar:
        while (entry := await loop.run_in_executor(None, tar.next)) is not None:
            name = entry.name.lstrip("/")
            if ".." in name.split("/") or not name:
                raise WriteError(f"Invalid archive: the name {entry.name!r} leaves the directory.")
            path = posixpath.join(directory, name)
            if entry.isdir():
                await make_directory(session, path, made)
            elif entry.isreg():
                await make_directory(session, posixpath.dirname(path), made)
                await write_file(session, path, tar.extractfile(entry), entry)
            else:
                raise WriteError(f"Invalid archive: {entry.name!r} is neither a file nor a directory.")


async def make_directory(session, path, made):
    """With its parents; each name is asked for once, an archive has many files below the same one."""
    if path not in made:
        await machine_call(session, "make_directories", path=path, mode=0o755)
        made.add(path)


async def machine_call(session, op, path, **arguments):
    """An operation of the machine; what it cannot do is said with the path, unless it was the session's end."""
    try:
        return await session.machine.call(op, path=path, **arguments)
    except MachineError as error:
        if missing_machine(session, error):
            raise
        raise WriteError(f"Failed to write {path}: {error.text.lower()}") from None


async def write_file(session, path, source, entry):
    _, (fd,) = await machine_call(session, "open", path=path, how="write")
    try:
        await asyncio.get_running_loop().run_in_executor(None, copy, source, fd)
    except OSError as error:
        raise WriteError(f"Failed to write {path}: {error.strerror}") from None
    finally:
        os.close(fd)
    await machine_call(session, "chmod", path=path, mode=entry.mode & 0o7777)


def copy(source, fd):
    while data := source.read(CHUNK):
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view):]


# -- reading ----------------------------------------------------------------------------------------------------------


async def read(session, exchange):
    """The bytes as they are; no ranges. Without a length a stream that ends early cannot be told (`read_length`)."""
    body = await read_body(exchange)
    path = path_of(session, body)
    try:
        status, _ = await session.machine.call("status", path=path)
        if status["kind"] == "dir":
            raise bad_request(f"Failed to read {path}: is a directory")
        _, (fd,) = await session.machine.call("open", path=path, how="read")
    except MachineError as error:
        raise missing_machine(session, error) or read_error(path, error) from None
    try:
        await exchange.open(200, {
            "Content-Type": "application/octet-stream", "Content-Disposition":
            f"attachment; filename*=UTF-8''{urllib.parse.quote(posixpath.basename(path))}",
        }, status["size"] if session.config["read_length"] else None)
        while data := await read_some(fd, CHUNK):
            await exchange.write(data)
            if session.closing.done():
                exchange.cut("fin")
                return
        await exchange.close()
    finally:
        os.close(fd)


def path_of(session, body):
    path, cwd = field(body, "path", str), field(body, "cwd", str) or ""
    if not path:
        raise bad_request("Invalid request: missing required property `path`.")
    return posixpath.join(session.profile.cwd, cwd, path)


def read_error(path, error):
    if error.errno_name in ("ENOENT", "ENOTDIR"):
        return not_found(f"File '{path}' not found.")
    return bad_request(f"Failed to read {path}: {error.text.lower()}")


async def make_directories(session, exchange):
    """One directory, or with its parents: the documents disagree about the default (`mkdir_recursive`)."""
    body = await read_body(exchange)
    path, recursive = path_of(session, body), field(body, "recursive", bool, session.config["mkdir_recursive"])
    try:
        if not recursive:
            await refuse_mkdir(session, path)
        await session.machine.call("make_directories", path=path, mode=0o755)
    except MachineError as error:
        raise missing_machine(session, error) or bad_request(f"Failed to create {path}: {error.text.lower()}") from None
    await exchange.send_json(200, {}, JSON)


async def refuse_mkdir(session, path):
    """As mkdir without -p: the parent must be there, the name must not."""
    await session.machine.call("stat", path=posixpath.dirname(path.rstrip("/")))
    try:
        await session.machine.call("stat", path=path)
    except MachineError as error:
        if error.errno_name == "ENOENT":
            return
        raise
    raise bad_request(f"Failed to create {path}: file exists")


ROUTES = [("POST", "/fs/write", write), ("POST", "/fs/read", read), ("POST", "/fs/mkdir", make_directories)]
