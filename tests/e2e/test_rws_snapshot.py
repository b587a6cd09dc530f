# SPDX-License-Identifier: ISC
"""Snapshots: every sentence of the seed, random trees, archives in and out, and what is interrupted."""

import io
import os
import pathlib
import random
import shutil
import stat
import subprocess
import tarfile
import tempfile

import pytest
from gateway import wait_until
from rws_client import Rws, RwsError, encoded, path_of, rws as run_rws

ROUNDS = 12


@pytest.fixture
def rws(gateway):
    with Rws(gateway) as client:
        client.sh("find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +")
        yield client


def code_of(client, method, **params):
    with pytest.raises(RwsError) as caught:
        client.call(method, **params)
    return caught.value.code


def create(client, **params):
    return client.call("snapshot.create", **params)


def restore(client, snapshot, **params):
    """The three lists of a restore as sets of bytes."""
    result = client.call("snapshot.restore", id=snapshot, **params)
    return [set(map(path_of, result[name])) for name in ("restored", "deleted", "kept")]


def tree(client):
    """Everything below the root but .rws, as lines of find."""
    command = "find . -mindepth 1 -path ./.rws -prune -o -printf '%y %m %p %l\\0' | sort -z"
    return set(client.sh(command).split(b"\0")) - {b""}


def snapshots(client):
    return [entry["id"] for entry in client.call("snapshot.list")["snapshots"]]


# The rules of the seed, one by one


@pytest.mark.core
def test_snapshots_are_archives_in_our_directory_of_the_root(rws):
    rws.call("write", path="a", content="x")
    snapshot = create(rws)["id"]
    names = rws.sh(f"tar -tf .rws/snapshots/{snapshot}/archive.tar").split()
    assert names == [b"./a"]


def test_label_and_metadata_are_kept(rws):
    made = create(rws, label="before", metadata={"why": "a test"}, exclude=["*.o"], max_file_bytes=5)
    (listed,) = rws.call("snapshot.list")["snapshots"]
    shown = rws.call("snapshot.show", id=made["id"])
    for record in (made, listed, shown):
        assert record["label"] == "before"
        assert record["metadata"] == {"why": "a test"}
        assert record["exclude"] == ["*.o"]
        assert record["max_file_bytes"] == 5


def test_own_directory_node_modules_and_git_are_left_out_at_any_depth(rws):
    for path in ("a/x", ".git/x", "a/.git/x", "node_modules/x", "a/b/node_modules/x"):
        rws.call("write", path=path, content="x")
    assert create(rws)["files"] == 1


def test_exclude_adds_to_them(rws):
    for path in ("a.o", "d/a.o", "build/x", "e/cache/y", "keep"):
        rws.call("write", path=path, content="x")
    assert create(rws, exclude=["*.o", "build/**", "**/cache/**"])["files"] == 2
    assert create(rws, exclude=["**/*.o", "build", "e"])["files"] == 1


def test_excluded_directories_are_not_even_listed(rws):
    """Pruned in the sandbox: one that nobody may enter is no trouble."""
    rws.sh("mkdir -p closed/in && chmod 0 closed")
    try:
        assert create(rws, exclude=["closed"])["skipped"] == []
        assert create(rws, exclude=["closed/**"])["skipped"] in ([], ["closed"])
    finally:
        rws.sh("chmod 755 closed")


def test_a_file_over_max_file_bytes_is_skipped_and_listed(rws):
    rws.call("write", path="big", content="x" * 101)
    rws.call("write", path="fits", content="x" * 100)
    made = create(rws, max_file_bytes=100)
    assert made["skipped"] == ["big"]
    assert made["files"] == 1


def test_pipes_and_sockets_are_skipped_and_listed(rws):
    rws.sh("mkfifo pipe")
    assert create(rws)["skipped"] == ["pipe"]


def test_max_snapshot_bytes_refuses_and_leaves_nothing(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"max_snapshot_bytes": "4KiB"}})
    with Rws(gateway) as client:
        client.call("write", path="a", content="x" * 3000)
        create(client)
        client.call("write", path="b", content="x" * 3000)
        assert code_of(client, "snapshot.create") == "TOO_LARGE"
        assert len(snapshots(client)) == 1
        assert len(client.sh("ls -A .rws/snapshots").split()) == 1


