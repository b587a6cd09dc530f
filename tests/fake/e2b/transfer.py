# SPDX-License-Identifier: ISC
"""GET and POST /files: whole files in and out, as envd's HTTP API does it (api/download.go, api/upload.go)."""
import base64
import email.message
import email.utils
import errno
import hashlib
import hmac
import mimetypes
import os
import posixpath
import re
import time
import zlib

from aiohttp import ClientError, web

from ..common.machine import HOMES, MachineError
from .filesystem_rpc import call, ensure_dirs
from .process import read_some, write_all
from .rpc import RpcError

BLOCK = 1 << 18
RANGE = re.compile(r"bytes=(\d*)-(\d*)$")
CONDITIONAL = ("Range", "If-Modified-Since", "If-None-Match", "If-Range")


class FileError(Exception):
    """An answer of the /files API other than success."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status, self.message = status, message


async def guarded(envd, exchange, operation, function):
    """Check signature and user, run the function, answer its errors in envd's shape."""
    from .envd import send_error
    try:
        check_signature(envd, exchange, operation)
        await function(envd, exchange, user_of(envd, exchange))
    except FileError as error:
        await send_error(exchange, error.status, error.message)
    except RpcError as error:       # path resolution
        await send_error(exchange, 400, error.message)


def check_signature(envd, exchange, operation):
    """A token in the header wins; else the query must be signed with it."""
    if not envd.token:
        return
    query = exchange.request.query
    if exchange.request.headers.get("X-Access-Token"):
        if not envd.token_matches(exchange):
            raise FileError(401, "access token present in header but does not match")
        return
    if "signature" not in query:
        raise FileError(401, "missing signature query parameter")
    parts = [query.get("path", ""), operation, query.get("username", ""), envd.token]
    expires = query.get("signature_expiration")
    digest = hashlib.sha256(":".join(parts + [expires] * (expires is not None)).encode()).digest()
    expected = "v1_" + base64.b64encode(digest).decode().rstrip("=")
    if not hmac.compare_digest(expected.encode(), query["signature"].encode()):
        raise FileError(401, "invalid signature")
    if expires is not None and int(expires) < time.time():
        raise FileError(401, "signature is already expired")


def user_of(envd, exchange):
    user = exchange.request.query.get("username")
    if user is None and envd.version < (0, 4, 0):
        raise FileError(400, "username not provided")
    user = "user" if user is None else user
    if user not in HOMES:
        raise FileError(401, f"error looking up user '{user}': user: unknown user {user}")
    return user


# -- download -------------------------------------------------------------------------------------------------------

async def download(envd, exchange):
    await guarded(envd, exchange, "read", send_file)


async def send_file(envd, exchange, user):
    path = envd.resolve(exchange.request.query.get("path", ""), user)
    info = await file_status(envd, path)
    encoding = accepted_encoding(exchange.request.headers.get("Accept-Encoding", ""))
    if any(name in exchange.request.headers for name in CONDITIONAL):
        encoding = "identity"
    if encoding is None:
        raise FileError(406, "error parsing Accept-Encoding: no acceptable encoding found, supported: [gzip]")
    fd = await open_file(envd, path, "read")
    headers = {"Vary": "Accept-Encoding", "Content-Disposition": f"inline; filename={quoted(posixpath.basename(path))}",
               "Content-Type": mimetypes.guess_type(path)[0] or "application/octet-stream"}
    try:
        if encoding == "gzip":
            await send_gzip(exchange, fd, headers)
        else:
            await send_content(exchange, fd, info, headers)
    finally:
        os.close(fd)


async def file_status(envd, path):
    try:
        info = await call(envd, "status", path=path)
    except MachineError as error:
        if error.errno_name == "ENOENT":
            raise FileError(404, f"path '{path}' does not exist") from None
        raise FileError(500, f"error checking if path exists '{path}': stat {path}: {error.text.lower()}") from None
    if info["kind"] == "dir":
        raise FileError(400, f"path '{path}' is a directory")
    return info


async def open_file(envd, path, how):
    """A descriptor of a file in the sandbox."""
    try:
        return (await envd.machine.call("open", path=path, how=how))[1][0]
    except MachineError as error:
        if error.errno_name == "ENOSPC":
            raise FileError(507, f"not enough inodes available: open {path}: no space left on device") from None
        doing = "opening file" + (f" '{path}'" if how == "read" else "")
        raise FileError(500, f"error {doing}: open {path}: {error.text.lower()}") from None


def quoted(name):
    """A parameter of Content-Disposition, as mime.FormatMediaType writes it."""
    if re.fullmatch(r"[\w.!#$%&'*+^`|~-]+", name, re.ASCII):
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def accepted_encoding(header):
    """"gzip" or "identity" by Accept-Encoding, None when neither will do."""
    if not header:
        return "identity"
    qualities = {}
    for item in header.split(","):
        name, _, parameters = item.strip().partition(";")
        match = re.search(r"q=([\d.]+)", parameters)
        qualities[name.strip().lower()] = float(match.group(1)) if match else 1.0
    identity = qualities.get("identity", qualities.get("*", 1.0) or 0.0) > 0
    for name, quality in sorted(qualities.items(), key=lambda item: -item[1]):
        if quality == 0:
            continue
        if name in ("gzip", "identity"):
            return name
        if name == "*":
            return "identity" if identity else "gzip"
    return "identity" if identity else None


