# SPDX-License-Identifier: ISC
"""The records as a test sees them: SQLite's file, or a PostgreSQL server of the test's own."""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile

from gateway import children, wait_until

COLUMNS = ("login", "instance", "sandbox", "created", "state")


def sqlite_records(gateway):
    """The rows of a gateway's own database, as dicts."""
    path = gateway.directory / "state/records/records.db"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as database:
        rows = database.execute(f"SELECT {', '.join(COLUMNS)} FROM rwsd_workspaces").fetchall()
    return [dict(zip(COLUMNS, row)) for row in rows]


def programs():
    """The directory of PostgreSQL's server programs; Debian keeps them off the PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    assert found, "there is no PostgreSQL: tests/deps.sh test"
    return found[-1].parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Postgres:
    """A server with an empty cluster in a directory of its own, with a password, on a port of 127.0.0.1."""

    password = "se-cr3t-of-the-test"

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="rwsd-postgres-"))
        self.programs = programs()
        self.port = free_port()
        self.process = None
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.directory, user.pw_uid, user.pw_gid)
        secret = self.directory / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)
        self.run("initdb", "-D", "data", "-U", "rwsd", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync")
        self.start()
        self.sql("CREATE DATABASE gateway", database="postgres")

    def command(self, program, *arguments):
        """A server program refuses to run as root."""
        prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        return [*prefix, str(self.programs / program), *arguments]

    def run(self, program, *arguments):
        done = subprocess.run(
            self.command(program, *arguments), cwd=self.directory, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def url(self):
        return f"postgresql://rwsd:{self.password}@127.0.0.1:{self.port}/gateway"

    def start(self):
        options = ["-c", "listen_addresses=127.0.0.1", "-c", f"port={self.port}", "-c", "fsync=off"]
        options += ["-c", f"unix_socket_directories={self.directory}"]
        # pylint: disable=consider-using-with # stop() ends it
        self.process = subprocess.Popen(
            self.command("postgres", "-D", "data", *options),
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(self.directory / "log", "ab"),
        )
        wait_until(self.is_ready, timeout=60, what="PostgreSQL")

    def is_ready(self):
        assert self.process.poll() is None, (self.directory / "log").read_text()
        done = subprocess.run(
            [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
        )
        return done.returncode == 0

    def postmaster(self):
        return int((self.directory / "data/postmaster.pid").read_text().split()[0])

    @contextlib.contextmanager
    def frozen(self):
        """It takes connections and requests, and answers none."""
        frozen = [self.postmaster(), *children(self.postmaster())]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            # runuser stops with the program that it runs.
            for pid in [*frozen, self.process.pid]:
                os.kill(pid, signal.SIGCONT)

    def halt(self):
        """Ends it at once, as a crash does."""
        os.kill(self.postmaster(), signal.SIGQUIT)
        self.process.wait(60)

    def stop(self):
        if self.process.poll() is None:
            self.halt()
        shutil.rmtree(self.directory, ignore_errors=True)

    def sql(self, statement, database="gateway"):
        """Runs a statement; the rows as lists of texts."""
        done = subprocess.run(
            ["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-h", "127.0.0.1", "-p", str(self.port), "-U", "rwsd"]
            + ["-d", database, "-v", "ON_ERROR_STOP=1", "-c", statement],
            env={**os.environ, "PGPASSWORD": self.password},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def reset_password(self):
        """By a server of one user, which asks for none."""
        self.halt()
        statement = f"ALTER USER rwsd PASSWORD '{self.password}'\n"
        subprocess.run(
            self.command("postgres", "--single", "-D", "data", "postgres"),
            cwd=self.directory,
            input=statement,
            text=True,
            capture_output=True,
            check=True,
        )
        self.start()

    def records(self):
        rows = self.sql(f"SELECT {', '.join(COLUMNS)} FROM rwsd_workspaces")
        return [dict(zip(COLUMNS, row)) for row in rows]