@pytest.mark.every_driver
@pytest.mark.core
def test_restore_brings_back_what_changed_and_removes_what_was_made_since(rws):
    rws.sh("mkdir d; echo 1 >d/one; echo 2 >two; ln -s d/one l; chmod 750 d; chmod 600 two")
    snapshot = create(rws)["id"]
    before = tree(rws)
    rws.sh("echo 9 >d/one; rm two l; mkdir -p new/dir; echo x >new/dir/x; ln -s / new/l; chmod 700 d")
    lists = restore(rws, snapshot)
    assert lists == [{b"d/one", b"two", b"l"}, {b"new", b"new/dir", b"new/dir/x", b"new/l"}, set()]
    assert tree(rws) == before
    assert rws.sh("cat d/one two") == b"1\n2\n"


@pytest.mark.core
def test_dry_run_says_the_same_and_changes_nothing(rws):
    rws.sh("echo 1 >a; mkdir -p node_modules")
    snapshot = create(rws)["id"]
    rws.sh("echo 2 >a; echo x >b")
    before = tree(rws)
    dry = restore(rws, snapshot, dry_run=True)
    assert tree(rws) == before
    assert rws.sh("cat a") == b"2\n"
    assert restore(rws, snapshot) == dry == [{b"a"}, {b"b"}, {b"node_modules"}]


def test_restored_names_every_file_of_the_archive_changed_or_not(rws):
    rws.sh("touch a b c")
    assert restore(rws, create(rws)["id"])[0] == {b"a", b"b", b"c"}


def test_excluded_and_skipped_paths_are_left_alone(rws):
    rws.sh("mkdir build; echo x >build/x; head -c 200 /dev/zero >big; echo a >a")
    snapshot = create(rws, exclude=["build/**"], max_file_bytes=100)["id"]
    rws.sh("echo y >build/y; rm build/x; echo small >big; mkdir .git; echo g >.git/g")
    _, deleted, kept = restore(rws, snapshot)
    assert deleted == set()
    assert kept == {b"big", b".git"}
    assert rws.sh("cat big build/y .git/g") == b"small\ny\ng\n"


def test_files_made_since_over_the_records_limit_are_left_alone(rws):
    rws.sh("echo a >a")
    snapshot = create(rws, max_file_bytes=100)["id"]
    rws.sh("mkdir d e; head -c 101 /dev/zero >d/over; head -c 100 /dev/zero >e/under; touch d/small")
    _, deleted, kept = restore(rws, snapshot)
    assert deleted == {b"e", b"e/under", b"d/small"}
    assert kept == {b"d", b"d/over"}


def test_a_file_of_the_archive_comes_back_however_large_it_has_become(rws):
    rws.sh("echo a >a")
    snapshot = create(rws, max_file_bytes=100)["id"]
    rws.sh("head -c 5000 /dev/zero >a")
    restore(rws, snapshot)
    assert rws.sh("cat a") == b"a\n"


@pytest.mark.every_driver
def test_names_that_are_not_utf8_survive(rws):
    rws.call("write", path_base64=encoded(b"bad\xff\n name"), content="kept")
    snapshot = create(rws)["id"]
    rws.sh("rm -f bad*")
    assert restore(rws, snapshot)[0] == {b"bad\xff\n name"}
    assert rws.call("read", path_base64=encoded(b"bad\xff\n name"))["content"] == "kept"


def test_a_symlink_in_the_place_of_our_directory_is_refused(rws):
    rws.sh("mkdir elsewhere; echo a >a")
    snapshot = create(rws)["id"]
    for name in (".rws/snapshots", ".rws"):
        rws.sh(f"mv {name} moved; ln -s ../elsewhere {name}" if "/" in name else
               f"mv {name} moved; ln -s elsewhere {name}")
        for method, params in (("create", {}), ("list", {}), ("show", {"id": snapshot}),
                               ("restore", {"id": snapshot}), ("delete", {"id": snapshot})):
            assert code_of(rws, f"snapshot.{method}", **params) == "DENIED"
        rws.sh(f"rm {name}; mv moved {name}")
    assert rws.sh("ls -A elsewhere") == b""
    assert snapshots(rws) == [snapshot]


