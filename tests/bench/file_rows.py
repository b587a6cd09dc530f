# SPDX-License-Identifier: ISC
"""Files: sftp, rsync and git against the same server programs behind sshd."""

import contextlib
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import time

from measure import MIB, succeeds, timed

SFTP_ROWS = (
    ("sftp get", (">=", 1.0, "x")),
    ("sftp put", (">=", 1.0, "x")),
    ("sftp put -r", ("<=", 2.0, "x")),
    ("sftp get -r", ("<=", 2.0, "x")),
)


def sftp(server, *commands):
    """Seconds that these commands of sftp take, the connection included."""
    batch = "".join(command + "\n" for command in commands).encode()
    started = time.monotonic()
    subprocess.run(
        ["sftp", "-q", "-b", "-", *server.client_options(), server.host],
        input=batch,
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=300,
    )
    return time.monotonic() - started


def make_tree(directory, count):
    """count files of 4 KiB, a hundred to a directory."""
    block = os.urandom(4096)
    for i in range(count):
        place = directory / f"d{i // 100:03}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{i % 100:02}").write_bytes(block)


def sftp_one_file(bench, local, megabytes):
    (local / "big").write_bytes(b"")
    os.truncate(local / "big", megabytes * MIB)
    rounds = bench.pick(3, 1)

    def put(server):
        return megabytes / sftp(server, f"put {local}/big big")

    def get(server):
        return megabytes / sftp(server, f"get big {local}/back")

    bench.compare(f"sftp put of {megabytes} MiB", "MiB/s", SFTP_ROWS[1][1], rounds, put)
    bench.compare(f"sftp get of {megabytes} MiB", "MiB/s", SFTP_ROWS[0][1], rounds, get)


def sftp_many_files(bench, local, count):
    def put(server):
        return sftp(server, f"put -r {local}/tree up")

    def get(server):
        shutil.rmtree(local / "down", ignore_errors=True)
        return sftp(server, f"get -r up {local}/down")

    title = f"of {count} files of 4 KiB"
    bench.compare(f"sftp put -r {title}", "s", SFTP_ROWS[2][1], 1, put)
    bench.compare(f"sftp get -r {title}", "s", SFTP_ROWS[3][1], 1, get)


def sftp_rows(bench, local, count):
    if not succeeds(["sftp", "-q", "-b", "/dev/null", *bench.ours.client_options(), bench.ours.host]):
        for what, target in SFTP_ROWS:
            bench.missing(what, target, "sftp does not start: not there yet")
        return
    sftp_one_file(bench, local, bench.pick(1024, 64))
    sftp_many_files(bench, local, count)


def rsync(server, *arguments):
    shell = " ".join(shlex.quote(word) for word in ["ssh", *server.client_options()])
    return timed(["rsync", "-a", "-e", shell, *arguments])


def rsync_rows(bench, local, count):
    tree = f"{local}/tree/"
    target = ("<=", 1.1, "x")
    rounds = bench.pick(3, 1)

    def up(server):
        server.run("rm -rf synced")
        return rsync(server, tree, f"{server.host}:synced")

    def down(server):
        shutil.rmtree(local / "synced", ignore_errors=True)
        return rsync(server, f"{server.host}:synced/", f"{local}/synced")

    bench.compare(f"rsync -a of {count} files, up", "s", target, rounds, up)
    bench.compare(f"rsync -a of {count} files, down", "s", target, rounds, down)


def git(directory, *arguments, server=None):
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    if server is not None:
        words = ["ssh", *server.client_options()]
        environment["GIT_SSH_COMMAND"] = " ".join(shlex.quote(word) for word in words)
    settings = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    # Random bytes neither shrink nor have deltas: time for trying would only hide the line's.
    settings += ["-c", "core.compression=0", "-c", "core.bigFileThreshold=1m"]
    return timed(
        ["git", *settings, *arguments], cwd=directory, env=environment, stdout=subprocess.DEVNULL
    )


def git_rows(bench, local):
    megabytes = bench.pick(200, 16)
    repository = local / "repository"
    repository.mkdir()
    for i in range(megabytes // 2):
        (repository / f"f{i}").write_bytes(os.urandom(2 * MIB))
    git(repository, "init", "-q", "-b", "main")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "all")
    target = ("<=", 1.1, "x")
    rounds = bench.pick(3, 1)

    def push(server):
        server.run("rm -rf r.git && git init -q --bare -b main r.git")
        return git(repository, "push", "-q", f"{server.host}:r.git", "main", server=server)

    def clone(server):
        shutil.rmtree(local / "clone", ignore_errors=True)
        return git(local, "clone", "-q", f"{server.host}:r.git", "clone", server=server)

    bench.compare(f"git push of {megabytes} MB", "s", target, rounds, push)
    bench.compare(f"git clone of {megabytes} MB", "s", target, rounds, clone)


def files(bench):
    with tempfile.TemporaryDirectory(prefix="rwsd-bench-") as name:
        local = pathlib.Path(name)
        count = bench.pick(10000, 500)
        make_tree(local / "tree", count)
        sftp_rows(bench, local, count)
        if shutil.which("rsync"):
            rsync_rows(bench, local, count)
        else:
            bench.missing("rsync", None, "rsync is not installed here")
        if shutil.which("git"):
            git_rows(bench, local)
        else:
            bench.missing("git", None, "git is not installed here")
        for server in bench.servers:
            with contextlib.suppress(subprocess.SubprocessError):
                server.run("rm -rf big up synced r.git")


ROWS = (files,)
