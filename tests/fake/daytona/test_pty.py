# SPDX-License-Identifier: ISC
"""Terminals: their endpoints, both directions, their limits, how they end."""
import base64
import json
import os

import pytest

from ..common.websocket import PING, TEXT
from ..common.websocket_client import Refused

EXIT_CONTROL = "X-Daytona-Pty-Exit-Control"


def test_create_list_info_delete(box):
    answer = box.http("POST", "/process/pty", {"id": "p", "cols": 100, "rows": 30, "cwd": "/tmp", "envs": {"A": "b"}})
    assert (answer.status, answer.json) == (201, {"sessionId": "p"})
    info = box.http("GET", "/process/pty/p").json
    assert box.http("GET", "/process/pty").json == {"sessions": [info]}
    assert info.pop("createdAt").endswith("Z")
    assert info == {"id": "p", "cwd": "/tmp", "envs": {"A": "b", "TERM": "xterm-256color"}, "cols": 100, "rows": 30,
                    "active": True, "lazyStart": False}
    assert box.http("DELETE", "/process/pty/p").json == {"message": "PTY session deleted"}
    gone = box.http("DELETE", "/process/pty/p")
    assert (gone.status, gone.json) == (404, {"error": "PTY session not found"})


@pytest.mark.parametrize("body, status, text", [
    ({"id": "taken"}, 409, "PTY session with ID 'taken' already exists"), ({}, 400, "session ID is required"),
    ({"id": "p", "cols": 1001}, 400, "invalid value for cols - must be less than 1000"),
    ({"id": "p", "rows": -1}, 400, "json: cannot unmarshal number -1 into Go struct field PTYCreateRequest.rows of "
                                   "type uint16"),
    ({"id": "p", "cwd": "/nope"}, 500, "failed to start PTY session")])
def test_create_refuses(box, body, status, text):
    box.http("POST", "/process/pty", {"id": "taken"})
    answer = box.http("POST", "/process/pty", body)
    assert (answer.status, answer.json) == (status, {"error": text})


def test_a_raw_terminal_is_byte_exact_both_ways(box):
    socket, data = box.raw_pty("cat"), bytes(range(256)) + os.urandom(1 << 20)
    back = b""
    for start in range(0, len(data), 50000):
        part = data[start:start + 50000]
        socket.send(part, TEXT if start == 0 else 2)
        while len(back) < start + len(part):
            back += socket.message()[1]
    assert back == data


def test_the_shell_is_an_interactive_login_shell_of_the_right_size(box):
    socket = box.pty(cols=111, rows=33, envs={"A": "b"}, cwd="/tmp")
    socket.send(b"shopt -q login_shell && echo $- $A $TERM $(stty size) $PWD\n")
    assert b"himBHs b xterm-256color 33 111 /tmp" in socket.until(b"111 /tmp")
    answer = box.http("POST", "/process/pty/p/resize", {"cols": 99, "rows": 22})
    assert (answer.status, answer.json["cols"], answer.json["rows"]) == (200, 99, 22)
    socket.send(b"echo size $(stty size)\n")
    socket.until(b"size 22 99")
    assert box.http("POST", "/process/pty/p/resize", {"cols": 1001, "rows": 1}).status == 400
    assert box.http("POST", "/process/pty/nope/resize", {"cols": 1, "rows": 1}).status == 410


@pytest.mark.parametrize("line, code, reason", [
    ("exit", 1000, {"exitCode": 0}), ("exit 7", 1011, {"exitCode": 7, "exitReason": "non-zero exit"}),
    ("exit 130", 1011, {"exitCode": 130, "exitReason": "Ctrl+C"}),
    ("exit 140", 1011, {"exitCode": 140, "exitReason": "signal 12"}),
    ("kill -9 $$", 1011, {"exitCode": -1, "exitReason": "non-zero exit"})])
def test_the_end_is_told_by_the_close_frame(box, line, code, reason):
    socket = box.pty()
    socket.send(line.encode() + b"\n")
    socket.rest()
    assert (socket.code, json.loads(socket.reason)) == (code, reason)
    assert box.http("GET", "/process/pty/p").status == 404


def test_delete_kills_what_runs_in_it(box):
    socket = box.pty()
    socket.send(b"sleep 1000 & disown; sleep 2000\n")
    while "2" not in box.execute("ps -A -o comm= | grep -c sleep; true")[1]:
        pass
    box.http("DELETE", "/process/pty/p")
    socket.rest()
    assert (socket.code, json.loads(socket.reason)) == (1011, {"exitCode": 137, "exitReason": "SIGKILL"})
    while "0" not in box.execute("ps -A -o comm= | grep -c sleep; true")[1]:
        pass


def test_connect_to_nothing_succeeds_first(box):
    socket = box.socket("/process/pty/nope/connect")
    kind, text = socket.message()
    assert kind == TEXT and json.loads(text) == {
        "type": "control", "status": "error", "error": "Failed to connect to PTY session: PTY session nope not found"}
    assert socket.message() is None and socket.code == 1006


