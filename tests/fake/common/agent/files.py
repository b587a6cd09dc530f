# SPDX-License-Identifier: ISC
"""File operations of the machine's init process: they resolve paths as a process in the machine would.

Each takes the request and returns (result, descriptors); an OSError travels to the caller as its errno.
"""
import errno
import grp
import os
import pwd
import shutil
import stat

XATTR_PREFIX = "user.e2b."
OPEN_FLAGS = {"read": os.O_RDONLY, "write": os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "path": os.O_PATH,
              "append": os.O_WRONLY | os.O_APPEND, "existing": os.O_WRONLY}


def kind_of(mode):
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "symlink" if stat.S_ISLNK(mode) else "other"


def user_name(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid):
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def read_xattrs(path):
    try:
        names = [name for name in os.listxattr(path) if name.startswith(XATTR_PREFIX)]
        return {name[len(XATTR_PREFIX):]: os.getxattr(path, name).decode("utf-8", "replace") for name in names}
    except OSError:
        return {}


def describe(path):
    """Everything a provider tells of one name; a symlink carries what its target is."""
    info = os.lstat(path)
    entry = {
        "name": os.path.basename(path.rstrip("/")) or "/", "path": path, "kind": kind_of(info.st_mode),
        "size": info.st_size, "mode": info.st_mode, "mtime_ns": info.st_mtime_ns,
        "owner": user_name(info.st_uid), "group": group_name(info.st_gid), "xattrs": read_xattrs(path),
    }
    if entry["kind"] != "symlink":
        return entry
    try:
        entry["target"] = os.path.realpath(path, strict=True)
        target = os.stat(path)
        entry["target_kind"], entry["target_mode"] = kind_of(target.st_mode), target.st_mode
    except OSError:
        entry["target"], entry["target_kind"], entry["target_mode"] = path, "other", 0
    return entry


def entry_of(request):
    return describe(request["path"]), []


def walk(request):
    """The entries below a directory, in lexical order, not following symlinks."""
    entries = []

    def visit(directory, depth):
        for name in sorted(os.listdir(directory)):
            path = os.path.join(directory, name)
            try:
                entry = describe(path)
            except FileNotFoundError:
                continue
            entries.append(entry)
            if entry["kind"] == "dir" and depth > 1:
                visit(path, depth - 1)

    visit(request["path"], request["depth"])
    return entries, []


def status(request):
    info = os.stat(request["path"])
    return {"kind": kind_of(info.st_mode), "size": info.st_size, "mtime_ns": info.st_mtime_ns}, []


def real_path(request):
    return os.path.realpath(request["path"], strict=True), []


def ensure_dirs(request):
    """mkdir -p with mode 0755; ENOTDIR when a file is in the way."""
    path = request["path"]
    os.makedirs(path, 0o755, exist_ok=True)
    if not os.path.isdir(path):
        raise OSError(errno.ENOTDIR, path)
    return {}, []


def rename(request):
    os.rename(request["source"], request["destination"])
    return {}, []


def remove(request):
    """rm -rf: a missing name is fine."""
    path = request["path"]
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass
    return {}, []


def open_file(request):
    """Open and hand the descriptor out; never waits for the other end of a fifo."""
    return {}, [os.open(request["path"], OPEN_FLAGS[request["how"]] | os.O_NONBLOCK, 0o666)]


OPERATIONS = {
    "entry": entry_of, "walk": walk, "status": status, "realpath": real_path, "ensure_dirs": ensure_dirs,
    "rename": rename, "remove": remove, "open": open_file,
}
