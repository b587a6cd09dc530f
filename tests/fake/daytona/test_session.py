# SPDX-License-Identifier: ISC
"""Sessions: what their shell wrapper does to a command, log formats, follow."""
import json

import pytest

from .client import KEY

SPLIT = {"X-Daytona-Split-Output": "true"}
SDK = {"X-Daytona-SDK-Version": "0.216.0"}


@pytest.fixture
def session(box):
    return box.session()


def error(answer):
    return answer.status, answer.json["message"]


def test_create_list_delete(box):
    session = box.session("a-1")
    again = box.http("POST", "/process/session", {"sessionId": "a-1"})
    assert error(again) == (409, "conflict: session already exists")
    assert error(box.http("POST", "/process/session", {"sessionId": "entrypoint"}))[0] == 400
    assert box.http("POST", "/process/session", {}).json["code"] == "INVALID_REQUEST_BODY"
    number = session.run("exit_code() { return 3; }; exit_code").json["cmdId"]
    shown = {"sessionId": "a-1", "commands": [{"id": number, "exitCode": 3,
                                               "command": "exit_code() { return 3; }; exit_code"}]}
    assert box.http("GET", "/process/session").json == [shown]
    assert box.http("GET", session.path).json == shown
    answer = box.http("DELETE", session.path)
    assert (answer.status, answer.body) == (204, b"")
    assert error(box.http("DELETE", session.path)) == (404, "not found: session not found")
    assert box.execute("ls ~/.daytona/sessions") == (0, "")


def test_commands_share_one_shell(session):
    session.run("cd /tmp; x=5; f() { echo f $x; }")
    assert session.run("pwd; f").json["output"] == "/tmp\nf 5\n"


def test_a_command_loses_nuls_and_gains_a_newline(session):
    number = session.run(r"printf 'a\0b\n\n\377\\n'; printf '  tail '").json["cmdId"]
    assert session.log(number, **SPLIT).body == b"\1\1\1ab\n\1\1\1\n\1\1\1\xff\\n  tail \n"


def test_a_partial_line_is_invisible_to_its_end(session):
    number = session.start("printf prompt; read x; echo; read y", suppressInputEcho=True)
    session.feed(number, "1")
    while session.log(number).body != b"prompt\n":
        pass
    session.feed(number, "2")
    assert session.exit_code(number) == 0


def test_answers_by_headers(session):
    command = r"printf 'o\377\n'; sleep 0.1; echo e >&2"
    raw = b"\1\1\1o\xff\n\2\2\2e\n"
    text = "\1\1\1o\ufffd\n\2\2\2e\n"
    split = {"output": text, "stdout": "o\ufffd\n", "stderr": "e\n"}
    merged = {"output": "o\ufffd\ne\n", "stdout": None, "stderr": None}
    prefixed = {"output": text, "stdout": None, "stderr": None}
    for headers, answer, log in (
            ({}, merged, b"o\xff\ne\n"), (SPLIT, prefixed, raw), (SDK, split, split),
            ({"X-Daytona-SDK-Version": "0.167.0"}, split, split),
            ({"X-Daytona-SDK-Version": "0.0.0-dev"}, split, split),
            ({"X-Daytona-SDK-Version": "0.166.9"}, prefixed, raw), ({"X-Daytona-SDK-Version": "junk"}, prefixed, raw),
            ({"X-Daytona-SDK-Version": "0.26.0"}, merged, b"o\xff\ne\n")):
        shown = session.run(command, **headers).json
        number = shown.pop("cmdId")
        assert shown == {**answer, "exitCode": 0}, headers
        got = session.log(number, **headers)
        assert (got.json if isinstance(log, dict) else got.body) == log, headers
        assert got.headers["Content-Type"].startswith("application/json" if isinstance(log, dict) else "text/plain")


def test_a_sync_command_has_no_input_and_an_async_one_no_end_of_it(session):
    assert session.run("cat; echo end").json["output"] == "end\n"
    number = session.start("cat")
    session.feed(number, "one")
    while session.log(number).body.count(b"one") < 2:      # cat's, and the echo of the input
        pass
    assert "exitCode" not in session.box.http("GET", f"{session.path}/command/{number}").json


def test_newer_daemons_end_the_input_after_each_write(session):
    session.box.server.fake("POST", "config", {"input_eof": True})
    number = session.start("cat; echo end", suppressInputEcho=True)
    session.feed(number, "one")
    assert session.exit_code(number) == 0
    assert session.log(number).body == b"one\nend\n"


def test_input_errors(session):
    session.box.server.fake("POST", "config", {"exec_lag_ms": 500})
    number = session.start("read x")
    early = session.input(number, "x")
    assert early.status == 500 and "failed to open input pipe: open " in early.json["message"]
    queued = session.start("echo queued")
    assert session.input(queued, "x").status == 500
    session.feed(number, "x")
    assert session.exit_code(number) == 0
    assert error(session.input(number, "x")) == (410, "gone: command has already completed with exit code 0")
    assert error(session.input("nope", "x")) == (404, "not found: command not found")
    assert session.input(number, "").status == 400


def test_commands_run_one_after_the_other(session):
    first = session.start("read x; echo first")
    second = session.start("echo second")
    assert session.log(second).body == b""
    session.feed(first, "go")
    assert session.exit_code(second) == 0


