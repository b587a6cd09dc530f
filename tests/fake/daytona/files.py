# SPDX-License-Identifier: ISC
"""The file endpoints that move no contents: list, info, folders, permissions, move, delete, search, replace.

Paths are in the query, relative ones start at the daemon's directory. Errors are a status and an empty body.
"""
import os
import posixpath
import stat

from ..common.machine import MachineError
from ..common.streams import read_some, write_all
from .wire import ToolboxError, go_time, read_json, rfc3339, send_json

BLOCK = 1 << 18


def bad_request():
    return ToolboxError(400)


def required(daemon, exchange, *names):
    """These query parameters as absolute paths, otherwise as they are; a missing or empty one is a 400."""
    values = [exchange.request.query.get(name, "") for name in names]
    if not all(values):
        raise bad_request()
    return [daemon.absolute(value) for value in values]


def mode_string(mode):
    """Go's FileMode.String()."""
    kinds = {stat.S_IFDIR: "d", stat.S_IFLNK: "L", stat.S_IFBLK: "D", stat.S_IFCHR: "Dc", stat.S_IFIFO: "p",
             stat.S_IFSOCK: "S"}
    text = kinds.get(stat.S_IFMT(mode), "")
    for bit, letter in ((stat.S_ISUID, "u"), (stat.S_ISGID, "g"), (stat.S_ISVTX, "t")):
        text += letter if mode & bit else ""
    bits = "".join(letter if mode & (0o400 >> place) else "-" for place, letter in enumerate("rwxrwxrwx"))
    return (text or "-") + bits


def file_info(facts):
    return {"name": facts["name"], "size": facts["size"], "mode": mode_string(facts["mode"]),
            "modTime": go_time(facts["mtime_ns"]), "modifiedAt": rfc3339(facts["mtime_ns"]),
            "isDir": stat.S_ISDIR(facts["mode"]), "owner": str(facts["uid"]), "group": str(facts["gid"]),
            "permissions": f"{facts['mode'] & 0o777:04o}"}


async def list_files(daemon, exchange):
    """What cannot be looked at (a dangling symlink) is silently left out."""
    path = daemon.absolute(exchange.request.query.get("path", "") or ".")
    entries = await daemon.call("list", path=path)
    await send_json(exchange, 200, [file_info(entry) for entry in entries])


async def info(daemon, exchange):
    path, = required(daemon, exchange, "path")
    await send_json(exchange, 200, file_info(await daemon.call("stat", path=path)))


def octal(text, default):
    if not text:
        return default
    try:
        return int(text, 8)
    except ValueError:
        raise bad_request() from None


async def make_folder(daemon, exchange):
    path, = required(daemon, exchange, "path")
    mode = octal(exchange.request.query.get("mode", ""), 0o755)
    try:
        await daemon.call("make_directories", path=path, mode=mode & 0o777)
    except ToolboxError:
        raise bad_request() from None
    await exchange.send(201)


async def set_permissions(daemon, exchange):
    """chmod (the permission bits only) and chown, by numbers or names."""
    path, query = posixpath.normpath(required(daemon, exchange, "path")[0]), exchange.request.query
    await daemon.call("stat", path=path)
    mode, owner, group = octal(query.get("mode", ""), None), query.get("owner", ""), query.get("group", "")
    try:
        if mode is not None:
            await daemon.call("chmod", path=path, mode=mode & 0o777)
        if owner or group:
            await daemon.call("chown", path=path, owner=owner, group=group)
    except ToolboxError:
        raise bad_request() from None
    await exchange.send(200)


async def exists(daemon, path):
    try:
        await daemon.call("stat", path=path)
    except ToolboxError:
        return False
    return True


async def move(daemon, exchange):
    """Rename; an existing target is a 409, so nothing can be replaced by it."""
    source, destination = map(posixpath.normpath, required(daemon, exchange, "source", "destination"))
    await daemon.call("stat", path=source)
    await daemon.call("stat", path=posixpath.dirname(destination))
    if await exists(daemon, destination):
        raise ToolboxError(409)
    try:
        await daemon.call("move", source=source, destination=destination)
    except ToolboxError:
        raise bad_request() from None
    await exchange.send(200)


async def delete(daemon, exchange):
    """A directory only with recursive=true; a dangling symlink is not found."""
    path, = required(daemon, exchange, "path")
    recursive = exchange.request.query.get("recursive") == "true"
    facts = await daemon.call("stat", path=path)
    if stat.S_ISDIR(facts["mode"]) and not recursive:
        raise bad_request()
    try:
        await daemon.call("delete", path=path, recursive=recursive)
    except ToolboxError:
        raise bad_request() from None
    await exchange.send(204)


async def search(daemon, exchange, operation):
    """(what was found below the path, a function that tells a found path as the question named it)."""
    (path,), pattern = required(daemon, exchange, "path"), exchange.request.query.get("pattern", "")
    if not pattern:
        raise bad_request()
    given = posixpath.normpath(exchange.request.query["path"])
    found = await daemon.call(operation, path=posixpath.normpath(path), pattern=pattern)
    return found, lambda name: given + name[len(posixpath.normpath(path)):]


async def search_names(daemon, exchange):
    found, as_asked = await search(daemon, exchange, "search_names")
    await send_json(exchange, 200, {"files": [as_asked(name) for name in found]})


async def search_text(daemon, exchange):
    found, as_asked = await search(daemon, exchange, "search_text")
    await send_json(exchange, 200, [{**match, "file": as_asked(match["file"])} for match in found])


async def replace(daemon, exchange):
    """Replace a text in each of some files; each of them alone may fail."""
    try:
        body = await read_json(exchange, "ReplaceRequest")
        names, pattern = body.required("files", "[]string"), body.required("pattern", "string")
        value = body.get("newValue", "string")
        if value is None:
            raise ValueError
    except ValueError:
        raise bad_request() from None
    results = []
    for name in names:
        try:
            await replace_in(daemon, daemon.absolute(name), pattern.encode(), value.encode())
            results.append({"file": name, "success": True})
        except MachineError as error:
            if error.errno_name == "ESHUTDOWN":
                raise
            results.append({"file": name, "success": False, "error": f"open {name}: {error.text.lower()}"})
    await send_json(exchange, 200, results)


async def replace_in(daemon, path, pattern, value):
    old = await read_whole(daemon, path)
    _, (fd,) = await daemon.machine.call("open", path=path, how="write")
    try:
        await write_all(fd, old.replace(pattern, value))
    finally:
        os.close(fd)


async def read_whole(daemon, path):
    """A file's bytes, MachineError if it cannot be opened."""
    _, (fd,) = await daemon.machine.call("open", path=path, how="read")
    data = bytearray()
    try:
        while part := await read_some(fd, BLOCK):
            data += part
    finally:
        os.close(fd)
    return bytes(data)


ROUTES = [
    ("GET", "/files/?", list_files), ("DELETE", "/files/?", delete), ("GET", "/files/info", info),
    ("POST", "/files/folder", make_folder), ("POST", "/files/permissions", set_permissions),
    ("POST", "/files/move", move), ("GET", "/files/search", search_names), ("GET", "/files/find", search_text),
    ("POST", "/files/replace", replace),
]