def test_delete_removes_it_for_good(rws):
    one, two = create(rws)["id"], create(rws)["id"]
    rws.call("snapshot.delete", id=one)
    assert snapshots(rws) == [two]
    assert code_of(rws, "snapshot.delete", id=one) == "NOT_FOUND"
    assert code_of(rws, "snapshot.restore", id=one) == "NOT_FOUND"


@pytest.mark.parametrize("bad", ["..", "../..", "", "a/b", ".", "-rf", "x;id", "\n"])
def test_an_id_is_never_a_path(rws, bad):
    assert code_of(rws, "snapshot.restore", id=bad) == "NOT_FOUND"
    assert code_of(rws, "snapshot.delete", id=bad) == "NOT_FOUND"


def test_they_live_and_die_with_the_sandbox(make_gateway):
    gateway = make_gateway()
    with Rws(gateway) as client:
        create(client)
        client.call("sandbox.stop")
        assert len(snapshots(client)) == 1
        client.call("sandbox.destroy")
        assert snapshots(client) == []


# What goes wrong


def test_a_damaged_archive_is_refused_before_anything_changes(rws):
    rws.sh("echo 1 >a; head -c 100000 /dev/urandom >b")
    snapshot = create(rws)["id"]
    rws.sh(f"truncate -s 50000 .rws/snapshots/{snapshot}/archive.tar; echo 2 >a; echo x >new")
    before = tree(rws)
    assert code_of(rws, "snapshot.restore", id=snapshot) == "INVALID"
    assert tree(rws) == before
    assert rws.sh("cat a") == b"2\n"


def test_an_archive_that_a_command_made_evil_escapes_nowhere(rws):
    """Names with "..", absolute ones, and a link that later entries go through."""
    rws.sh("echo 1 >a")
    snapshot = create(rws)["id"]
    evil = io.BytesIO()
    with tarfile.open(fileobj=evil, mode="w") as archive:
        for name in ("../escaped", "/tmp/escaped", "a"):
            archive.addfile(tarfile.TarInfo(name))
        link = tarfile.TarInfo("l")
        link.type, link.linkname = tarfile.SYMTYPE, "/tmp"
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("l/escaped2"))
    path = f".rws/snapshots/{snapshot}/archive.tar"
    rws.call("write", path=path, content_base64=encoded(evil.getvalue()))
    rws.send("snapshot.restore", id=snapshot)
    rws.call("info")
    result = rws.call("exec", command="ls -d ../escaped /tmp/escaped /tmp/escaped2")
    assert result["stdout"] == ""


def test_an_interrupted_snapshot_leaves_nothing(gateway, rws):
    rws.sh("mkdir d; for i in $(seq 300); do head -c 100000 /dev/zero >d/$i; done")
    number = rws.send("snapshot.create")
    rws.notify("$/cancelRequest", id=number)
    try:
        rws.wait(number)
    except RwsError as problem:
        assert problem.code == "ABORTED"
        wait_until(lambda: rws.sh("ls -A .rws/snapshots 2>/dev/null || :") == b"")
        assert snapshots(rws) == []
    else:
        # It was quicker; then it is whole.
        assert len(snapshots(rws)) == 1
    with Rws(gateway) as other:
        other.send("snapshot.create")
    wait_until(lambda: b".part" not in rws.sh("ls -A .rws/snapshots 2>/dev/null || :"))


def test_what_an_earlier_one_left_is_removed_after_an_hour(rws):
    rws.sh("mkdir -p .rws/snapshots/.old.part .rws/snapshots/.new.part;"
           " touch -d '2 hours ago' .rws/snapshots/.old.part")
    create(rws)
    left = rws.sh("ls -A .rws/snapshots").split()
    assert b".new.part" in left and b".old.part" not in left


# Random trees


