# SPDX-License-Identifier: ISC
"""filesystem.Filesystem: Stat, ListDir, MakeDir, Move, Remove. envd does these as root: permissions do not matter."""
import datetime
import posixpath
import stat

from ..common.machine import MachineError
from .rpc import RpcError, field, without_defaults

TYPES = {"file": "FILE_TYPE_FILE", "dir": "FILE_TYPE_DIRECTORY", "symlink": "FILE_TYPE_SYMLINK"}


def timestamp(mtime_ns):
    """RFC 3339 as protojson prints it: 0, 3, 6 or 9 digits of fraction."""
    seconds, nanos = divmod(mtime_ns, 10 ** 9)
    text = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    digits = f"{nanos:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{text}.{digits}Z" if digits else text + "Z"


def go_mode_text(mode):
    """os.FileMode.String(): like ls, but L for a link and D/p/S/c for the special ones."""
    letters = {stat.S_IFDIR: "d", stat.S_IFLNK: "L", stat.S_IFIFO: "p", stat.S_IFSOCK: "S", stat.S_IFCHR: "Dc",
               stat.S_IFBLK: "D"}
    kind = letters.get(stat.S_IFMT(mode), "")
    for bit, letter in ((stat.S_ISUID, "u"), (stat.S_ISGID, "g"), (stat.S_ISVTX, "t")):
        kind += letter if mode & bit else ""
    return (kind or "-") + stat.filemode(mode & 0o777)[1:]


def entry_message(entry, path=None):
    """EntryInfo. A symlink shows its target's type and mode; size is an int64, so a string."""
    link = entry["kind"] == "symlink"
    kind, mode = (entry["target_kind"], entry["target_mode"]) if link else (entry["kind"], entry["mode"])
    return without_defaults({
        "name": entry["name"], "type": TYPES.get(kind), "path": path or entry["path"],
        "size": str(entry["size"]) if entry["size"] else None, "mode": mode & 0o777,
        "permissions": go_mode_text(entry["mode"]), "owner": entry["owner"], "group": entry["group"],
        "modifiedTime": timestamp(entry["mtime_ns"]), "symlinkTarget": entry["target"] if link else None,
        "metadata": entry["xattrs"],
    })


async def call(envd, op, **arguments):
    """An operation of the machine whose errors are for the caller to translate."""
    return (await envd.machine.call(op, **arguments))[0]


async def entry_info(envd, path):
    try:
        return entry_message(await call(envd, "entry", path=path))
    except MachineError as error:
        if error.errno_name == "ENOENT":
            raise RpcError("not_found", f"file not found: lstat {path}: no such file or directory") from None
        raise RpcError("internal", f"error getting file info: lstat {path}: {error.text.lower()}") from None


def path_of(envd, exchange, message, name="path"):
    return envd.resolve(field(message, name, str, ""), envd.auth_user(exchange))


async def stat_entry(envd, exchange, message):
    return {"entry": await entry_info(envd, path_of(envd, exchange, message))}


async def directory_of(envd, path):
    """Where a path leads, which must be a directory."""
    try:
        resolved = await call(envd, "realpath", path=path)
        info = await call(envd, "status", path=resolved)
    except MachineError as error:
        if error.errno_name == "ENOENT":
            raise RpcError("not_found", f"path not found: lstat {path}: no such file or directory") from None
        if error.errno_name == "ELOOP":
            raise RpcError("failed_precondition", f'cyclic symlink or chain >255 links at "{path}"') from None
        raise RpcError("internal", f"error resolving symlink: lstat {path}: {error.text.lower()}") from None
    if info["kind"] != "dir":
        raise RpcError("invalid_argument", f"path is not a directory: {resolved}")
    return resolved


async def list_dir(envd, exchange, message):
    path = path_of(envd, exchange, message)
    resolved = await directory_of(envd, path)
    try:
        entries = await call(envd, "walk", path=resolved, depth=field(message, "depth", int, 0) or 1)
    except MachineError as error:
        raise RpcError("internal", f"error reading directory {resolved}: {error.text.lower()}") from None
    shown = [entry_message(entry, posixpath.join(path, posixpath.relpath(entry["path"], resolved)))
             for entry in entries]
    return without_defaults({"entries": shown})


async def ensure_dirs(envd, path):
    try:
        await call(envd, "ensure_dirs", path=path)
    except MachineError as error:
        if error.errno_name in ("ENOTDIR", "EEXIST"):
            raise RpcError("internal", f"path is a file: {path}") from None
        raise RpcError("internal", f"failed to create directory: mkdir {path}: {error.text.lower()}") from None


async def make_dir(envd, exchange, message):
    path = path_of(envd, exchange, message)
    try:
        kind = (await call(envd, "status", path=path))["kind"]
    except MachineError as error:
        if error.errno_name != "ENOENT":
            raise RpcError("internal", f"error getting file info: stat {path}: {error.text.lower()}") from None
        kind = None
    if kind == "dir":
        raise RpcError("already_exists", f"directory already exists: {path}")
    if kind:
        raise RpcError("invalid_argument", f"path already exists but it is not a directory: {path}")
    await ensure_dirs(envd, path)
    return {"entry": await entry_info(envd, path)}


async def move(envd, exchange, message):
    source, destination = (path_of(envd, exchange, message, name) for name in ("source", "destination"))
    await ensure_dirs(envd, posixpath.dirname(destination))
    try:
        await refuse_directory_target(envd, source, destination)
        await call(envd, "rename", source=source, destination=destination)
    except MachineError as error:
        detail = f"rename {source} {destination}: {error.text.lower()}"
        if error.errno_name == "ENOENT":
            raise RpcError("not_found", f"source file not found: {detail}") from None
        raise RpcError("internal", f"error renaming: {detail}") from None
    return {"entry": await entry_info(envd, destination)}


async def refuse_directory_target(envd, source, destination):
    """Go's os.Rename never replaces a directory, not even an empty one by another."""
    try:
        kind = (await call(envd, "entry", path=destination))["kind"]
    except MachineError:
        return
    if kind == "dir":
        await call(envd, "entry", path=source)      # a missing source is the first thing to tell
        raise MachineError("EEXIST", "file exists")


async def remove(envd, exchange, message):
    path = path_of(envd, exchange, message)
    try:
        await call(envd, "remove", path=path)
    except MachineError as error:
        raise RpcError("internal", f"error removing file or directory: unlinkat {path}: {error.text.lower()}") from None
    return {}


UNARY = {"Stat": stat_entry, "ListDir": list_dir, "MakeDir": make_dir, "Move": move, "Remove": remove}