async def send_gzip(exchange, fd, headers):
    """The compressed file, of unknown length: the trap of advertising gzip."""
    await exchange.open(200, {**headers, "Content-Encoding": "gzip"})
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    while data := await read_some(fd, BLOCK):
        if packed := packer.compress(data):
            await exchange.write(packed)
    await exchange.write(packer.flush())
    await exchange.close()


async def send_content(exchange, fd, info, headers):
    """What http.ServeContent does: ranges, If-Modified-Since, the length that stat told."""
    size, modified = info["size"], info["mtime_ns"] // 10 ** 9
    headers = {**headers, "Accept-Ranges": "bytes", "Last-Modified": email.utils.formatdate(modified, usegmt=True)}
    since = exchange.request.headers.get("If-Modified-Since")
    if since and email.utils.parsedate_to_datetime(since).timestamp() >= modified:
        await exchange.send(304, b"", headers)
        return
    status, start, end = wanted_range(exchange.request.headers.get("Range", ""), size)
    if status == 416:
        await exchange.send(416, b"invalid range: failed to overlap\n",
                            {"Content-Range": f"bytes */{size}", "Content-Type": "text/plain; charset=utf-8"})
        return
    if status == 206:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    await exchange.open(status, headers, end - start)
    if start:
        os.lseek(fd, start, os.SEEK_SET)
    left = end - start
    while left and (data := await read_some(fd, min(BLOCK, left))):
        left -= len(data)
        await exchange.write(data)
    if left:
        exchange.cut()      # the file shrank: the promised length cannot be kept
        return
    await exchange.close()


def wanted_range(header, size):
    """(status, start, end) of a request with this Range header."""
    match = RANGE.match(header)
    if not match or match.groups() == ("", ""):
        return 200, 0, size
    first, last = match.groups()
    if not first:
        return 206, max(size - int(last), 0), size
    if int(first) >= size:
        return 416, 0, 0
    return 206, int(first), min(int(last) + 1 if last else size, size)


# -- upload ---------------------------------------------------------------------------------------------------------

async def upload(envd, exchange):
    await guarded(envd, exchange, "write", receive_files)


async def receive_files(envd, exchange, user):
    request = exchange.request
    encoding = request.headers.get("Content-Encoding", "identity").partition(";")[0].strip().lower()
    if encoding not in ("gzip", "identity"):        # aiohttp has inflated gzip already
        raise FileError(400, f"error decompressing request body: unsupported Content-Encoding: {encoding}, "
                             "supported: [gzip]")
    raw_allowed = envd.version >= (0, 5, 7)
    try:
        if request.content_type == "application/octet-stream" and raw_allowed:
            saved = [await receive_raw(envd, exchange, user)]
        elif request.content_type.startswith("multipart/"):
            saved = await receive_multipart(envd, exchange, user)
        elif raw_allowed:
            raise FileError(400, f"unsupported content type: {request.headers.get('Content-Type', '')}, "
                                 "expected multipart/form-data or application/octet-stream")
        else:
            raise FileError(500, "error parsing multipart form: request Content-Type isn't multipart/form-data")
    except (web.RequestPayloadError, ClientError, ValueError) as error:
        raise FileError(500, f"error reading form: {error}") from None
    await exchange.send_json(200, saved)


async def receive_raw(envd, exchange, user):
    if "path" not in exchange.request.query:
        raise FileError(400, "path query parameter is required for raw body upload")
    path = envd.resolve(exchange.request.query["path"], user)
    return await save(envd, exchange, path, exchange.request.content.readany)


async def receive_multipart(envd, exchange, user):
    saved, reader = [], await exchange.request.multipart()
    while (part := await reader.next()) is not None:
        if part.name != "file":
            continue
        path = envd.resolve(exchange.request.query.get("path", file_name(part)), user)
        if any(entry["path"] == path for entry in saved):
            raise FileError(400, f"you cannot upload multiple files to the same path '{path}' in one upload request, "
                                 "only the first specified file was uploaded")
        saved.append(await save(envd, exchange, path, lambda part=part: part.read_chunk(BLOCK)))
    return saved


def file_name(part):
    """The filename of a part with its whole path; aiohttp's own parser strips leading slashes."""
    header = email.message.Message()
    header["Content-Disposition"] = part.headers.get("Content-Disposition", "")
    return header.get_filename("")


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
    entry = {"path": path, "name": posixpath.basename(path), "type": "file"}
    return {**entry, "metadata": metadata} if metadata else entry


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


# -- compose --------------------------------------------------------------------------------------------------------

async def compose(envd, exchange):
    await guarded(envd, exchange, "write", concatenate)


async def concatenate(envd, exchange, user):
    """POST /files/compose: join source_paths into destination and delete them."""
    from .rpc import decode, field
    message = decode(await exchange.read())
    sources = [envd.resolve(path, user) for path in field(message, "source_paths", list, [])]
    target = envd.resolve(field(message, "destination", str, ""), user)
    for path in sources:
        await file_status(envd, path)
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
