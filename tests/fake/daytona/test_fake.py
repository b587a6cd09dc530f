# SPDX-License-Identifier: ISC
"""The control endpoint, the named errors, and every fault that a knob can make of an answer or a WebSocket."""
import json

import pytest

from ..common.client import TIMEOUT
from ..common.websocket_client import Refused
from .client import KEY, FakeServer


@pytest.mark.parametrize("name, status, headers", [
    ("rate_limited", 429, {"Retry-After-authenticated": "1", "Retry-After": None}),
    ("create_rate_limited", 429, {"Retry-After-sandbox-create": "2", "X-RateLimit-Remaining-sandbox-create": "0",
                                  "Retry-After": None}),
    ("auth_rate_limited", 429, {"Retry-After-failed-auth": "1", "Retry-After": "1"}),
    ("unauthorized", 401, {}), ("in_progress", 409, {}), ("cpu_quota", 400, {}), ("maintenance", 503, {}),
    ("html", 200, {"Content-Type": "text/html; charset=utf-8"}), ("empty", 502, {"Content-Length": "0"})])
def test_named_errors_of_the_control_plane(server, name, status, headers):
    server.knob("^/api/sandbox$", {"error": name})
    answer = server.api("POST", "/sandbox", {})
    assert answer.status == status
    assert {name: answer.headers.get(name) for name in headers} == headers
    if name not in ("html", "empty"):
        assert answer.json["statusCode"] == status and isinstance(answer.json["message"], str)
    assert server.api("POST", "/sandbox", {}).status == 200, "a knob strikes once"


@pytest.mark.parametrize("name, status", [
    ("not_started", 400), ("no_container", 404), ("no_runner", 400), ("toolbox_unauthorized", 401),
    ("execute_timeout", 408)])
def test_named_errors_of_the_toolbox(box, name, status):
    box.server.knob("/version$", {"error": name})
    answer = box.http("GET", "/version")
    assert (answer.status, answer.json["statusCode"]) == (status, status)


def test_an_answer_can_be_lost_before_and_after(box):
    for drop, happened in (("before", 404), ("after", 200)):
        box.server.knob("/execute$", {"drop": drop})
        with pytest.raises(ConnectionError):
            box.execute(f"touch {drop}")
        assert box.read(drop).status == happened


def test_an_upload_can_break_off(box):
    box.server.knob("/bulk-upload$", {"request_bytes": 500000})
    with pytest.raises(ConnectionError):
        box.write("f", bytes(2000000))
    assert 0 < len(box.read("f").body) < 2000000, "not atomic"


def test_a_download_can_break_off(box):
    box.write("f", bytes(100000))
    box.server.knob("/download", {"after_bytes": 1000, "how": "fin"})
    connection = box.server.connect()
    connection.request("GET", box.prefix + "/files/download?path=f", headers=KEY)
    answer = connection.getresponse()
    assert answer.headers["Content-Length"] == "100000"
    with pytest.raises(Exception, match="1000 bytes read"):
        answer.read()


def test_the_daemon_can_be_down_while_the_state_says_started(box):
    box.server.fake("POST", "config", {"daemon_down": True})
    answer = box.http("GET", "/version")
    assert (answer.status, answer.body) == (502, b"")
    assert box.server.api("GET", f"/sandbox/{box.id}").json["state"] == "started"


def test_a_knob_can_end_the_sandbox_under_a_request(box):
    box.server.knob("/connect$", {"after_events": 1, "kill_sandbox": True, "then": "go on"})
    box.http("POST", "/process/pty", {"id": "p"})
    socket = box.socket("/process/pty/p/connect")
    socket.rest()
    assert socket.code == 1006
    assert box.server.api("GET", f"/sandbox/{box.id}").status == 404


# -- WebSockets -------------------------------------------------------------------------------------------------------


def echo(box, action):
    """A raw `cat` terminal; its second connection is the one that the knob strikes."""
    box.raw_pty("cat")
    box.server.knob("/connect$", action)
    return box.socket("/process/pty/p/connect")


@pytest.mark.parametrize("fault, wrong", [
    ("accept", "sec-websocket-accept"), ("protocol", "sec-websocket-protocol"),
    ("extension", "sec-websocket-extensions")])
def test_a_handshake_can_be_wrong(box, fault, wrong):
    good, bad = echo(box, {"handshake": fault}), box.socket("/process/pty/p/connect")
    assert good.headers.get(wrong) != bad.headers.get(wrong)


def test_an_upgrade_can_be_refused(box):
    for status in (200, 400, 502):
        box.server.knob("/connect$", {"status": status, "body": {"message": "no"}})
        with pytest.raises(Refused) as refused:
            box.socket("/process/pty/p/connect")
        assert refused.value.status == status and json.loads(refused.value.body) == {"message": "no"}


def test_the_answer_to_an_upgrade_can_be_lost(box):
    box.server.fake("POST", "config", {"create_connect": True})
    box.server.knob("/create-connect", {"drop": "after"})
    with pytest.raises((ConnectionError, IndexError)):
        box.socket("/process/pty/create-connect?id=p")
    assert box.http("GET", "/process/pty/p").status == 200, "and yet it was created"


@pytest.mark.parametrize("kind, first, payload", [
    ("fragmented", 0x02, b"h"), ("compressed", 0xc2, b"hey"), ("masked", 0x82, b"\1\2\3\4"), ("opcode", 0x83, b"hey"),
    ("text", 0x81, b"\xffhey"), ("garbage", 0x80, b"hey"), ("long_length", 0x82, b"hey")])
