# SPDX-License-Identifier: ISC
"""Init process of a fake machine: pid 1 of its pid namespace.

Serves requests that arrive on an inherited stream socket: starts processes and opens files *inside* the machine and
hands their descriptors out (SCM_RIGHTS), so that no byte of a process passes through here. Being pid 1 it cannot be
killed from inside and when it ends the kernel kills everything in the machine. It ends when the socket does.

Frame: 4 bytes big-endian length, JSON. A request is {"id", "op", ...}; an answer {"id", "result"|"error", "fds"};
a message {"exit": pid, "status": wait status} tells of a child's end.
"""
import array
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
import termios

import files
import tree

CLONE_NEWUSER = 0x10000000
LIBC = ctypes.CDLL(None, use_errno=True)


def become_root():
    """Enter a user namespace in which our only user is called root (nothing else changes: there is one real user)."""
    uid, gid = os.getuid(), os.getgid()
    if LIBC.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as f:
            f.write(text)


def set_size(fd, rows, cols):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def open_pty(size):
    """Return (fds to hand out, the child's three descriptors) for a terminal."""
    master, slave = os.openpty()
    set_size(slave, *size)
    return [master], [slave, slave, slave]


def open_pipes(stdin, output):
    """Return (fds to hand out: stdout, stderr and stdin, as far as wanted; the child's three descriptors)."""
    handed, child_in, child_out = [], os.open("/dev/null", os.O_RDWR), os.open("/dev/null", os.O_RDWR)
    child_err = child_out
    if output != "null":
        os.close(child_out)
        out, child_out = os.pipe()
        handed, child_err = [out], child_out
    if output == "split":
        err, child_err = os.pipe()
        handed.append(err)
    if stdin == "pipe":
        os.close(child_in)
        child_in, feed = os.pipe()
        handed.append(feed)
    return handed, [child_in, child_out, child_err]


def run_child(request, stdio):
    """In the forked child: set the process up and exec. Raises OSError when that fails."""
    for sig in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(sig, signal.SIG_DFL)
    if request.get("pty") or request.get("setsid"):
        os.setsid()
    elif request.get("setpgid"):
        os.setpgid(0, 0)
    if request.get("pty"):
        fcntl.ioctl(stdio[0], termios.TIOCSCTTY, 0)
    for number, fd in enumerate(stdio):
        os.dup2(fd, number)
    if request.get("root"):
        become_root()
    os.umask(0o022)
    os.chdir(request["cwd"])
    execute = os.execvpe if request.get("search") else os.execve
    execute(request["argv"][0], request["argv"], request["env"])


def child_main(request, stdio, report):
    """Never returns: exec, or the errno on the report pipe."""
    failure = errno.EINVAL
    try:
        run_child(request, stdio)
    except OSError as error:
        failure = error.errno
    finally:
        os.write(report, struct.pack("i", failure))
        os._exit(127)


def spawn(request):
    """Start a process; answers its pid and the descriptors of its standard streams once it has exec'd."""
    handed, stdio = open_pty(request["pty"]) if request.get("pty") else open_pipes(
        request.get("stdin"), request.get("output", "split"))
    report, child_report = os.pipe()
    pid = os.fork()
    if pid == 0:
        child_main(request, stdio, child_report)
    os.close(child_report)
    for fd in set(stdio):
        os.close(fd)
    failure = os.read(report, 4)
    os.close(report)
    if failure:
        for fd in handed:
            os.close(fd)
        number = struct.unpack("i", failure)[0]
        raise OSError(number, os.strerror(number))
    return {"pid": pid}, handed


def send_signal(request):
    os.kill(request["pid"], request["signal"])
    return {}, []


def connect_port(request):
    """Open a connection to a port of the machine's own loopback interface."""
    sock = socket.create_connection(("127.0.0.1", request["port"]), timeout=5)
    sock.setblocking(True)
    return {}, [sock.detach()]


OPERATIONS = {"spawn": spawn, "signal": send_signal, "connect": connect_port, **files.OPERATIONS,
              **tree.OPERATIONS}


class Agent:
    """The loop: requests in, answers and exits out."""

    def __init__(self, sock):
        sock.set_inheritable(False)     # no process of the machine may have it
        self.sock = sock
        self.inbox = bytearray()

    def send(self, message, fds=()):
        payload = json.dumps(message).encode()
        data = memoryview(struct.pack(">I", len(payload)) + payload)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        sent = self.sock.sendmsg([data], ancillary)
        self.sock.sendall(data[sent:])

    def answer(self, request):
        fds = []
        try:
            result, fds = OPERATIONS[request["op"]](request)
            message = {"id": request["id"], "result": result, "fds": len(fds)}
        except OSError as error:
            name = errno.errorcode.get(error.errno, "EIO")
            message = {"id": request["id"], "error": {"errno": name, "text": error.strerror or str(error)}}
        self.send(message, fds)
        for fd in fds:
            os.close(fd)

    def receive(self):
        """Handle every complete request that has arrived; False at the end of the socket."""
        data = self.sock.recv(1 << 18)
        self.inbox += data
        while len(self.inbox) >= 4:
            end = 4 + struct.unpack_from(">I", self.inbox)[0]
            if len(self.inbox) < end:
                break
            request = json.loads(self.inbox[4:end])
            del self.inbox[:end]
            self.answer(request)
        return bool(data)

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.send({"exit": pid, "status": status})

    def run(self):
        wake, signalled = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(signalled, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
        self.send({"hello": os.getpid()})
        poller = select.poll()
        poller.register(self.sock, select.POLLIN)
        poller.register(wake, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll()]
            if wake in ready:
                os.read(wake, 4096)
                self.reap()
            if self.sock.fileno() in ready and not self.receive():
                return


def main(fd):
    os.closerange(3, fd)        # what bubblewrap left open
    os.closerange(fd + 1, 1024)
    try:
        Agent(socket.socket(fileno=fd)).run()
    except ConnectionError:
        pass        # the fake is gone, and we with it


if __name__ == "__main__":
    main(int(sys.argv[1]))