class Tree:
    """A random tree as a model: path to (type, content or target), built in a sandbox by one script."""

    NAMES = [b"a", b"b", b"c d", b"-x", b"\xff\xfe", b"new\nline", b"*", b"$x", b"'q'", b"node_modules",
             b".git", b"long" * 50, b"\\back", b"caf\xc3\xa9"]

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.entries = {}

    def directories(self):
        return [b""] + [path for path, (kind, _) in self.entries.items() if kind == "d"]

    def grow(self, count):
        for _ in range(count):
            parent = self.random.choice(self.directories())
            if parent.count(b"/") > 6:
                continue
            name = self.random.choice(self.NAMES)
            path = parent + b"/" + name if parent else name
            if path in self.entries:
                continue
            kind = self.random.choice("fffddlps")
            if kind == "f":
                value = self.random.randbytes(self.random.choice([0, 1, 99, 100, 101, 300]))
            elif kind == "l":
                value = self.random.choice([b"a", b"../..", b"/etc/passwd", b"\xff"])
            elif kind == "s":
                kind, value = "f", None  # sparse
            else:
                value = b""
            self.entries[path] = (kind, value)

    def shrink(self, count):
        for _ in range(min(count, len(self.entries))):
            victim = self.random.choice(sorted(self.entries))
            for path in [path for path in self.entries if path == victim or path.startswith(victim + b"/")]:
                del self.entries[path]
            if not self.entries:
                return

    def change(self):
        for path in sorted(self.entries):
            kind, _ = self.entries[path]
            if kind == "f" and self.random.random() < 0.3:
                self.entries[path] = ("f", self.random.randbytes(self.random.choice([5, 150])))

    def archive(self):
        """The tree as a tar file to be unpacked in the sandbox."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8",
                          errors="surrogateescape") as archive:
            for path, (kind, value) in sorted(self.entries.items()):
                info = tarfile.TarInfo(os.fsdecode(path))
                info.mode = 0o755
                info.type = {"f": tarfile.REGTYPE, "d": tarfile.DIRTYPE, "l": tarfile.SYMTYPE,
                             "p": tarfile.FIFOTYPE}[kind]
                if kind == "l":
                    info.linkname = os.fsdecode(value)
                data = b"\0" * 90 if value is None else value
                info.size = len(data) if kind == "f" else 0
                archive.addfile(info, io.BytesIO(data if kind == "f" else b""))
        return out.getvalue()


def unpack(client, model):
    client.sh("find . -mindepth 1 -maxdepth 1 ! -name .rws -exec rm -rf {} +; tar -xf -",
              stdin_base64=encoded(model.archive()))


def excluded(path):
    return any(part in (b"node_modules", b".git", b".rws") for part in path.split(b"/"))


def contents(client):
    """path -> (type, checksum or target) of all that is there but .rws."""
    listing = client.sh(
        "find . -mindepth 1 -path ./.rws -prune -o -type f -print0 | LC_ALL=C sort -z |"
        " xargs -0 -r md5sum -z; printf '\\1'; find . -mindepth 1 -path ./.rws -prune -o ! -type f"
        " -printf '%y %l\\t%p\\0'",
        max_output_bytes=4 << 20,
    )
    files, _, others = listing.partition(b"\1")
    found = {}
    for line in filter(None, files.split(b"\0")):
        digest, _, path = line.partition(b"  ")
        found[path[2:]] = ("f", digest)
    for line in filter(None, others.split(b"\0")):
        kind, _, path = line.partition(b"\t")
        found[path[2:]] = (kind[:1].decode(), kind[2:])
    return found


def expected_after(before, after, skipped, limit, sizes):
    """What the rules say is there after a restore of before onto after."""
    alone = {path for path in after if excluded(path)}
    alone |= {path for path in after if any(path == s or path.startswith(s + b"/") for s in skipped)}
    alone |= {path for path in after if path not in before and after[path][0] == "f"
              and sizes.get(path, 0) > limit}
    held = {path for path in after if any(other.startswith(path + b"/") for other in alone)}
    result = {path: after[path] for path in alone | {p for p in held if after[p][0] == "d"}}
    for path, value in before.items():
        if excluded(path) or path in skipped:
            continue
        blocked = path in result and (result[path][0] == "d") != (value[0] == "d")
        above = [path[:i] for i, byte in enumerate(path) if byte == ord("/")]
        if blocked or any(result.get(parent, ("d",))[0] != "d" for parent in above):
            continue
        result[path] = value
    return result


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_trees_come_back_as_the_rules_say(rws, seed):
    limit = 100
    model = Tree(seed)
    model.grow(60)
    unpack(rws, model)
    before = contents(rws)
    made = create(rws, max_file_bytes=limit)
    skipped = set(map(path_of, made["skipped"]))
    for path, (kind, value) in model.entries.items():
        over = kind == "f" and value is not None and len(value) > limit
        assert (path in skipped) == ((kind == "p" or over) and not excluded(path))
    model.shrink(12)
    model.grow(40)
    model.change()
    unpack(rws, model)
    after = contents(rws)
    sizes = {path: 90 if value is None else len(value) for path, (kind, value) in model.entries.items()
             if kind == "f"}
    wanted = expected_after(before, after, skipped, limit, sizes)
    dry = restore(rws, made["id"], dry_run=True)
    assert contents(rws) == after
    assert restore(rws, made["id"]) == dry
    assert contents(rws) == wanted
    gone = {path for path in after if path not in wanted}
    assert gone <= dry[1]


# Export and import


@pytest.mark.every_driver
@pytest.mark.core
def test_a_workspace_moves_between_logins_by_a_pipe(make_gateway):
    gateway = make_gateway(logins={"sandbox": {}, "other": {}})
    with Rws(gateway) as client:
        client.sh("mkdir d; head -c 300000 /dev/urandom >d/r; ln -s d/r l; printf x >\"$(printf 'b\\377')\"")
        snapshot = create(client)["id"]
        wanted = contents(client)
    exported = run_rws(gateway, "snapshot", "export", "sandbox@gateway", snapshot)
    assert exported.returncode == 0
    moved = run_rws(gateway, "snapshot", "import", "other@gateway", "--json", stdin=exported.stdout)
    assert moved.returncode == 0, moved.stderr
    with Rws(gateway, login="other") as client:
        restore(client, snapshots(client)[0])
        assert contents(client) == wanted


def test_an_export_is_a_tar_file_for_everybody(gateway, rws):
    rws.call("write", path="d/f", content="text")
    exported = run_rws(gateway, "snapshot", "export", "sandbox@gateway", create(rws)["id"])
    with tarfile.open(fileobj=io.BytesIO(exported.stdout)) as archive:
        assert archive.extractfile("./d/f").read() == b"text"


@pytest.mark.every_driver
def test_an_empty_or_cut_stream_makes_no_snapshot(gateway, rws):
    rws.call("write", path="f", content="x" * 5000)
    whole = run_rws(gateway, "snapshot", "export", "sandbox@gateway", create(rws)["id"]).stdout
    before = snapshots(rws)
    for data in (b"", whole[:3000], whole[:512], b"no tar file at all" * 100):
        done = run_rws(gateway, "snapshot", "import", "sandbox@gateway", stdin=data)
        assert done.returncode == 64, done.stderr
    assert snapshots(rws) == before
    wait_until(lambda: b".part" not in rws.sh("ls -A .rws/snapshots"))


def evil_archive(name, **fields):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("good"))
        entry = tarfile.TarInfo(name)
        for field, value in fields.items():
            setattr(entry, field, value)
        archive.addfile(entry)
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        evil_archive("../x"),
        evil_archive("/etc/x"),
        evil_archive("l", type=tarfile.SYMTYPE, linkname="/etc"),
        evil_archive("l", type=tarfile.SYMTYPE, linkname="../.."),
        evil_archive("l", type=tarfile.LNKTYPE, linkname="../x"),
        evil_archive(".rws/snapshots/x"),
    ],
)
def test_an_import_that_tries_to_escape_is_refused_and_nothing_of_it_stays(gateway, rws, data):
    done = run_rws(gateway, "snapshot", "import", "sandbox@gateway", stdin=data)
    assert done.returncode == 77, done.stderr
    assert snapshots(rws) == []
    wait_until(lambda: rws.sh("ls -A .rws/snapshots 2>/dev/null || :") == b"")


@pytest.mark.stress
def test_memory_stays_flat_while_a_gibibyte_is_exported(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"max_snapshot_bytes": "2GiB"}})
    with Rws(gateway) as client:
        client.sh("for i in 1 2 3 4; do head -c 268435456 /dev/urandom >$i; done", timeout=0,
                  max_stream_bytes=0)
        snapshot = create(client, max_file_bytes=1 << 30)["id"]
    from rws_client import rws_command
    from clients import environment

    with subprocess.Popen(rws_command(gateway, "snapshot", "export", "sandbox@gateway", snapshot),
                          stdout=subprocess.PIPE, env=environment(gateway)) as export:
        size, most = 0, 0
        while chunk := export.stdout.read(1 << 20):
            size += len(chunk)
            (worker,) = gateway.pids("worker")
            text = pathlib.Path(f"/proc/{worker}/status").read_text(encoding="ascii")
            (line,) = [entry for entry in text.splitlines() if entry.startswith("VmRSS")]
            most = max(most, int(line.split()[1]))
    assert size > 1 << 30
    assert most < 32 * 1024


# The script by itself, under every shell that an image may have

SCRIPT = pathlib.Path(__file__).parents[2] / "core/scripts/snapshot.sh"
SHELLS = [["dash"], ["bash"], ["busybox", "sh"]]
ALWAYS = r"\./((.*/)?(\.rws|node_modules|\.git))"


@pytest.fixture(params=SHELLS, ids=lambda words: words[0])
def script(request):
    """Runs the script in a directory of its own."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="rws-script-"))

    def run(verb, *arguments, stdin=b"", check=0):
        done = subprocess.run([*request.param, SCRIPT, verb, root, *map(str, arguments)], input=stdin,
                              capture_output=True, timeout=60, check=False)
        assert done.returncode == check, done.stderr
        return done.stdout if check == 0 else done.stderr

    run.root = root
    yield run
    shutil.rmtree(root)


