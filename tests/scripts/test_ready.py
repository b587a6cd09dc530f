# SPDX-License-Identifier: ISC
"""core/scripts/ready.sh: a terminal is raw and says so, and becomes the command that it is told there."""

import os
import pathlib
import pty
import re
import termios

import shells

MARK = "rws:0123456789abcdef"


def start(shell, directory):
    """The script as the leader of a session on a terminal of its own; its process and our end."""
    ours, theirs = pty.openpty()
    process = shells.start(
        shell,
        "ready",
        [MARK, shells.text("launch")],
        directory,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    return process, ours


def read_until(terminal, text):
    said = b""
    while text not in said:
        said += os.read(terminal, 4096)
    return said


def tell(terminal, words, variables=()):
    """What launch.sh reads: counts, and texts behind their lengths."""
    message = b""
    for texts in (variables, words):
        message += b"%8d" % len(texts) + b"".join(b"%8d%s" % (len(text), text) for text in texts)
    os.write(terminal, message)


def rest(terminal):
    said = b""
    try:
        while piece := os.read(terminal, 4096):
            said += piece
    except OSError:  # EIO: nobody has it open any more
        pass
    return said


def test_it_says_who_it_is_and_becomes_the_command(shell, tmp_path):
    process, terminal = start(shell, tmp_path)
    said = read_until(terminal, f"\036{MARK}\n".encode())
    found = re.fullmatch(rf"(\d+) (\d+)\n\036{MARK}\n", said.decode())
    assert found and int(found.group(1)) == process.pid
    stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
    assert stat.rpartition(")")[2].split()[19] == found.group(2)
    tell(terminal, [b"sh", b"-c", b"echo \"$$:$A:$1\"; exit 7", b"sh", b"two\nlines\n"], [b"A=b c"])
    assert rest(terminal) == b"%d:b c:two\nlines\n\n" % process.pid
    assert process.wait(60) == 7


def test_the_terminal_is_raw_from_the_mark_on(shell, tmp_path):
    process, terminal = start(shell, tmp_path)
    read_until(terminal, f"\036{MARK}\n".encode())
    local = termios.tcgetattr(terminal)[3]
    assert not local & (termios.ECHO | termios.ICANON | termios.ISIG)
    tell(terminal, [b"head", b"-c", b"256"])
    every_byte = bytes(range(256))
    os.write(terminal, every_byte)
    assert rest(terminal) == every_byte
    assert process.wait(60) == 0
