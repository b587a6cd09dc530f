# SPDX-License-Identifier: ISC
"""Files out of the sandbox: GET /files/download, served as Go's file server does, and POST /files/bulk-download."""
import email.utils
import mimetypes
import os
import posixpath
import re
import stat
from urllib.parse import quote

from ..common.machine import MachineError
from ..common.streams import read_some
from .files import BLOCK, bad_request, required
from .wire import ToolboxError, error_body, read_json, to_json

BOUNDARY = "DAYTONA-FILE-BOUNDARY"
RANGE = re.compile(r"bytes=(\d*)-(\d*)$")
ATTR_CHARS = "!#$&+-.^_`|~"
PATH = "/files/bulk-download"


def latin1(name):
    """A name for a quoted string: what has no place there becomes an underscore."""
    name = name.replace("\\", "\\\\").replace('"', '\\"').translate({13: None, 10: None, 0: None})
    return "".join(char if " " <= char <= "\xff" and char != "\x7f" else "_" for char in name)


def disposition(kind, name):
    return f"{kind}filename=\"{latin1(name)}\"; filename*=utf-8''{quote(name, safe=ATTR_CHARS)}"


async def download(daemon, exchange):
    path = posixpath.normpath(required(daemon, exchange, "path")[0])
    facts = await daemon.call("stat", path=path)
    if stat.S_ISDIR(facts["mode"]):
        raise bad_request()
    headers = {"Content-Description": "File Transfer", "Content-Type": "application/octet-stream",
               "Content-Disposition": disposition("attachment; ", posixpath.basename(path)),
               "Content-Transfer-Encoding": "binary", "Expires": "0", "Cache-Control": "must-revalidate",
               "Pragma": "public"}
    try:
        _, (fd,) = await daemon.machine.call("open", path=path, how="read")
    except MachineError as error:
        if error.errno_name == "ESHUTDOWN":
            raise
        status, text = (403, b"403 Forbidden\n") if error.errno_name == "EACCES" else (404, b"404 page not found\n")
        await exchange.send(status, text, {**without_cache(headers), "Content-Type": "text/plain; charset=utf-8"})
        return
    try:
        await send_content(exchange, fd, facts, headers)
    finally:
        os.close(fd)


def without_cache(headers):
    """The headers that Go's file server leaves on an error."""
    return {name: value for name, value in headers.items() if name != "Cache-Control"}


async def send_content(exchange, fd, facts, headers):
    """The file or a part of it, of the length that stat told: none of most of /proc."""
    size, modified = facts["size"], facts["mtime_ns"] // 10 ** 9
    plain, headers = headers, {**headers, "Accept-Ranges": "bytes",
                               "Last-Modified": email.utils.formatdate(modified, usegmt=True)}
    since = exchange.request.headers.get("If-Modified-Since")
    if since and email.utils.parsedate_to_datetime(since).timestamp() >= modified:
        await exchange.send(304, b"", {"Last-Modified": headers["Last-Modified"]})
        return
    status, start, end = wanted_range(exchange.request.headers.get("Range", ""), size)
    if status == 416:
        overlap = {"Content-Range": f"bytes */{size}"} if end else {}
        await exchange.send(416, b"invalid range: failed to overlap\n" if end else b"invalid range\n", {
            **without_cache(plain), "Content-Type": "text/plain; charset=utf-8", **overlap})
        return
    if status == 206:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    await exchange.open(status, headers, end - start)
    if start:
        os.lseek(fd, start, os.SEEK_SET)
    if not await copy_out(exchange, fd, end - start):
        exchange.cut("fin")      # the file shrank: the promised length cannot be kept
        return
    await exchange.close()


async def copy_out(exchange, fd, left):
    """So many bytes of the file into the answer; False if there are not so many."""
    while left:
        data = await read_some(fd, min(BLOCK, left))
        if not data:
            return False
        left -= len(data)
        await exchange.write(data)
    return True


