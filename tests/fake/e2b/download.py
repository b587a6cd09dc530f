# SPDX-License-Identifier: ISC
"""GET /files: whole files and parts of them, as envd sends them (api/download.go and http.ServeContent)."""
import email.utils
import mimetypes
import os
import posixpath
import re
import zlib
from urllib.parse import quote

from ..common.machine import MachineError
from ..common.streams import read_some
from .files import BLOCK, PLAIN, FileError, guarded, open_file, resolved
from .filesystem_rpc import call

SMALL = 2048           # net/http gives a body that fits its buffer a length
RANGE = re.compile(r"bytes=(\d*)-(\d*)$")
TEXT = bytes(set(range(256)) - set(range(9)) - {11} - set(range(14, 27)) - set(range(28, 32)))
CONDITIONAL = ("Range", "If-Modified-Since", "If-None-Match", "If-Range")


async def download(envd, exchange):
    await guarded(envd, exchange, "read", send_file)


async def send_file(envd, exchange, user):
    text = exchange.request.query.get("path", "")
    path = resolved(envd, text, user, f"error expanding and resolving path '{text}'")
    info = await file_status(envd, path)
    encoding = accepted_encoding(exchange.request.headers.get("Accept-Encoding", ""))
    if encoding is not None and any(name in exchange.request.headers for name in CONDITIONAL):
        encoding = "identity"
    if encoding is None:
        raise FileError(406, "error parsing Accept-Encoding: no acceptable encoding found, supported: [gzip]")
    fd = await open_file(envd, path, "read")
    headers = {"Vary": "Accept-Encoding", "Content-Disposition": f"inline; {parameter(posixpath.basename(path))}"}
    try:
        headers["Content-Type"] = content_type(path, fd if encoding == "identity" else None)
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


def parameter(name):
    """The filename parameter of Content-Disposition, as mime.FormatMediaType writes it."""
    if not name.isascii():
        return "filename*=utf-8''" + quote(name, safe="!#$&+-.^_`|~")
    if re.fullmatch(r"[\w.!#$%&'*+^`|~-]+", name):
        return "filename=" + name
    return 'filename="' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def content_type(path, fd):
    """By the name's extension, else by a look at the first bytes."""
    kind = mimetypes.guess_type(path)[0]
    if kind is None:
        if fd is None or os.pread(fd, 512, 0).translate(None, TEXT):
            return "application/octet-stream"
        kind = "text/plain"
    return kind + "; charset=utf-8" if kind.startswith("text/") else kind


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
    """The compressed file, whose length nobody tells unless it is small: the trap of advertising gzip."""
    headers, packer, packed = {**headers, "Content-Encoding": "gzip"}, zlib.compressobj(6, zlib.DEFLATED, 31), b""
    while data := await read_some(fd, BLOCK):
        packed += packer.compress(data)
        if exchange.response is None and len(packed) > SMALL:
            await exchange.open(200, headers)
        if exchange.response is not None:
            await exchange.write(packed)
            packed = b""
    packed += packer.flush()
    if exchange.response is None and len(packed) <= SMALL:
        await exchange.send(200, packed, headers)
        return
    if exchange.response is None:
        await exchange.open(200, headers)
    await exchange.write(packed)
    await exchange.close()


async def send_content(exchange, fd, info, headers):
    """What http.ServeContent does: ranges, If-Modified-Since, the length that stat told."""
    modified, disposition = info["mtime_ns"] // 10 ** 9, {"Content-Disposition": headers["Content-Disposition"]}
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:     # much of /proc
        await exchange.send(500, b"seeker can't seek\n", {**PLAIN, **disposition})
        return
    headers = {**headers, "Accept-Ranges": "bytes", "Last-Modified": email.utils.formatdate(modified, usegmt=True)}
    since = exchange.request.headers.get("If-Modified-Since")
    if since and email.utils.parsedate_to_datetime(since).timestamp() >= modified:
        await exchange.send(304, b"", disposition)
        return
    status, start, end = wanted_range(exchange.request.headers.get("Range", ""), size)
    if status == 416:
        overlap = {"Content-Range": f"bytes */{size}"} if end else {}
        text = b"invalid range: failed to overlap\n" if end else b"invalid range\n"
        await exchange.send(416, text, {**PLAIN, **disposition, **overlap})
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
    """(status, start, end) of a request with this Range header; 416 with an end for one beyond the file's.

    Several ranges at once are answered with the whole file, which HTTP allows.
    """
    if header in ("", "bytes=") or (header.startswith("bytes=") and "," in header):
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
        return (416, 0, 1) if size else (200, 0, 0)
    return 206, int(first), min(int(last) + 1 if last else size, size)