def test_a_frame_can_be_spoilt(box, kind, first, payload):
    socket = echo(box, {"frame": {"n": 2, "kind": kind}})
    socket.frame()
    socket.send(b"hey")
    byte, data = socket.frame()
    assert byte == first and data[:len(payload)] == payload
    if kind == "fragmented":
        assert [socket.frame()[0] for _ in range(4)] == [0x89, 0x00, 0x00, 0x80]


@pytest.mark.parametrize("kind", ["oversized", "cut"])
def test_a_frame_can_promise_too_much(box, kind):
    socket = echo(box, {"frame": {"n": 2, "kind": kind}, "after_events": 2})
    socket.frame()
    socket.send(b"hey")
    assert socket.frame() is None, "the connection ends before the payload does"


@pytest.mark.parametrize("how, code", [("reset", 1006), ("fin", 1006), ("end", 1006)])
def test_a_connection_can_break_after_some_frames(box, how, code):
    socket = echo(box, {"after_events": 2, "how": how})
    socket.send(b"hey")
    assert socket.rest() == b"hey" and socket.code == code
    assert box.http("GET", "/process/pty/p").json["active"]


def test_a_connection_can_break_within_a_frame(box):
    socket = echo(box, {"after_bytes": 60, "how": "fin"})      # `connected` has 43 and a head of 2
    socket.send(b"x" * 100)
    assert socket.rest() == b"" and socket.code == 1006


def test_knobs_that_are_removed_strike_no_open_connection(box):
    socket = echo(box, {"after_bytes": 60})
    box.server.fake("DELETE", "knobs")
    socket.send(b"x" * 100)
    assert socket.until(b"x" * 100) == b"x" * 100


def test_a_connection_can_be_closed_with_any_code(box):
    socket = echo(box, {"after_events": 2, "then": "close", "close_code": 1008, "close_reason": "slow consumer"})
    socket.send(b"hey")
    assert socket.rest() == b"hey" and (socket.code, socket.reason) == (1008, "slow consumer")


def test_a_connection_can_fall_silent(box):
    socket = echo(box, {"after_events": 2, "then": "stall"})
    socket.send(b"hey")
    assert socket.until(b"hey") == b"hey"
    socket.send(b"more")
    socket.sock.settimeout(1)
    with pytest.raises(TimeoutError):
        socket.message()


def test_a_connection_can_break_while_it_receives(box):
    socket = echo(box, {"request_bytes": 10})
    socket.message()
    with pytest.raises(ConnectionError):
        for _ in range(1000):
            socket.send(b"x" * 10)
            if socket.frame() is None:
                raise ConnectionError


def test_pings_dribbles_and_joined_frames(box):
    socket = echo(box, {"ping_every": 1, "dribble_bytes": 1})
    assert socket.frame()[0] == 0x89
    assert socket.message()[0] == 1
    socket.send(b"hey")
    assert socket.frame()[0] == 0x89
    assert socket.until(b"hey") == b"hey"


def test_the_order_of_the_first_messages_can_change(box):
    box.server.knob("/connect$", {"pty": "data_first"})
    box.http("POST", "/process/pty", {"id": "p", "lazyStart": True})
    kinds = [box_message[0] for box_message in first_messages(box.socket("/process/pty/p/connect"))]
    assert kinds[0] == 2 and kinds[-1] == 1
    box.server.knob("/connect$", {"pty": "no_connected"})
    socket = box.socket("/process/pty/p/connect")
    socket.send(b"exit\n")
    assert b"exit" in socket.rest() and socket.code == 1000


def first_messages(socket):
    """All messages up to the first text one."""
    seen = [socket.message()]
    while seen[-1][0] != 1:
        seen.append(socket.message())
    return seen


# -- the control endpoint ---------------------------------------------------------------------------------------------


def test_requests_are_counted(server, box):
    server.fake("DELETE", "requests")
    box.execute("true")
    server.api("GET", f"/sandbox/{box.id}")
    box.socket("/process/pty/nope/connect").rest()
    report = server.fake("GET", "requests")
    assert report["counts"] == {"POST /toolbox/{id}/process/execute": 1, "GET /api/sandbox/{id}": 1,
                                "GET /toolbox/{id}/process/pty/nope/connect": 1}
    assert set(report["by_sandbox"]) == {box.id}
    upgrade = report["requests"][-1]
    assert upgrade["status"] == 101 and upgrade["bytes_out"] > 0
    assert json.loads(report["requests"][0]["body"]) == {"command": "true"}


def test_misspelt_settings_and_knobs_are_refused(server):
    for path, body in (("config", {"pty_tale": "kept"}), ("knobs", {"action": {"folow": "linger"}}),
                       ("knobs", {"action": {"follow": "lingers"}}), ("knobs", {"action": {"then": "clos"}}),
                       ("knobs", {"action": {"handshake": "no"}}), ("knobs", {"action": {"error": "no"}})):
        assert server.request("POST", "/_fake/" + path, body).status == 400, body


def test_expire_is_an_auto_stop(server, box):
    server.fake("POST", f"sandboxes/{box.id}/expire")
    server.wait(box.id, "stopped")
    assert box.state()["ended"] == "auto-stop"


def test_it_ends_with_its_parent(tmp_path):
    server = FakeServer(tmp_path / "root")
    box = server.create()
    box.execute("setsid sleep 1000 >/dev/null 2>&1 </dev/null &")
    server.process.stdin.close()
    assert server.process.wait(TIMEOUT) == 0