def test_the_script_makes_lists_and_applies(script):
    (script.root / "a").write_text("1")
    (script.root / "odd\nname").mkdir()
    (script.root / "big").write_bytes(b"x" * 11)
    made = script("create", "one", 10, 1000, ALWAYS, "", stdin=b'{"x":1}\n')
    assert made == b"1 1\n./big\0"
    assert script("list").startswith(b"one 10240 1 1 {")
    assert script("show", "one").endswith(b"./big\0")
    (script.root / "a").write_text("2")
    (script.root / "new").write_text("x")
    (script.root / "dir").mkdir()
    assert b"f 1 ./new\0" in script("look", "one")
    script("apply", "one", 6, 6, 0, stdin=b"./new\0./dir\0")
    assert sorted(path.name for path in script.root.iterdir()) == [".rws", "a", "big", "odd\nname"]
    assert (script.root / "a").read_text() == "1"
    assert script("read", "one").startswith(b"10240\n")
    script("delete", "one")
    assert script("list") == b""


def test_the_script_says_what_is_wrong(script):
    assert script("show", "none", check=1) == b"error NOT_FOUND there is no snapshot none\n"
    (script.root / "a").write_text("123456")
    assert b"error TOO_LARGE" in script("create", "one", 10, 5, ALWAYS, "", check=1)
    assert b"error INVALID" in script("create", "one", 10, 5, "(", "", check=1)
    assert list((script.root / ".rws/snapshots").iterdir()) == []
    script("create", "one", 10, 1000, ALWAYS, "")
    os.unlink(script.root / ".rws/snapshots/one/entries")
    assert b"error INVALID" in script("show", "one", check=1)
    assert script("list") == b""


def test_the_script_keeps_its_files_from_others(script):
    script("create", "one", 10, 1000, ALWAYS, "")
    mode = (script.root / ".rws/snapshots/one/archive.tar").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_the_script_receives_finishes_and_drops(script):
    script("receive", "one", stdin=b"bytes")
    assert (script.root / ".rws/snapshots/.one.part/archive.tar").read_bytes() == b"bytes"
    script("finish", "one", ALWAYS, "", 4, 3, 6, stdin=b"0 0\n{}\nf ./a\0")
    assert script("list") == b"one 5 0 0 {}\n"
    script("receive", "two", stdin=b"bytes")
    script("drop", "two")
    assert [path.name for path in (script.root / ".rws/snapshots").iterdir()] == ["one"]
