# SPDX-License-Identifier: ISC
"""A gateway of a test's own: private directory, fresh keys, ephemeral port."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

BUILD = pathlib.Path(os.environ.get("RWSD_BUILD", "build")).resolve()
START_TIMEOUT = 30
STOP_TIMEOUT = 30


def wait_until(condition, timeout=20, what="condition"):
    """Polls until condition() is true and returns its value; for what has no event to wait for."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout} s")
        time.sleep(0.02)


def processes():
    """The command lines of all processes that this machine shows, by pid."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if line and state not in "ZX":
                found[int(entry.name)] = line.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


def processes_with(text):
    return {pid: line for pid, line in processes().items() if text in line}


def children(pid):
    """The pids of all living descendants of a process."""
    parents = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if fields[0] not in "ZX":
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        todo += parents.get(todo[0], [])
        found += parents.get(todo.pop(0), [])
    return found


def start_time(pid):
    """When a process was started, in clock ticks, or None; with its pid this names it for ever."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return None


def make_key(path, kind="ed25519", bits=None):
    """A fresh key pair; returns the path of the private one."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", path.name, "-f", str(path)]
    subprocess.run(command + (["-b", str(bits)] if bits else []), check=True)
    return path


def public_key(path):
    return pathlib.Path(f"{path}.pub").read_text().strip()


class Gateway:
    """rwsd under test. Everything it makes lies in one directory, which stop() removes."""

    def __init__(self, options=None, logins=None, arguments=(), provider=None, wrapper=()):
        """
        options and each login's options: a dict of name to value, or to a list of values. provider
        says what the logins' sandboxes come from; None: this machine. wrapper: a command that runs it.
        """
        self.provider = provider
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="rwsd-test-"))
        self.directory.chmod(0o755)
        self.key = make_key(self.directory / "client_key")
        self.configuration = self.directory / "rwsd.conf"
        self.log_path = self.directory / "rwsd.log"
        self.options = {
            "listen": "127.0.0.1:0",
            "host_keys": self.directory / "host_keys",
            "state": self.directory / "state",
            # Sandboxes at a provider are found by it: none is shared with another test's gateway.
            "gateway": f"test-{self.directory.name}",
            **(options or {}),
        }
        self.logins = logins if logins is not None else {"sandbox": {}}
        self.arguments = list(arguments)
        self.wrapper = list(wrapper)
        self.process = None
        self.port = None
        self.lines = []
        self.changed = threading.Condition()
        self.reader = None

    # Configuration

    def login_options(self, options):
        standard = self.provider.login() if self.provider else {"driver": "local"}
        if "key" not in options and "authorized_keys" not in options:
            standard["key"] = public_key(self.key)
        return {**standard, **options}

    def write_configuration(self):
        lines = []

        def add(options):
            for name, values in options.items():
                for value in values if isinstance(values, (list, tuple)) else [values]:
                    lines.append(f"{name} = {value}")

        add(self.options)
        for name, options in self.logins.items():
            lines.append(f"\n[login {name}]")
            add(self.login_options(options))
        self.configuration.write_text("\n".join(lines) + "\n")
        self.configuration.chmod(0o600)

    # Life

    def start(self):
        (self.directory / "state").mkdir(exist_ok=True)
        self.write_configuration()
        self.process = subprocess.Popen(
            [*self.wrapper, BUILD / "rwsd", "-f", self.configuration, *self.arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.directory,
        )
        # From here on, an earlier one that ends says no more of it.
        seen = self.log_length()
        self.reader = threading.Thread(target=self._read_log, args=(self.process,), daemon=True)
        self.reader.start()
        found = self.wait_log(r"listening on .*:(\d+)", START_TIMEOUT, seen)
        self.port = int(found.group(1))
        return self

    def _read_log(self, process):
        with open(self.log_path, "a", encoding="utf-8") as copy:
            for raw in process.stdout:
                line = raw.decode(errors="replace").rstrip("\n")
                copy.write(line + "\n")
                copy.flush()
                with self.changed:
                    self.lines.append(line)
                    self.changed.notify_all()
        with self.changed:
            # What a killed one started may write on while the next one is there.
            if process is self.process:
                self.lines.append("(end of log)")
            self.changed.notify_all()

    def wait_log(self, pattern, timeout=20, start=0):
        """Waits for a line of the log, from line number start on; returns the match."""
        expression = re.compile(pattern)
        deadline = time.monotonic() + timeout
        seen = start
        with self.changed:
            while True:
                for line in self.lines[seen:]:
                    seen += 1
                    found = expression.search(line)
                    if found:
                        return found
                    assert line != "(end of log)", f"no line like {pattern!r}; the gateway ended"
                left = deadline - time.monotonic()
                assert left > 0, f"no line like {pattern!r} in {timeout} s"
                self.changed.wait(left)

    def log_length(self):
        with self.changed:
            return len(self.lines)

    def log_text(self):
        with self.changed:
            return "\n".join(self.lines)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=STOP_TIMEOUT):
        """Waits for the end of the process; returns its exit status."""
        status = self.process.wait(timeout)
        self.reader.join(timeout)
        return status

    def end(self):
        """Ends the gateway and all that it started; what does not end by itself is killed."""
        if self.process is None or self.process.poll() is not None:
            return
        started = {pid: start_time(pid) for pid in [self.process.pid, *children(self.process.pid)]}
        self.signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_TIMEOUT)
        for pid, since in started.items():
            if since is not None and start_time(pid) == since:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.wait(STOP_TIMEOUT)
        self.reader.join(STOP_TIMEOUT)

    def stop(self, keep=False):
        self.end()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    # Looking at it from outside

    def roles(self):
        """The processes that the listener started, as (role, title) by pid."""
        found = {}
        lines = processes()
        for pid in children(self.process.pid):
            title = lines.get(pid, "")
            role = re.match(r"rwsd: (auth|session|worker|records)\b", title)
            if role:
                found[pid] = (role.group(1), title)
        return found

    def pids(self, role, text=""):
        return [pid for pid, (name, title) in self.roles().items() if name == role and text in title]


def finish(gateway):
    """Stops a gateway at the end of its tests. What a sanitizer said is a fault, whatever passed."""
    gateway.stop(keep=getattr(gateway, "keep", False))
    said = [text for text in gateway.lines if "Sanitizer" in text or "runtime error:" in text]
    assert not said, "\n".join(said)
