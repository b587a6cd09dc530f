# SPDX-License-Identifier: ISC
"""A fake machine: a private root, pid, network and user namespace made by bubblewrap, with our agent as its init.

The root is one directory of the host (so that renames work across the whole tree) with the system's /usr read-only in
it. A machine starts in some 100 ms, a process in it in a few: only the agent forks. Killing bubblewrap kills all.
"""
import asyncio
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
from dataclasses import dataclass, field

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent")
USER, UID = "user", 1000        # the user's name if the provider has no other
HOMES = {"user": "/home/user", "root": "/root"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SHARED_ETC = ("alternatives", "ssl", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "bash.bashrc",
              "inputrc", "terminfo", "magic", "protocols", "services")
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\n{user}:x:1000:1000:{user}:{home}:/bin/bash\n"
              "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\n{user}:x:1000:\nnogroup:x:65534:\n",
    "profile": "if [ -n \"$BASH\" ] && [ -f /etc/bash.bashrc ]; then . /etc/bash.bashrc; fi\n",
    "shells": "/bin/sh\n/bin/bash\n",
    "resolv.conf": "",
    "os-release": "ID=debian\nNAME=\"fake machine\"\n",
}


class MachineError(OSError):
    """What the agent could not do; .errno_name is the symbolic errno."""

    def __init__(self, errno_name, text):
        super().__init__(text)
        self.errno_name = errno_name
        self.text = text


@dataclass
class Spawned:
    """A process in a machine: its pid there, our ends of its streams (non-blocking), its wait status to come."""
    pid: int
    exited: asyncio.Future
    stdin: int = -1
    stdout: int = -1
    stderr: int = -1
    pty: int = -1


@dataclass
class Inbox:
    """Bytes and descriptors that arrived from the agent and make no whole message yet."""
    data: bytearray = field(default_factory=bytearray)
    fds: list = field(default_factory=list)


def make_root(root, hostname, user, home):
    """Lay out the writable part of a machine's file system; what exists is left alone (a reboot keeps its disk)."""
    for name in ("etc", home.strip("/"), "root", "tmp", "var/tmp", "var/log", "run", "opt", "mnt", "srv",
                 "usr", "proc", "dev", "sys", "run/machine"):
        os.makedirs(os.path.join(root, name), 0o755, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        os.chmod(os.path.join(root, name), 0o1777)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink("/" + name) and not os.path.lexists(os.path.join(root, name)):
            os.symlink(os.readlink("/" + name), os.path.join(root, name))
    accounts = {name: ETC[name].format(user=user, home=home) for name in ("passwd", "group")}
    texts = dict(ETC, **accounts, hostname=hostname + "\n", hosts=f"127.0.0.1 localhost {hostname}\n::1 localhost\n")
    for name, text in texts.items():
        path = os.path.join(root, "etc", name)
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)


def sandbox_command(root, hostname, fd):
    """The bubblewrap command line that makes the machine and runs the agent with its socket on fd."""
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--as-pid-1", "--hostname", hostname,
               "--uid", str(UID), "--gid", str(UID), "--clearenv", "--setenv", "PATH", PATH,
               "--bind", root, "/", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev",
               "--ro-bind", AGENT, "/run/machine"]
    for name in ("bin", "sbin", "lib", "lib64"):
        if not os.path.islink("/" + name) and os.path.isdir("/" + name):
            command += ["--ro-bind", "/" + name, "/" + name]
    for name in SHARED_ETC:
        if os.path.exists("/etc/" + name):
            command += ["--ro-bind", "/etc/" + name, "/etc/" + name]
    return command + ["--chdir", "/", "/usr/bin/python3", "-S", "-E", "-B", "/run/machine", str(fd)]


