# SPDX-License-Identifier: ISC
"""The interactive endpoint: who gets in, the messages, ends."""
import json
import os

import pytest

from ..common.websocket import TEXT
from ..common.websocket_client import Client, Refused
from .client import exit_of


def resize(socket, rows, cols):
    socket.send(json.dumps({"type": "resize", "cols": cols, "rows": rows}).encode(), TEXT)


def raw_cat(box):
    socket = box.terminal("sh", "-c", "stty raw -echo; printf READY; exec cat")
    socket.until(b"READY")
    return socket


def test_a_url_and_a_token_are_given_and_the_host_is_healthy(box):
    answer = box.call("POST", "/interactive", {}).json
    assert answer["url"] == f"ws://127.0.0.1:{box.server.port}/ws/interactive" and answer["token"]
    assert box.server.request("GET", "/health").status == 200


def test_a_sandbox_that_was_not_made_for_it_has_no_endpoint(server):
    box = server.create(__interactive=False)
    assert box.call("POST", "/interactive", {}).status == 400
    server.config(always_interactive=True)
    assert server.create(__interactive=False).terminal("true").message() == (TEXT, b'{"type": "exit", "code": 0}')


def test_only_the_token_of_a_running_session_lets_in(box):
    token = box.call("POST", "/interactive", {}).json["token"]
    for query in ("", "?token=", "?token=wrong"):
        with pytest.raises(Refused) as refused:
            Client(box.server.socket(), "/ws/interactive" + query)
        assert refused.value.status == 401
    assert Client(box.server.socket(), "/ws/interactive?token=" + token).status == 101
    box.call("POST", "/stop")
    with pytest.raises(Refused):
        Client(box.server.socket(), "/ws/interactive?token=" + token)


def test_a_program_runs_on_a_terminal_of_the_size_that_was_told(box):
    socket = box.terminal("sh", "-c", 'stty size; tty; echo "$A in $PWD"; exit 42', env=["A=x=y"], cwd="/tmp", rows=33,
                          cols=101)
    output, code = exit_of(socket)
    assert output.startswith(b"33 101\r\n/dev/pts/") and output.endswith(b"x=y in /tmp\r\n")
    assert (code, socket.code) == (42, 1000)
    assert exit_of(box.terminal("stty", "size", rows=None, cols=None, cwd=None)) == (b"24 80\r\n", 0)


def test_input_is_bytes_and_so_is_output(box):
    socket, data = raw_cat(box), os.urandom(100000)
    for start in range(0, len(data), 10000):
        socket.send(data[start:start + 10000])
    seen = b""
    while len(seen) < len(data):
        seen += socket.message()[1]
    assert seen == data
    socket.close()


def test_keys_mean_what_they_mean_on_a_terminal(box):
    socket = box.terminal("sh", "-c", "trap 'echo INT' INT; cat; echo end; exit 3")
    socket.send(b"line\r")
    socket.until(b"line\r\nline\r\n")
    socket.send(b"\x03")
    socket.until(b"^C")
    socket.send(b"\x04")
    output, code = exit_of(socket)
    assert b"INT" in output and output.endswith(b"end\r\n") and code == 3


def test_a_resize_reaches_the_program(box):
    socket = box.terminal("sh", "-c", "while read x; do stty size; done")
    resize(socket, 40, 120)
    socket.send(b"\r")
    socket.until(b"40 120\r\n")
    socket.send(b"no json", TEXT)
    socket.send(b'{"type": "resize"}', TEXT)
    socket.send(b"\r")
    socket.until(b"40 120\r\n")
    socket.close()


def test_the_command_may_begin_with_sudo(box):
    assert exit_of(box.terminal("sudo", "sh", "-c", "id -u; tty | head -c 8; exit 9")) == (b"0\r\n/dev/pts", 9)


def test_a_program_that_does_not_exist_is_127(box):
    output, code = exit_of(box.terminal("no-such-program"))
    assert b"no-such-program" in output and code == 127


def test_a_signal_is_128_and_its_number(box):
    assert exit_of(box.terminal("sh", "-c", "kill -9 $$"))[1] == 137


@pytest.mark.parametrize("first", [b"no json", b"[]", b'{"type": "resize"}', b'{"type": "start"}',
                                   b'{"type": "start", "command": "true", "env": ["A"]}',
                                   b'{"type": "start", "command": "true", "rows": "x"}'])
def test_the_first_message_must_be_a_good_start(box, first):
    socket = box.connect()
    socket.send(first, TEXT)
    assert socket.message() is None and socket.code == 1008


def test_all_that_was_written_comes_before_the_exit(box):
    output, code = exit_of(box.terminal("sh", "-c", "stty -opost; seq 200000"))
    assert output == b"".join(b"%d\n" % n for n in range(1, 200001)) and code == 0


def test_the_last_output_can_be_lost(box):
    box.server.config(pty_tail="lost")
    box.run("mkfifo fifo")
    socket = box.terminal("sh", "-c", "echo first; read x < fifo; echo last; exit 4")
    socket.until(b"first\r\n")
    box.run("echo > fifo")
    assert exit_of(socket) == (b"", 4)


def test_processes_left_behind_on_the_terminal_do_not_hold_its_end(box):
    assert exit_of(box.terminal("sh", "-c", "trap '' HUP; sleep 1000 & echo done; exit 6")) == (b"done\r\n", 6)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("setting, survives", [("hangup", False), ("keep", True)])
def test_a_client_that_is_gone_hangs_up_or_does_not(box, setting, survives, cut):
    box.server.config(on_drop=setting)
    box.run("mkfifo go")
    if cut:
        box.server.knob("/ws/interactive$", {"after_ms": 1000}, match={"sandbox": box.name})
    socket = box.terminal("sh", "-c", "trap 'echo hup > end; exit' HUP; echo $$; read x < go; echo fed > end")
    socket.until(b"\r\n")
    if cut:
        assert socket.message() is None and socket.code == 1006
    socket.close()
    if survives:
        box.run("echo > go")
    assert box.run("while ! [ -s end ]; do sleep 0.02; done; cat end")[1] == ("fed\n" if survives else "hup\n")


def test_the_end_of_the_session_is_an_end_without_a_word(box):
    socket = raw_cat(box)
    box.server.fake("POST", f"sandboxes/{box.name}/kill")
    assert exit_of(socket) == (b"", None) and socket.code == 1006


def test_a_program_waits_for_a_client_that_does_not_read(box):
    box.run("echo 0 > count")
    socket = box.terminal("sh", "-c", "while :; do head -c 100000 /dev/zero; n=$((n+1)); echo $n > count; done")
    settled = ("a=x; b=y; while [ \"$a\" != \"$b\" ]; do a=$b; sleep 0.3; b=$(cat count); done; "
               "echo $b")
    assert int(box.run(settled)[1]) < 200, "what fits into the buffers on the way"
    socket.close()
