# SPDX-License-Identifier: ISC
"""The two servers that are compared, and the client that both get.

sshd is given every fairness that does not change what it is: loopback, the same kind of host key, the
same client key, an account of its own whose shell is /bin/sh and whose home has no rc files, no PAM,
no limits on starting connections. The account exists in a mount namespace of sshd's only.
"""

import contextlib
import ctypes
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))

# pylint: disable=wrong-import-position
from gateway import Gateway, children, make_key, public_key, wait_until  # noqa: E402

BENCH_UID = 64990
PR_SET_CHILD_SUBREAPER = 36
SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")
CIPHER = "aes128-gcm@openssh.com"
KEX = "curve25519-sha256"

SSHD_CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/authorized_keys
PidFile none
LogLevel INFO
StrictModes no
UsePAM no
UseDNS no
PermitRootLogin no
PermitUserRC no
PrintMotd no
PrintLastLog no
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 10000
MaxSessions 100
Subsystem sftp {sftp}
"""


def adopt_orphans():
    """
    Makes processes whose parent has ended children of this one, so that their processor time counts:
    the half of sshd that serves a connection may outlive the half that started it.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Server:
    """Something to ssh to: where, as whom, and which of its processes count."""

    name = None
    user = None
    port = None
    key = None

    def client_options(self, port=None, cipher=CIPHER):
        """What ssh, scp and sftp take before the host; no file of the caller's is read."""
        options = {
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
            "GlobalKnownHostsFile": "/dev/null",
            "LogLevel": "ERROR",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "PreferredAuthentications": "publickey",
            "KexAlgorithms": KEX,
            "HostKeyAlgorithms": "ssh-ed25519",
            "Ciphers": cipher,
            "Port": str(port or self.port),
        }
        arguments = ["-F", "none", "-i", str(self.key)]
        for option, value in options.items():
            arguments += ["-o", f"{option}={value}"]
        return arguments

    @property
    def host(self):
        return f"{self.user}@127.0.0.1"

    def ssh(self, command, port=None, cipher=CIPHER):
        """The argv of an ssh that runs a command there."""
        return ["ssh", *self.client_options(port, cipher), self.host, command]

    def run(self, command):
        return subprocess.run(
            self.ssh(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
        ).stdout.decode()

    def process(self):
        """The pid that all its processes descend from."""
        raise NotImplementedError

    def connections(self):
        """How many it serves now."""
        raise NotImplementedError

    def pids(self):
        return [self.process(), *children(self.process())]

    def cpu_seconds(self):
        """What its processes, and those of theirs that have ended, have used so far."""
        ticks = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(int(field) for field in fields[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")


class Rwsd(Server):
    """The gateway with the local driver, as rwsd.conf has it by default but for some limits."""

    name = "ours"
    user = "bench"

    def __init__(self, options=None, login=None):
        limits = {"max_startups": 10000, "max_startups_per_source": 10000, "max_connections": 10000}
        login = {"max_file_bytes": "8GiB", **(login or {"driver": "local"})}
        self.gateway = Gateway(options={**limits, **(options or {})}, logins={self.user: login})

    def start(self):
        self.gateway.start()
        self.port = self.gateway.port
        self.key = self.gateway.key
        return self

    def stop(self):
        self.gateway.stop()

    def process(self):
        return self.gateway.process.pid

    def connections(self):
        return len(self.gateway.pids("session", f"session {self.user}"))


class Sshd(Server):
    """OpenSSH's server on a loopback port."""

    name = "sshd"

    def __init__(self, key):
        self.key = key
        self.daemon = None
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="rwsd-bench-sshd-"))
        self.directory.chmod(0o755)
        self.home = self.directory / "home"
        self.home.mkdir()
        self.equalised = ""

    def start(self):
        program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
        if program is None:
            raise FileNotFoundError("sshd: install openssh-server")
        make_key(self.directory / "host_key")
        (self.directory / "authorized_keys").write_text(public_key(self.key) + "\n")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        sftp = next((path for path in SFTP_SERVERS if os.path.exists(path)), "internal-sftp")
        configuration = self.directory / "sshd_config"
        configuration.write_text(
            SSHD_CONFIG.format(port=self.port, directory=self.directory, sftp=sftp)
        )
        command = [program, "-D", "-f", str(configuration), "-E", str(self.directory / "log")]
        if os.geteuid() == 0:
            command = self.with_account(command)
        else:
            self.user = pwd.getpwuid(os.geteuid()).pw_name
            self.equalised = "sshd serves your own account: its shell and rc files count"
        self.daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=adopt_orphans)
        wait_until(self.accepts, what="sshd")
        return self

    def with_account(self, command):
        """Makes sshd see one more account, which nobody else does."""
        self.user = "rwsbench"
        os.makedirs("/run/sshd", exist_ok=True)
        os.chown(self.home, BENCH_UID, BENCH_UID)
        accounts = self.directory / "passwd"
        account = f"{self.user}:x:{BENCH_UID}:{BENCH_UID}::{self.home}:/bin/sh\n"
        accounts.write_text(pathlib.Path("/etc/passwd").read_text() + account)
        accounts.chmod(0o644)
        self.equalised = "sshd serves an account of its own with /bin/sh and no rc files"
        script = 'mount --bind "$1" /etc/passwd && shift && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", str(accounts), *command]

    def accepts(self):
        if self.daemon.poll() is not None:
            log = (self.directory / "log").read_text() if (self.directory / "log").exists() else ""
            raise RuntimeError(f"sshd ended: {log}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def process(self):
        return self.daemon.pid

    def connections(self):
        return len(children(self.daemon.pid))

    def stop(self):
        if self.daemon is not None:
            self.daemon.terminate()
            self.daemon.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class LongLine:
    """The delaying proxy in front of a server."""

    def __init__(self, program, server, milliseconds):
        self.process = subprocess.Popen(
            [program, str(server.port), str(milliseconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.port = int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