class Machine:
    """One running machine. Create with `await Machine.start(...)`; .dead resolves when it is gone."""

    def __init__(self, process, sock):
        self.loop = asyncio.get_running_loop()
        self.process = process
        self.sock = sock
        self.dead = self.loop.create_future()
        self.ready = self.loop.create_future()
        self._inbox = Inbox()
        self._calls = {}
        self._exits = {}
        self._next_id = 0
        self._sending = asyncio.Lock()
        self.loop.add_reader(sock, self._readable)

    @classmethod
    async def start(cls, root, hostname, user=USER, home=None):
        """Boot a machine on the directory `root`; returns when its init answers. `home` is /home/USER if not given."""
        root = os.path.abspath(root)
        make_root(root, hostname, user, home or f"/home/{user}")
        ours, theirs = socket.socketpair()
        with theirs:
            command = sandbox_command(root, hostname, theirs.fileno())
            process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL)
        ours.setblocking(False)
        machine = cls(process, ours)
        await asyncio.wait([machine.ready, machine.dead], return_when=asyncio.FIRST_COMPLETED)
        if not machine.ready.done():
            raise RuntimeError("a fake machine did not start: does bubblewrap work here?")
        return machine

    def kill(self):
        """End the machine and everything in it, now."""
        self.process.kill()
        self._lost()

    async def call(self, op, **arguments):
        """Have the agent do `op`; returns (result, descriptors) or raises MachineError."""
        if self.dead.done():
            raise MachineError("ESHUTDOWN", "the machine is gone")
        self._next_id += 1
        number = self._next_id
        answer = self._calls[number] = self.loop.create_future()
        payload = json.dumps({"id": number, "op": op, **arguments}).encode()
        async with self._sending:
            try:
                await self.loop.sock_sendall(self.sock, struct.pack(">I", len(payload)) + payload)
            except OSError:
                self._lost()
        return await answer

    async def spawn(self, argv, env, cwd, stdin="null", pty=None, root=False, setsid=False, setpgid=False,
                    output="split", search=False):
        """Start a process. `pty` is (rows, cols) or None; `stdin` is "pipe" or "null"; `output` is "split" (stdout and
        stderr), "merged" (both in stdout) or "null"; `search` looks argv[0] up in the PATH of `env`."""
        result, fds = await self.call("spawn", argv=argv, env=env, cwd=cwd, stdin=stdin, pty=pty, root=root,
                                      setsid=setsid, setpgid=setpgid, output=output, search=search)
        for fd in fds:
            os.set_blocking(fd, False)
        outputs = {"split": ["stdout", "stderr"], "merged": ["stdout"], "null": []}[output]
        names = ["pty"] if pty else [*outputs, "stdin"]
        return Spawned(result["pid"], result["exited"], **dict(zip(names, fds)))

    async def signal(self, pid, number):
        await self.call("signal", pid=pid, signal=int(number))

    async def freeze(self):
        """Stop every process of the machine, as a snapshot of its memory would."""
        await self._signal_all(signal.SIGSTOP)

    async def thaw(self):
        await self._signal_all(signal.SIGCONT)

    async def _signal_all(self, number):
        try:
            await self.signal(-1, number)
        except MachineError as error:
            if error.errno_name != "ESRCH":     # nothing runs there
                raise

    def _readable(self):
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, 1 << 16, 64)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self._lost()
            return
        self._inbox.data += data
        self._inbox.fds += fds
        self._take_messages()

    def _take_messages(self):
        data = self._inbox.data
        while len(data) >= 4:
            end = 4 + struct.unpack_from(">I", data)[0]
            if len(data) < end:
                return
            message = json.loads(data[4:end])
            del data[:end]
            self._dispatch(message)

    def _dispatch(self, message):
        if "hello" in message:
            self.ready.set_result(True)
        elif "exit" in message:
            # Orphans that init adopted are reported too; nobody asks for them. A pid is told once, so it may be reused.
            exited = self._exits.pop(message["exit"], None)
            if exited and not exited.done():
                exited.set_result(message["status"])
        else:
            self._settle(message)

    def _settle(self, message):
        fds = [self._inbox.fds.pop(0) for _ in range(message.get("fds", 0))]
        result = message.get("result")
        if isinstance(result, dict) and "pid" in result:
            # Here, not in spawn(): the exit message may be next in this same read.
            result["exited"] = self._exits.setdefault(result["pid"], self.loop.create_future())
        answer = self._calls.pop(message["id"])
        if answer.done():
            for fd in fds:
                os.close(fd)
        elif "error" in message:
            answer.set_exception(MachineError(message["error"]["errno"], message["error"]["text"]))
        else:
            answer.set_result((result, fds))

    def _lost(self):
        if self.dead.done():
            return
        self.loop.remove_reader(self.sock)
        self.sock.close()
        self.process.kill()
        self.dead.set_result(True)
        self.loop.run_in_executor(None, self.process.wait)
        for answer in self._calls.values():
            if not answer.done():
                answer.set_exception(MachineError("ESHUTDOWN", "the machine is gone"))
        for exited in self._exits.values():
            if not exited.done():
                exited.set_result(signal.SIGKILL)
        self._calls.clear()


def remove_root(root, attempts=100):
    """Delete a machine's disk, whatever permissions its owner left there. Blocks: for a thread of its own.

    Processes that are just dying may still write, so it takes a few attempts.
    """
    def make_writable(function, path, _):
        try:
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            function(path)
        except OSError:
            pass
    while os.path.exists(root) and attempts:
        shutil.rmtree(root, onerror=make_writable)
        attempts -= 1
