# SPDX-License-Identifier: ISC
"""POST /files: files written in place, as envd does it (api/upload.go); and POST /files/compose."""
import email.message
import errno
import gzip
import json
import os
import posixpath
import zlib

from aiohttp import ClientError, MultipartReader, web
from aiohttp.streams import StreamReader

from ..common.machine import MachineError
from ..common.streams import write_all
from .files import BLOCK, FileError, guarded, open_file, resolved
from .filesystem_rpc import call, ensure_dirs
from .rpc import RpcError, decode, field


async def upload(envd, exchange):
    await guarded(envd, exchange, "write", receive_files)


async def receive_files(envd, exchange, user):
    body, raw_allowed = await request_body(exchange), envd.version >= (0, 5, 7)
    given = exchange.request.headers.get("Content-Type", "")
    kind = given.partition(";")[0].strip().lower()
    try:
        if kind == "application/octet-stream" and raw_allowed:
            saved = [await receive_raw(envd, exchange, body, user)]
        elif kind.startswith("multipart/"):
            saved = await receive_multipart(envd, exchange, body, user)
        elif raw_allowed:
            raise FileError(400, f"unsupported content type: {given}, "
                                 "expected multipart/form-data or application/octet-stream")
        else:
            raise FileError(500, "error parsing multipart form: request Content-Type isn't multipart/form-data")
    except (web.RequestPayloadError, ClientError, ValueError) as error:
        raise FileError(500, f"error reading form: {error}") from None
    # envd sets no type, so Go's server guesses one: it is not application/json.
    await exchange.send(200, json.dumps(saved, separators=(",", ":"), ensure_ascii=False).encode(),
                        {"Content-Type": "text/plain; charset=utf-8"})


async def request_body(exchange):
    """The stream of the body; one sent as gzip is inflated first (whole: only small ones are sent so)."""
    given = exchange.request.headers.get("Content-Encoding", "identity")
    encoding = given.partition(";")[0].strip().lower()
    if encoding == "identity":
        return exchange.request.content
    if encoding != "gzip":
        raise FileError(400, f"error decompressing request body: unsupported Content-Encoding: {given}, "
                             "supported: [gzip]")
    try:
        data = gzip.decompress(await exchange.read())
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(400, f"error decompressing request body: failed to create gzip reader: {error}") from None
    body = StreamReader(exchange.request.protocol, BLOCK)
    body.feed_data(data)
    body.feed_eof()
    return body


async def receive_raw(envd, exchange, body, user):
    if "path" not in exchange.request.query:
        raise FileError(400, "path query parameter is required for raw body upload")
    path = resolved(envd, exchange.request.query["path"], user, "error resolving path")
    return await save(envd, exchange, path, body.readany)


async def receive_multipart(envd, exchange, body, user):
    saved, reader = [], MultipartReader(exchange.request.headers, body)
    while (part := await reader.next()) is not None:
        if part.name != "file":
            continue
        given = exchange.request.query["path"] if "path" in exchange.request.query else file_name(part)
        path = resolved(envd, given, user, "error resolving path")
        if any(entry["path"] == path for entry in saved):
            raise FileError(400, f"you cannot upload multiple files to the same path '{path}' in one upload request, "
                                 "only the first specified file was uploaded")
        saved.append(await save(envd, exchange, path, lambda part=part: part.read_chunk(BLOCK)))
    return saved


def file_name(part):
    """The filename of a part with its whole path; aiohttp's own parser strips leading slashes."""
    header = email.message.Message()
    header["Content-Disposition"] = part.headers.get("Content-Disposition", "")
    name = header.get_filename()
    if name is None:
        raise FileError(400, "error getting multipart custom part file name: filename not found in "
                             "Content-Disposition header")
    return name


async def save(envd, exchange, path, read):
    """Write one file in place: truncated at once, filled as bytes arrive, left partial when they stop."""
    try:
        await ensure_dirs(envd, posixpath.dirname(path))
    except RpcError as error:
        raise FileError(500, f"error ensuring directories: {error.message}") from None
    await refuse_directory(envd, path)
    fd = await open_file(envd, path, "write")
    try:
        await fill(envd, exchange, fd, read)
        metadata = store_metadata(envd, exchange, fd)
    finally:
        os.close(fd)
    entry = {"name": posixpath.basename(path), "path": path, "type": "file"}
    return {"metadata": metadata, **entry} if metadata else entry


async def refuse_directory(envd, path):
    try:
        info = await call(envd, "status", path=path)
    except MachineError as error:
        if error.errno_name == "ENOENT":
            return
        raise FileError(500, f"error getting file info: stat {path}: {error.text.lower()}") from None
    if info["kind"] == "dir":
        raise FileError(400, f"path is a directory: {path}")


async def fill(envd, exchange, fd, read):
    """Copy the body into the file. The disk_free setting makes a small disk."""
    free, length = envd.config["disk_free"], exchange.request.content_length
    try:
        while data := await read():
            if free is not None and len(data) > free:
                os.write(fd, data[:free])
                raise OSError(errno.ENOSPC, "no space left on device")
            free = None if free is None else free - len(data)
            await write_all(fd, data)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        prefix = f"attempted to write {length} bytes: " if length else ""
        raise FileError(507, prefix + "not enough disk space available") from None


def store_metadata(envd, exchange, fd):
    """X-Metadata-* headers replace the file's set of user.e2b.* attributes (envd >= 0.6.2)."""
    if envd.version < (0, 6, 2):
        return {}
    wanted = {name.lower()[len("x-metadata-"):]: value for name, value in exchange.request.headers.items()
              if name.lower().startswith("x-metadata-")}
    try:
        for name in os.listxattr(fd):
            if name.startswith("user.e2b.") and name[len("user.e2b."):] not in wanted:
                os.removexattr(fd, name)
        for name, value in wanted.items():
            os.setxattr(fd, "user.e2b." + name, value.encode())
    except OSError:
        return {}       # a file system without attributes: envd logs and goes on
    return wanted


async def compose(envd, exchange):
    await guarded(envd, exchange, "write", concatenate)


async def concatenate(envd, exchange, user):
    """POST /files/compose: join source_paths into destination and delete them."""
    try:
        message = decode(await exchange.read())
        names, target = field(message, "source_paths", list, []), field(message, "destination", str, "")
        sources, target = [envd.resolve(path, user) for path in names], envd.resolve(target, user)
    except RpcError as error:
        raise FileError(400, error.message) from None
    for name, path in zip(names, sources):
        try:
            await call(envd, "status", path=path)
        except MachineError:
            raise FileError(404, f"source file not found: {name}") from None
    out = await open_file(envd, target, "write")
    try:
        for path in sources:
            fd = await open_file(envd, path, "read")
            while data := os.read(fd, BLOCK):
                await write_all(out, data)
            os.close(fd)
    finally:
        os.close(out)
    for path in sources:
        await call(envd, "remove", path=path)
    await exchange.send_json(200, {"path": target, "name": posixpath.basename(target), "type": "file"})
