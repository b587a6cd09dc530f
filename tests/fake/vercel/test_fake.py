# SPDX-License-Identifier: ISC
"""Faults and the control endpoint, as far as they are Vercel's; the rest is tested with the other fakes."""
import http.client
import json
import time

import pytest

from .client import PROJECT, lines_of, text_of
from .errors import ERRORS


def run_bare(box, script="echo hi"):
    """The answer to a waited command."""
    return box.call("POST", "/cmd", {"command": "sh", "args": ["-c", script], "wait": True, "logs": True})


def has_run(box, word):
    """Has a command with this word among its arguments been started?"""
    return any(word in " ".join(command["args"]) for command in box.call("GET", "/cmd").json["commands"])


def read_rest(connection, answer):
    """What comes of a body, and how it ends: "" or the name of the error."""
    seen = b""
    try:
        while data := answer.read1(1000):
            seen += data
    except (ConnectionError, http.client.IncompleteRead) as error:
        return seen, type(error).__name__
    finally:
        connection.close()
    return seen, ""


def stream(box, script):
    return box.open_stream("POST", "/cmd", {"command": "sh", "args": ["-c", script], "wait": True, "logs": True})


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_can_be_had_by_name_and_once(box, name):
    box.server.knob("/cmd$", {"error": name})
    answer, wanted = run_bare(box, "echo never"), ERRORS[name]
    assert answer.status == wanted["status"]
    if isinstance(wanted.get("body"), dict):
        assert answer.json == wanted["body"] and answer.headers["Content-Type"].startswith("application/json")
    elif "body" in wanted:
        assert answer.body.startswith(b"<!DOCTYPE") and answer.headers["Content-Type"].startswith("text/html")
    else:
        assert answer.body == b""
    assert answer.headers.get("Retry-After") == wanted.get("headers", {}).get("Retry-After")
    assert run_bare(box).status == 200 and not has_run(box, "never")


def test_an_error_can_be_had_always_and_from_some_request_on(box):
    box.server.knob("/cmd$", {"error": "unavailable"}, nth=2, count=0)
    assert [run_bare(box).status for _ in range(4)] == [200, 503, 503, 503]


def test_an_error_can_hide_what_was_done(box):
    box.server.knob("/cmd$", {"error": "html_504", "after": True})
    assert run_bare(box, "echo done").status == 504
    assert has_run(box, "echo done")


def test_a_connection_can_break_before_or_after_a_command_was_started(box):
    for when, ran in (("before", False), ("after", True)):
        box.server.knob("/cmd$", {"drop": when})
        with pytest.raises(ConnectionError):
            run_bare(box, f"echo {when}")
        assert has_run(box, when) is ran


def test_a_create_can_be_lost_on_its_way_back(server):
    server.knob("/sandboxes$", {"drop": "after"})
    with pytest.raises(ConnectionError):
        server.create(name="lost")
    assert server.named("GET", "lost").status == 200
    assert server.api("POST", "/v3/sandboxes", {"projectId": PROJECT, "name": "lost"}).status == 400


# -- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how, end", [("reset", "ConnectionResetError"), ("fin", "IncompleteRead"), ("end", "")])
def test_a_stream_can_be_cut_after_some_lines(box, how, end):
    box.server.knob("/cmd$", {"after_events": 2, "how": how})
    seen, ended = read_rest(*stream(box, "echo out; exec sleep 1000"))
    first, second = lines_of(seen)
    assert second == {"stream": "stdout", "data": "out\n"} and ended == end
    assert box.get(first["command"]["id"]).json["command"]["exitCode"] is None, "the command goes on"


@pytest.mark.parametrize("how, end", [("reset", "ConnectionResetError"), ("fin", "IncompleteRead"), ("end", "")])
def test_a_stream_can_be_cut_after_some_bytes(box, how, end):
    box.server.knob("/cmd$", {"after_bytes": 100, "how": how})
    seen, ended = read_rest(*stream(box, "exec sleep 1000"))
    assert len(seen) == 100 and seen.startswith(b'{"command"') and ended == end


@pytest.mark.parametrize("how, end", [("reset", "ConnectionResetError"), ("fin", "IncompleteRead"), ("end", "")])
def test_a_stream_can_be_cut_after_some_time(box, how, end):
    box.server.knob("/cmd$", {"after_ms": 1000, "how": how})
    begun = time.monotonic()
    seen, ended = read_rest(*stream(box, "exec sleep 1000"))
    assert len(lines_of(seen)) == 1 and ended == end and time.monotonic() - begun > 0.9
    number = lines_of(seen)[0]["command"]["id"]
    assert box.get(number).json["command"]["exitCode"] is None
    box.server.knob("/logs$", {"after_ms": 1000, "how": how})
    assert read_rest(*box.open_stream("GET", f"/cmd/{number}/logs")) == (b"", end)


def test_a_stream_that_was_cut_properly_leaves_a_connection_that_is_good_for_more(box):
    box.server.knob("/cmd$", {"after_ms": 1000, "how": "end"})
    connection, answer = stream(box, "exec sleep 1000")
    answer.read()
    connection.request("GET", "/health")
    assert connection.getresponse().read() == b"ok\n"
    connection.close()


def test_a_wait_can_be_cut_before_it_has_answered_anything(box):
    number = box.start("sleep", "1000")
    box.server.knob("/cmd/", {"after_ms": 100})
    with pytest.raises(ConnectionError):
        box.get(number, wait="true")
    box.kill(number)
    assert box.exit_code(number) == 143