def wanted_range(header, size):
    """(status, start, end) of a request with this Range header; 416 with an end for one beyond the file's.

    Several ranges at once are answered with the whole file, which HTTP allows.
    """
    if header == "" or (header.startswith("bytes=") and "," in header):
        return 200, 0, size
    match = RANGE.match(header)
    if not match or match.groups() == ("", ""):
        return 416, 0, 0
    first, last = match.groups()
    if not first:
        return 206, max(size - int(last), 0), size
    if last and int(last) < int(first):
        return 416, 0, 0
    if int(first) >= size:
        return 416, 0, 1
    return 206, int(first), min(int(last) + 1 if last else size, size)


async def download_many(daemon, exchange):
    """All files as parts of one answer with a fixed boundary; what fails is a part named `error`."""
    complaint = {"error": 'request body must be {"paths": [ ... ]} and non-empty'}
    try:
        paths = (await read_json(exchange, "FilesDownloadRequest")).get("paths", "[]string")
        if paths is None:
            raise ValueError
    except ValueError:      # another path through the daemon, another type
        raise ToolboxError(400, complaint, {"Content-Type": "text/plain; charset=utf-8"}) from None
    if not paths:
        raise ToolboxError(400, complaint)
    await exchange.open(200, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})
    start = b"--"
    for path in paths:
        await exchange.write(start + BOUNDARY.encode() + b"\r\n")
        start = b"\r\n--"
        if not await send_part(daemon, exchange, path):
            await exchange.close()      # truncated: neither the bytes nor the last boundary
            return
    await exchange.write(f"\r\n--{BOUNDARY}--\r\n".encode())
    await exchange.close()


async def send_part(daemon, exchange, path):
    """One file or the error it met; False if it could not be read to its end."""
    try:
        fd, size = await open_part(daemon, path)
    except FileError as error:
        body = error_body(exchange.request, path, error.status, error.message, error.code)
        await exchange.write(part_head("error", path, {"Content-Type": "application/json; charset=utf-8"})
                             + to_json(body))
        return True
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    kind += "; charset=utf-8" if kind.startswith("text/") else ""
    try:
        await exchange.write(part_head("file", path, {"Content-Length": size, "Content-Type": kind}))
        return await copy_out(exchange, fd, size)
    finally:
        os.close(fd)


def part_head(name, path, headers):
    """The head of a part: headers in the order of their names."""
    headers = {**headers, "Content-Disposition": disposition(f'form-data; name="{name}"; ', path)}
    return "".join(f"{key}: {headers[key]}\r\n" for key in sorted(headers)).encode("latin-1") + b"\r\n"


class FileError(Exception):
    """Why a part is an error part."""

    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


async def open_part(daemon, path):
    """(descriptor, size) of a file to send."""
    if not path:
        raise FileError(400, "INVALID_FILE_PATH", "invalid file path: path is empty")
    try:
        _, (fd,) = await daemon.machine.call("open", path=daemon.absolute(path), how="read")
    except MachineError as error:
        raise file_error(path, error) from None
    info = os.fstat(fd)
    if stat.S_ISDIR(info.st_mode):
        os.close(fd)
        raise FileError(400, "INVALID_FILE_PATH", f"invalid file path: path points to a directory: {path}")
    return fd, info.st_size


def file_error(path, error):
    if error.errno_name == "ESHUTDOWN":
        return error
    if error.errno_name == "ENOENT":
        return FileError(404, "FILE_NOT_FOUND", f"file not found: {path}")
    if error.errno_name in ("EACCES", "EPERM"):
        return FileError(403, "FILE_ACCESS_DENIED", f"permission denied: {path}")
    return FileError(500, "FILE_READ_FAILED", f"failed to open file: open {path}: {error.text.lower()}")


ROUTES = [("GET", "/files/download", download), ("POST", PATH, download_many)]
