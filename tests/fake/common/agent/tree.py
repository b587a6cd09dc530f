# SPDX-License-Identifier: ISC
"""Plain file operations and the process tree, for the machine's init: what stat, mkdir, chmod and ps would say.

Each takes the request and returns (result, descriptors); an OSError travels to the caller as its errno.
"""
import errno
import fnmatch
import grp
import os
import pwd
import shutil
import stat

SNIFF = 512


def facts(path):
    """stat of a name, symlinks followed."""
    info = os.stat(path)
    return {"name": os.path.basename(path.rstrip("/")) or "/", "size": info.st_size, "mode": info.st_mode,
            "mtime_ns": info.st_mtime_ns, "uid": info.st_uid, "gid": info.st_gid}


def stat_of(request):
    return facts(request["path"]), []


def list_directory(request):
    """The entries in order of their names; those that cannot be looked at are left out."""
    entries = []
    for name in sorted(os.listdir(request["path"])):
        try:
            entries.append(facts(os.path.join(request["path"], name)))
        except OSError:
            continue
    return entries, []


def make_directories(request):
    """mkdir -p; a file in the way is ENOTDIR."""
    path, mode = request["path"], request["mode"]
    missing = []
    while path and not os.path.isdir(path):
        if os.path.lexists(path):
            raise NotADirectoryError(errno.ENOTDIR, "not a directory")
        missing.append(path)
        path = os.path.dirname(path)
    previous = os.umask(0o022)
    try:
        for name in reversed(missing):
            os.mkdir(name, mode)
    finally:
        os.umask(previous)
    return {}, []


def delete(request):
    """Remove a file or an empty directory, or a whole tree."""
    path = request["path"]
    directory = stat.S_ISDIR(os.lstat(path).st_mode)
    if directory and request["recursive"]:
        shutil.rmtree(path)
    elif directory:
        os.rmdir(path)
    else:
        os.unlink(path)
    return {}, []


def move(request):
    """Rename, or else copy and delete, whatever the reason: a directory that is moved into itself is lost."""
    source, destination = request["source"], request["destination"]
    try:
        os.rename(source, destination)
        return {}, []
    except OSError:
        pass
    if os.path.isdir(source):
        if not destination.startswith(source + "/"):
            shutil.copytree(source, destination)
        shutil.rmtree(source)
    else:
        shutil.copy(source, destination)
        os.unlink(source)
    return {}, []


def change_mode(request):
    os.chmod(request["path"], request["mode"])
    return {}, []


def identity(text, look_up):
    """A number given as such or by name; -1 for none."""
    if not text:
        return -1
    return int(text) if text.lstrip("-").isdigit() else look_up(text)


def change_owner(request):
    """chown by names or numbers; an unknown name is ENOENT."""
    try:
        uid = identity(request["owner"], lambda name: pwd.getpwnam(name).pw_uid)
        gid = identity(request["group"], lambda name: grp.getgrnam(name).gr_gid)
    except KeyError as error:
        raise FileNotFoundError(errno.ENOENT, str(error)) from None
    os.chown(request["path"], uid, gid)
    return {}, []


def walk(path):
    """Every name at and below path, in lexical order; directories that cannot be read do not appear at all."""
    names = []
    if os.path.isdir(path) and not os.path.islink(path):
        try:
            names = sorted(os.listdir(path))
        except OSError:
            return
    if os.path.lexists(path):
        yield path
        for name in names:
            yield from walk(os.path.join(path, name))


def search_names(request):
    return [path for path in walk(request["path"])
            if fnmatch.fnmatchcase(os.path.basename(path), request["pattern"])], []


def matching_lines(path, pattern):
    """(number, text) of the lines of a text file that contain the pattern; none of a binary one."""
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError:
        return []
    if b"\0" in data[:SNIFF]:
        return []
    lines = data.decode("utf-8", "replace").splitlines()
    return [(number, line) for number, line in enumerate(lines, 1) if pattern in line]


def search_text(request):
    return [{"file": path, "line": number, "content": line} for path in walk(request["path"])
            if os.path.isfile(path) and not os.path.islink(path)
            for number, line in matching_lines(path, request["pattern"])], []


def parent_of(pid):
    """The parent's pid, or None for a process that is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return int(f.read().rpartition(")")[2].split()[1])
    except OSError:
        return None


def descendants(request):
    """The pids of all children, children first, then theirs; the living only."""
    parents = {int(name): parent_of(name) for name in os.listdir("/proc") if name.isdigit()}
    found, wanted = [], [request["pid"]]
    for pid in wanted:
        children = [child for child, parent in parents.items() if parent == pid]
        wanted += children
        found += children
    return {"alive": os.path.exists(f"/proc/{request['pid']}"), "pids": found}, []


OPERATIONS = {
    "stat": stat_of, "list": list_directory, "make_directories": make_directories, "delete": delete, "move": move,
    "chmod": change_mode, "chown": change_owner, "search_names": search_names, "search_text": search_text,
    "descendants": descendants,
}
