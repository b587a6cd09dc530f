# SPDX-License-Identifier: ISC
"""SFTP and scp spoken wrongly, and names in the sandbox that would hold whoever opens them."""

import struct

import pytest
from attacker import Attacker, number, text
from clients import TIMEOUT, ssh

DRIVERS = ("local",)

# draft-ietf-secsh-filexfer-02 section 3: what a request has behind its number.
HANDLE = text(b"\0\0\0\0")
REQUESTS = {
    3: [text("file"), number(0x1A), number(0)],
    4: [HANDLE],
    5: [HANDLE, number(0, 0), number(10)],
    6: [HANDLE, number(0, 0), text("x")],
    7: [text("file")],
    8: [HANDLE],
    9: [text("file"), number(0)],
    10: [HANDLE, number(0)],
    11: [text(".")],
    12: [HANDLE],
    13: [text("file")],
    14: [text("directory"), number(0)],
    15: [text("directory")],
    16: [text(".")],
    17: [text("file")],
    18: [text("a"), text("b")],
    19: [text("link")],
    20: [text("a"), text("b")],
    200: [text("statvfs@openssh.com"), text(".")],
    99: [],
}
ALL_ONES = 0xFFFFFFFF
FIELDS = [
    b"",
    number(ALL_ONES),
    number(ALL_ONES >> 1),
    text(b"\0"),
    text(b"a\0b"),
    text("x" * 5000),
    text("../" * 2000),
    text("a/" * 4000),
    text(b"\xff\xfe"),
    text("\n\x1b[31m"),
    text("/proc/self/root/etc/passwd"),
    text(""),
]
STATUS, OPENED = 101, 102


class Sftp:
    """The protocol by hand."""

    def __init__(self, gateway):
        self.client = Attacker(gateway)
        self.channel = self.client.open_session()
        self.channel.settimeout(TIMEOUT)
        self.channel.invoke_subsystem("sftp")
        self.stream = self.channel.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.client.cut()

    def send(self, body):
        self.channel.sendall(text(body))

    def answer(self):
        return self.stream.read(struct.unpack(">I", self.stream.read(4))[0])

    def begin(self):
        self.send(b"\1" + number(3))
        assert self.answer()[0] == 2

    def ask(self, kind, *fields, ticket=7):
        self.send(bytes([kind]) + number(ticket) + b"".join(fields))
        return self.answer()


@pytest.mark.core
def test_a_field_that_is_wrong_gets_an_answer_to_its_number(gateway):
    ticket = 0
    with Sftp(gateway) as sftp:
        sftp.begin()
        for kind, fields in REQUESTS.items():
            for place in range(len(fields) + 1):
                for wrong in FIELDS:
                    ticket += 1
                    answer = sftp.ask(kind, *fields[:place], wrong, *fields[place + 1 :], ticket=ticket)
                    assert struct.unpack(">I", answer[1:5])[0] == ticket
    assert ssh(gateway, "echo well").stdout == b"well\n"


@pytest.mark.core
@pytest.mark.parametrize(
    "start",
    [number(0), number(ALL_ONES), number(5) + b"\2" + number(3), number(1 << 20) + b"\1" + b"x" * 9],
    ids=["empty", "huge", "early", "long"],
)
def test_a_frame_that_is_wrong_ends_with_a_line_that_says_so(gateway, start):
    with Sftp(gateway) as sftp:
        sftp.channel.sendall(start)
        assert sftp.channel.makefile_stderr("rb").read().startswith(b"rws: INVALID: sftp: ")
        assert sftp.channel.recv_exit_status() == 255


SPECIAL = """
mkdir -p special && cd special && mkfifo fifo && ln -s loop loop && ln -s / top && ln -s /proc/self/mem memory
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
"""


@pytest.mark.core
@pytest.mark.parametrize("name", ["fifo", "loop", "memory", "socket", "top/etc/passwd", "top/dev/zero", "top/proc/1/mem"])
def test_nothing_special_is_opened_or_waited_for(gateway, name):
    assert ssh(gateway, f"rm -rf special; {SPECIAL}").returncode == 0
    path = text(f"special/{name}")
    with Sftp(gateway) as sftp:
        sftp.begin()
        for flags in (1, 2, 0x1A):
            assert sftp.ask(3, path, number(flags, 0))[0] == STATUS
        assert sftp.ask(9, path, number(1, 0, 0))[0] == STATUS
        assert sftp.ask(11, path)[0] == STATUS


def test_open_files_have_a_limit_and_leave_nothing(gateway):
    with Sftp(gateway) as sftp:
        sftp.begin()
        opened = [sftp.ask(3, text(f"many{each}"), number(0x1A, 0))[0] for each in range(300)]
        assert opened.count(OPENED) == 256 and opened[-1] == STATUS
    assert ssh(gateway, "ls | grep many").stdout == b""


@pytest.mark.core
@pytest.mark.parametrize(
    "stream",
    [
        b"C0644 5 ../evil\nhello\0",
        b"C0644 5 ..\nhello\0",
        b"C0644 5 a/b\nhello\0",
        b"C0644 5 \nhello\0",
        b"C0644 5 evil\0name\nhello\0",
        b"C0644 99999999999999999999 evil\n",
        b"C0644 -5 evil\n",
        b"C9999 5 evil\nhello\0",
        b"D0755 0 ..\nC0644 5 evil\nhello\0E\n",
        b"E\n",
        b"T99999999999999999999 0 0 0\nC0644 0 evil\n\0",
        b"C" + b"9" * 100_000 + b"\n",
        b"x" * 300_000,
        b"\n" * 1000,
        b"C0644 5 evil\nhe",
        b"\2gone\n",
    ],
    ids=range(16),
)
def test_a_hostile_source_of_scp_writes_nothing(gateway, stream):
    done = ssh(gateway, "scp -r -t .", stdin=stream)
    assert done.returncode == 1
    assert ssh(gateway, "ls -a .. | grep evil; ls -a | grep evil").stdout == b""