def test_time_can_end_the_sandbox_instead_of_the_stream(box):
    box.server.knob("/cmd$", {"after_ms": 1000, "then": "go on", "expire_sandbox": True})
    seen, ended = read_rest(*stream(box, "exec sleep 1000"))
    assert lines_of(seen)[-1]["stream"] == "error" and ended == ""
    assert box.wait("stopped")


def test_a_stream_can_fall_silent(box):
    box.server.knob("/cmd$", {"after_events": 1, "then": "stall"})
    connection, answer = stream(box, "echo out")
    number = json.loads(answer.readline())["command"]["id"]
    assert box.exit_code(number) == 0
    connection.sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        answer.readline()
    connection.close()


def test_a_line_can_be_an_error_and_the_last(box):
    box.server.knob("/cmd$", {"frame": {"n": 3, "kind": "error"}})
    lines = lines_of(run_bare(box, "echo out; echo err >&2; exec sleep 1000").body)
    assert [line.get("stream", "command") for line in lines][0::2] == ["command", "error"]
    assert lines[2]["data"]["code"] == "sandbox_stream_closed"


def test_lines_can_be_broken_in_other_ways(box):
    def spoilt(kind, n=2):
        box.server.knob("/cmd$", {"frame": {"n": n, "kind": kind}})
        return run_bare(box).body
    assert b"\n\n\n{\"stream\"" in spoilt("blank")
    assert b"{\"stream\": stdout}\n" in spoilt("garbage")
    assert lines_of(spoilt("null_exit", 3))[-1]["command"]["exitCode"] is None
    box.server.knob("/cmd$", {"frame": {"n": 2, "kind": "cut"}, "how": "end"})
    seen, ended = read_rest(*stream(box, "echo hi"))
    assert seen.endswith(b'\n{"stream":"stdout') and ended == ""


def test_lines_can_come_slowly_and_in_pieces_that_split_characters(box):
    box.server.knob("/cmd$", {"dribble_bytes": 1, "dribble_ms": 1})
    connection, answer = stream(box, "printf 'é€😀'")
    pieces = []
    while data := answer.read1(1000):
        pieces.append(data)
    connection.close()
    assert text_of(lines_of(b"".join(pieces)), "stdout") == "é€😀"
    assert {len(piece) for piece in pieces} == {1}
    with pytest.raises(UnicodeDecodeError):
        [piece.decode() for piece in pieces]


def test_lines_can_come_together(box):
    box.server.knob("/cmd$", {"coalesce": 100})
    connection, answer = stream(box, "echo out")
    assert len(lines_of(answer.read1(10000))) == 3
    connection.close()


# -- files and terminals ----------------------------------------------------------------------------------------------


def test_a_write_can_be_cut_or_lost(box):
    box.server.knob("/fs/write$", {"request_bytes": 1000})
    with pytest.raises(ConnectionError):
        box.write({"vercel/cut": bytes(range(256)) * 1000, "vercel/x": b"x" * 5000})
    assert box.read("cut").status == 404
    box.server.knob("/fs/write$", {"drop": "after"})
    with pytest.raises(ConnectionError):
        box.write({"vercel/lost": b"1"})
    assert box.read("lost").body == b"1"


@pytest.mark.parametrize("how, end", [("reset", "ConnectionResetError"), ("fin", "IncompleteRead"), ("end", "")])
def test_a_read_can_end_too_early(box, how, end):
    box.write({"vercel/f": b"x" * 100000})
    box.server.knob("/fs/read$", {"after_bytes": 5000, "how": how})
    connection, answer = box.open_stream("POST", "/fs/read", {"path": "f"})
    seen, ended = read_rest(connection, answer)
    assert (len(seen), ended) == (5000, end)


def test_a_terminal_can_break(box):
    box.server.knob("/ws/interactive$", {"after_events": 1, "then": "close", "close_code": 1011})
    socket = box.terminal("sh", "-c", "echo out; exec sleep 1000")
    assert socket.rest().startswith(b"out") and socket.code == 1011
    box.server.knob("/ws/interactive$", {"after_ms": 1000})
    socket = box.terminal("sleep", "1000")
    assert socket.message() is None and socket.code == 1006
    box.server.knob("^/health$", {"error": "html_502"})
    assert [box.server.request("GET", "/health").status for _ in range(2)] == [502, 200]


def test_every_answer_can_be_late(box):
    box.server.fake("POST", "delay", {"ms": 200})
    begun = time.monotonic()
    run_bare(box)
    box.call("GET")
    assert time.monotonic() - begun >= 0.4


def test_a_misspelt_knob_or_setting_is_refused(server):
    for path, body in (("knobs", {"action": {"error": "nonsense"}}), ("config", {"nonsense": 1}),
                       ("knobs", {"action": {"frame": {"kind": "nonsense"}}})):
        assert server.request("POST", "/_fake/" + path, body).status == 400


def test_a_reset_forgets_everything(server, box):
    server.config(stdin="pipe")
    server.knob("/cmd$", {"error": "empty"})
    box.call("POST", "/stop")
    server.fake("POST", "reset")
    assert server.fake("GET", "sandboxes") == server.fake("GET", "knobs") == []
    assert server.fake("GET", "config")["stdin"] == "null"
    assert server.named("GET", box.name).status == 404
    assert server.fake("GET", "counts")["total"] == 1