@pytest.mark.parametrize("command", ["exit 3", "exec true", "set -e; false", "kill -9 $$"])
def test_what_ends_the_shell_ends_the_session(session, command):
    number = session.start("touch begun; " + command)
    while session.box.execute("[ -e begun ] && pgrep -c -x bash")[1] != "2\n":     # execute's and the input's holder
        pass
    assert "exitCode" not in session.box.http("GET", f"{session.path}/command/{number}").json
    assert error(session.run("echo x")) == (
        500, "failed to execute command: bad request: failed to write command: write |1: broken pipe")
    assert session.box.http("DELETE", session.path).status == 204


def test_exec_errors(session):
    for body in ({"command": ""}, {}, {"command": 5}):
        answer = session.box.http("POST", session.path + "/exec", body)
        assert (answer.status, answer.body) == (400, b"")
    missing = session.box.http("POST", "/process/session/nope/exec", {"command": "x"})
    assert missing.json == {"statusCode": 500, "message": "failed to execute command: not found: session not found",
                            "timestamp": "0001-01-01T00:00:00Z", "path": ""}


def test_delete_kills_all_but_what_left_the_group_and_the_tree(session):
    session.run("setsid -f sleep 3001 >/dev/null 2>&1 </dev/null; sleep 3002 >/dev/null 2>&1 &")
    session.start("sleep 3003")
    while session.box.execute("pgrep -c sleep; true")[1] != "4\n":      # and the holder of the input
        pass
    assert session.box.http("DELETE", session.path).status == 204
    assert session.box.execute("pgrep -a sleep")[1].endswith("sleep 3001\n")
    assert session.box.execute("pgrep -c sleep") == (0, "1\n")


def test_a_waiting_sync_command_ends_with_its_session(session):
    """One that minds TERM may still be told of its end; this one has to be killed."""
    session.box.server.fake("POST", "config", {"terminate_grace_s": 0.3})
    connection = session.box.server.connect()
    connection.request("POST", session.box.prefix + session.path + "/exec",
                       json.dumps({"command": "trap '' TERM; touch begun; sleep 1000"}), KEY)
    while session.box.read("begun").status != 200:
        pass
    session.box.http("DELETE", session.path)
    answer = connection.getresponse()
    assert answer.status == 500 and b"session cancelled" in answer.read()


# -- follow -----------------------------------------------------------------------------------------------------------


def test_follow_sends_the_file_in_frames_of_1_kib(session):
    number = session.run("seq 1000; echo e >&2").json["cmdId"]
    log = session.log(number, **SPLIT).body
    socket, frames = session.follow(number, **SPLIT), []
    while message := socket.message():
        frames.append(message[1])
    assert b"".join(frames) == log and {len(frame) for frame in frames[:-1]} == {1024}
    assert (socket.code, socket.reason) == (1000, "")


def test_follow_ends_with_1000_whatever_the_exit_code(session):
    number = session.start("echo one; read x; echo two; (exit 3)", suppressInputEcho=True)
    socket = session.follow(number)
    assert socket.until(b"one\n") == b"one\n"
    session.feed(number, "go")
    assert socket.rest() == b"two\n" and socket.code == 1000
    assert session.exit_code(number) == 3


def test_follow_ends_when_the_session_is_deleted(session):
    socket = session.follow(session.start("echo one; sleep 1000"))
    socket.until(b"one\n")
    session.box.http("DELETE", session.path)
    socket.rest()
    assert socket.code == 1000


def test_follow_over_plain_http_is_merged(session):
    number = session.run("echo out; sleep 0.1; echo err >&2").json["cmdId"]
    answer = session.box.http("GET", f"{session.path}/command/{number}/logs?follow=true", **SPLIT)
    assert (answer.body, answer.headers["Content-Type"]) == (b"out\nerr\n", "application/octet-stream")
    missing = session.box.http("GET", f"{session.path}/command/nope/logs?follow=true")
    assert missing.status == 400 and "bad handshake" in missing.json["message"]


def test_merging_may_miss_a_prefix_across_frames(session):
    """The daemon's own fault: a prefix that begins with the last byte of a frame comes through."""
    line = "x" * (1024 - 3 - 2)
    number = session.run(f"echo {line}; echo {line}").json["cmdId"]
    assert session.follow(number).rest() == (line + "\n\1\1\1" + line + "\n").encode()


# -- follow's faults --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [1000, 1006, 1011])
def test_follow_may_end_early(session, code):
    number = session.run("seq 2000").json["cmdId"]
    session.box.server.knob("/logs$", {"after_events": 2, "then": "close", "close_code": code})
    socket = session.follow(number, **SPLIT)
    assert len(socket.rest()) == 2048 and socket.code == code
    assert len(session.log(number, **SPLIT).body) > 4096, "while the log itself is whole"


def test_follow_may_replay(session):
    number = session.run("seq 1000").json["cmdId"]
    log = session.log(number, **SPLIT).body
    session.box.server.knob("/logs$", {"follow": "replay"})
    assert session.follow(number, **SPLIT).rest() == log[:1024] + log


def test_follow_may_linger(session):
    number = session.run("echo x").json["cmdId"]
    session.box.server.knob("/logs$", {"follow": "linger"})
    socket = session.follow(number)
    assert socket.until(b"x\n") == b"x\n"
    socket.sock.settimeout(2)
    with pytest.raises(TimeoutError):
        socket.message()
    assert session.exit_code(number) == 0