def test_a_dropped_socket_leaves_it_running_without_history(box):
    socket = box.raw_pty("sh -c 'echo one; read x; echo two'")
    socket.until(b"one")
    socket.close()
    again, other = box.connect(), box.connect()
    again.send(b"go\n")
    assert again.rest() == other.rest() == b"two\n"


def test_a_lazy_terminal_starts_with_its_first_client(box):
    box.http("POST", "/process/pty", {"id": "p", "lazyStart": True, "cols": 70})
    assert box.http("GET", "/process/pty/p").json["active"] is False
    socket = box.connect()
    socket.send(b"stty size\n")
    socket.until(b"24 70")


def test_a_message_may_have_64_kib(box):
    socket = box.raw_pty("head -c 65536 >f")
    socket.send(b"x" * 65536)
    socket.rest()
    assert socket.code == 1000 and len(box.read("f").body) == 65536
    socket = box.pty("q")
    socket.send(b"x" * 65537)
    socket.rest()
    assert socket.code == 1009
    assert box.http("GET", "/process/pty/q").status == 200, "only the client is gone"


def test_pings_are_answered(box):
    socket = box.pty()
    socket.send(b"hello", PING)
    while (frame := socket.frame())[0] != 0x8a:
        pass
    assert frame[1] == b"hello"


def test_who_does_not_read_is_dropped(box):
    """Nothing slows the program down; the client finds a hole and 1008 at its end."""
    box.server.fake("POST", "config", {"pty_send_buffer": 4096})
    socket = box.raw_pty("sh -c 'head -c 20000000 /dev/zero; touch done; sleep 1000'")
    while box.read("done").status != 200:
        pass
    data = socket.rest()
    assert len(data) < 20000000
    assert socket.code in (1008, 1006), socket.code
    assert box.http("GET", "/process/pty/p").json["active"]


def test_a_steady_reader_gets_everything(box):
    socket = box.raw_pty("sh -c 'head -c 5000000 /dev/zero; read x'")
    seen = 0
    while seen < 5000000:
        seen += len(socket.message()[1])
    assert seen == 5000000


def test_the_tail_can_be_lost_or_kept(box):
    box.server.fake("POST", "config", {"pty_tail": "lost"})
    socket = box.raw_pty("sh -c 'read x; printf tail'")
    socket.send(b"\n")
    assert socket.rest() == b"" and socket.code == 1000
    box.server.fake("POST", "config", {"pty_tail": "kept"})
    socket = box.raw_pty("sh -c 'read x; head -c 100000 /dev/zero; printf tail'", "q")
    socket.send(b"\n")
    data = socket.rest()
    assert data.endswith(b"tail") and len(data) == 100004 and socket.code == 1000


# -- the newer form ---------------------------------------------------------------------------------------------------


def test_create_connect_is_not_there_by_default(box):
    with pytest.raises(Refused) as refused:
        box.socket("/process/pty/create-connect?id=p")
    assert (refused.value.status, json.loads(refused.value.body)) == (404, {"error": "PTY session not found"})
    assert box.http("GET", "/process/pty").json == {"sessions": []}


def test_create_connect(box):
    box.server.fake("POST", "config", {"create_connect": True})
    envs = base64.urlsafe_b64encode(b'{"A":"x y"}').decode().rstrip("=")
    protocols = {"Sec-WebSocket-Protocol": f"X-Daytona-Pty-Envs~{envs},{EXIT_CONTROL}"}
    socket = box.socket("/process/pty/create-connect?id=p&cols=120&rows=30&cwd=%2Ftmp", **protocols)
    assert socket.headers["sec-websocket-protocol"] == EXIT_CONTROL
    socket.send(b"echo $A $PWD $(stty size); exit 7\n")
    controls, output = [], b""
    while message := socket.message():
        if message[0] == TEXT:
            controls.append(json.loads(message[1]))
        else:
            output += message[1]
    assert b"x y /tmp 30 120" in output
    assert controls == [{"type": "control", "status": "connected"},
                        {"type": "control", "status": "exited", "exitCode": 7, "exitReason": "non-zero exit"}]
    assert (socket.code, json.loads(socket.reason)["exitCode"]) == (1011, 7)
    box.http("POST", "/process/pty", {"id": "p"})
    with pytest.raises(Refused) as refused:
        box.socket("/process/pty/create-connect?id=p")
    assert refused.value.status == 409


def test_subprotocols(box):
    box.http("POST", "/process/pty", {"id": "p"})
    version = {"Sec-WebSocket-Protocol": "X-Daytona-SDK-Version~0.100.0"}
    assert box.connect(**version).headers["sec-websocket-protocol"] == "X-Daytona-SDK-Version~0.100.0"
    assert "sec-websocket-protocol" not in box.connect(**{"Sec-WebSocket-Protocol": EXIT_CONTROL}).headers
    box.server.fake("POST", "config", {"create_connect": True})
    assert box.connect(**{"Sec-WebSocket-Protocol": EXIT_CONTROL}).headers["sec-websocket-protocol"] == EXIT_CONTROL
    box.server.fake("POST", "config", {"subprotocol_echo": False})
    assert "sec-websocket-protocol" not in box.connect(**{"Sec-WebSocket-Protocol": EXIT_CONTROL}).headers
