# SPDX-License-Identifier: ISC
"""The fake as a test's tool: every knob, the request log, the control endpoint, and that it leaves nothing behind."""
import base64
import http.client
import json
import os
import signal
import struct
import time

import pytest

from ..common.client import TIMEOUT
from .client import KEY, FakeServer

BROKEN = (ConnectionError, http.client.IncompleteRead, http.client.RemoteDisconnected)
START = "Process/Start"


def create(server):
    return server.api("POST", "/v2/sandboxes", {"templateID": "base"})


# -- canned answers ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("action, kind, body", [
    ({"status": 503, "body": {"code": 503, "message": "no"}}, "application/json", b'{"code": 503, "message": "no"}'),
    ({"status": 502, "body": "<html>no</html>"}, "text/html; charset=utf-8", b"<html>no</html>"),
    ({"status": 500}, "text/plain", b""),
    ({"status": 200, "body": "{", "headers": {"Content-Type": "application/json"}}, "application/json", b"{")])
def test_canned_answers(server, action, kind, body):
    rule = server.knob("^/v2/sandboxes$", action)
    answer = create(server)
    assert (answer.status, answer.headers["Content-Type"], answer.body) == (action["status"], kind, body)
    assert server.fake("GET", "sandboxes") == []
    assert server.fake("GET", "requests")["requests"][-1]["knob"] == rule["id"]


@pytest.mark.parametrize("name", ["html", "empty", "sandbox_gone", "transitioning", "port_closed", "internal",
                                  "too_many_connections", "route_failed", "disk_full", "unauthorized"])
def test_named_answers(server, box, name):
    server.knob("^/health$", {"error": name})
    assert box.http("GET", "/health").status >= 400
    assert box.http("GET", "/health").status == 204


def test_headers_of_a_canned_answer(server):
    server.knob("", {"status": 429, "headers": {"Retry-After": "7"}})
    assert create(server).headers["Retry-After"] == "7"


def test_which_requests_are_struck(server, box):
    other = server.create()
    server.knob("^/health$", {"status": 500}, nth=2, count=2, match={"sandbox": box.id, "method": "GET"})
    assert other.http("GET", "/health").status == 204
    assert [box.http("GET", "/health").status for _ in range(4)] == [204, 500, 500, 204]
    assert [(rule["seen"], rule["struck"]) for rule in server.fake("GET", "knobs")] == [(4, 2)]
    server.knob("^/health$", {"status": 500}, count=0)
    assert [box.http("GET", "/health").status for _ in range(3)] == [500] * 3
    server.fake("DELETE", "knobs")
    assert box.http("GET", "/health").status == 204
    server.knob("^/files$", {"status": 500}, match={"query": "path=a"})
    assert [box.write(name, b"").status for name in ("b", "a", "a")] == [200, 500, 200]


def test_after_processes_the_request_first(server):
    server.knob("^/v2/sandboxes$", {"status": 504, "after": True})
    assert create(server).status == 504
    assert [box["state"] for box in server.fake("GET", "sandboxes")] == ["running"]


@pytest.mark.parametrize("spec", [
    {}, {"action": {}}, {"action": {"sttaus": 500}}, {"action": {"status": 500}, "match": {"pth": ""}},
    {"action": {"drop": "maybe"}}, {"action": {"then": "explode"}}, {"action": {"frame": {"kind": "?"}}},
    {"action": {"error": "none-such"}}, {"action": {"status": 500}, "nht": 1}])
def test_a_knob_that_makes_no_sense_is_refused(server, spec):
    assert server.request("POST", "/_fake/knobs", spec).status == 400


# -- dropped connections ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["reset", "fin"])
@pytest.mark.parametrize("when, states", [("before", []), ("after", ["running"])])
def test_drops_leave_the_outcome_unknown(server, how, when, states):
    server.knob("^/v2/sandboxes$", {"drop": when, "how": how})
    error = ConnectionResetError if how == "reset" else http.client.RemoteDisconnected
    with pytest.raises(error):
        create(server)
    assert [box["state"] for box in server.fake("GET", "sandboxes")] == states


def test_a_dropped_start_still_starts(server, box):
    server.knob(START, {"drop": "after"})
    with pytest.raises(BROKEN):
        box.start("sleep 1000", tag="mine")
    assert [p["tag"] for p in box.rpc("process.Process/List", {}).json["processes"]] == ["mine"]


def test_a_dropped_input_was_given(server, box):
    stream = box.start("cat", stdin=True)
    pid = stream.until("start")["pid"]
    server.knob("SendInput", {"drop": "after"})
    with pytest.raises(BROKEN):
        box.send_input(pid, b"once")
    assert base64.b64decode(stream.until("data")["stdout"]) == b"once"


# -- the body of an answer --------------------------------------------------------------------------------------------

def get_part(box, size):
    """Read the file f as far as it comes: (bytes, error or None)."""
    connection = box.server.connect()
    connection.request("GET", "/files?path=f", headers=box.headers())
    answer, data = connection.getresponse(), b""
    assert int(answer.headers["Content-Length"]) == size
    try:
        while part := answer.read1(1 << 16):
            data += part
    except BROKEN as error:
        return data, error
    return data, None


def test_a_download_is_cut(server, box):
    box.write("f", b"x" * 100000)
    for how in ("reset", "fin"):
        server.knob("^/files$", {"after_bytes": 50000, "how": how})
        data, error = get_part(box, 100000)
        assert len(data) == 50000 and isinstance(error, ConnectionResetError) is (how == "reset")
    assert get_part(box, 100000)[0] == b"x" * 100000


def test_an_answer_stalls(server, box):
    box.write("f", b"x" * 100)
    server.knob("^/files$", {"after_bytes": 50, "then": "stall"})
    connection = server.connect()
    connection.request("GET", "/files?path=f", headers=box.headers())
    answer = connection.getresponse()
    assert answer.read(50) == b"x" * 50
    connection.sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        answer.read(1)


def test_a_stream_is_cut_after_some_events(server, box):
    for how, error in (("reset", ConnectionResetError), ("fin", http.client.IncompleteRead)):
        server.knob(START, {"after_events": 2, "how": how})
        stream = box.start("echo one; sleep 1000")
        assert [stream.event()[0] for _ in range(2)] == ["start", "data"]
        with pytest.raises(error):
            stream.frame()


def test_a_stream_ends_without_its_end(server, box):
    server.knob(START, {"after_events": 1, "how": "end"})
    stream = box.start("echo one")
    stream.until("start")
    assert stream.frame() is None, "an orderly end of the HTTP body"
    server.knob(START, {"end_stream": "none"})
    stream = box.start("true")
    stream.until("end")
    assert stream.frame() is None


def test_ends_of_a_stream(server, box):
    server.knob(START, {"no_end_event": True})
    assert box.start("true").rest()[1:] == (None, {})
    error = {"error": {"code": "unavailable", "message": "gone"}}
    server.knob(START, {"end_stream": error})
    assert box.start("true").rest()[2] == error


@pytest.mark.parametrize("kind", ["compressed", "oversized", "garbage", "cut"])
def test_broken_frames(server, box, kind):
    server.knob(START, {"frame": {"n": 2, "kind": kind}})
    stream = box.start("echo one; sleep 1000")
    stream.until("start")
    flags, size = struct.unpack(">BI", stream.answer.read(5))
    assert flags == (1 if kind == "compressed" else 0)
    if kind == "oversized":
        assert size == 0x7fffffff
    elif kind == "garbage":
        assert stream.answer.read(size) == b"\xff" * size
    elif kind == "cut":
        with pytest.raises(BROKEN):
            stream.answer.read(size)
    else:
        assert json.loads(stream.answer.read(size))["event"]["data"]


def test_dribble_and_coalesce(server, box):
    server.knob(START, {"dribble_bytes": 1, "dribble_ms": 0})
    stream = box.start("true")
    assert len(stream.answer.read1(100)) == 1
    assert b'"end"' in stream.answer.read()
    server.knob(START, {"coalesce": 2})
    first = box.start("echo one; sleep 1000").answer.read1(10000)
    size = struct.unpack(">BI", first[:5])[1]
    assert len(first) > 5 + size + 5, "start and data in one write"


def test_delays(server, box):
    for setting in ({"delay_ms": 200}, {"answer_delay_ms": 200}):
        server.knob("^/health$", setting)
        began = time.monotonic()
        assert box.http("GET", "/health").status == 204
        assert time.monotonic() - began >= 0.2
    server.fake("POST", "delay", {"ms": 100})
    began = time.monotonic()
    box.http("GET", "/health")
    box.run("true")
    assert 0.2 <= time.monotonic() - began < 1
    server.fake("POST", "delay", {"ms": 0})


# -- the death of a sandbox -------------------------------------------------------------------------------------------

def test_killed_before_during_and_while_uploading(server):
    box = server.create()
    server.knob(START, {"kill_sandbox": True})
    answer = box.start("true").answer
    assert answer.status == 502

    box = server.create()
    server.knob(START, {"kill_sandbox": True, "after_events": 2})
    stream = box.start("echo one; sleep 1000")
    with pytest.raises(BROKEN):
        stream.rest()

    box = server.create()
    server.knob("^/files$", {"kill_sandbox": True, "request_bytes": 1000})
    with pytest.raises((*BROKEN, BrokenPipeError)):
        box.write("f", b"x" * (8 << 20))
    assert {shown["state"] for shown in server.fake("GET", "sandboxes")} == {"killed"}


def test_an_upload_is_cut_and_leaves_a_part(server, box):
    server.knob("^/files$", {"request_bytes": 1 << 20})
    with pytest.raises((*BROKEN, BrokenPipeError)):
        box.write("f", b"x" * (8 << 20))
    assert 0 < len(box.read("f").body) < 8 << 20


def test_the_lifetime_ends_while_a_stream_goes_on(server):
    box = server.create(autoPause=True)
    server.knob(START, {"expire_sandbox": True, "after_events": 1, "then": "go on"})
    with pytest.raises(BROKEN):
        box.start("sleep 1000").rest()
    while box.state()["moving"]:
        pass
    assert box.state()["state"] == "paused"


def test_kill_and_expire_by_hand(server, box):
    stream = box.start("sleep 1000")
    stream.until("start")
    server.fake("POST", f"sandboxes/{box.id}/expire")
    with pytest.raises(BROKEN):
        stream.frame()
    assert box.http("GET", "/health").status == 502
    other = server.create()
    server.fake("POST", f"sandboxes/{other.id}/kill")
    assert other.state()["ended"] == "killed by the test"
    assert server.request("POST", "/_fake/sandboxes/inone/kill").status == 404


def test_a_stream_lost_in_a_pause_stalls_the_output_of_others(server, box):
    stream = box.start("while read l; do head -c 20000000 /dev/zero; touch done; done", stdin=True)
    pid = stream.until("start")["pid"]
    server.fake("POST", "config", {"stall_on_pause": True})
    server.api("POST", f"/sandboxes/{box.id}/pause", {})
    server.api("POST", f"/v2/sandboxes/{box.id}/connect", {})
    connected = box.stream("process.Process/Connect", {"process": {"pid": pid}})
    connected.until("start")
    box.send_input(pid, b"go\n")
    connected.connection.sock.settimeout(0.5)
    with pytest.raises(TimeoutError):
        connected.rest()
    assert box.read("done").status == 404
    assert box.rpc("process.Process/List", {}).json["processes"], "unary calls go on"


# -- the log and the rest of the control endpoint ---------------------------------------------------------------------

def test_requests_are_counted_and_kept(server, box):
    box.write("f", b"hello")
    box.rpc("filesystem.Filesystem/Stat", {"path": "f"})
    server.api("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 60})
    report = server.fake("GET", f"requests?sandbox={box.id}")
    assert report["counts"] == {"POST /files": 1, "POST /filesystem.Filesystem/Stat": 1,
                                "POST /sandboxes/{id}/timeout": 1}
    assert report["by_sandbox"][box.id] == report["counts"] and report["total"] == 3
    assert server.fake("GET", f"counts?sandbox={box.id}") == {k: v for k, v in report.items() if k != "requests"}
    first, second, third = report["requests"]
    assert (first["bytes_in"], first["body"], first["query"], first["status"]) == (5, "hello", "path=f", 200)
    assert json.loads(second["body"]) == {"path": "f"} and second["bytes_out"] > 0
    assert third["headers"]["x-api-key"] == KEY["X-API-Key"] and third["ended"] == "ok"
    assert server.fake("GET", "requests?method=GET")["total"] == 0
    assert server.fake("GET", "requests?path=Stat$")["total"] == 1
    server.fake("DELETE", "requests")
    assert server.fake("GET", "requests")["total"] == 0


def test_sandboxes_tell_their_story(server):
    box = server.create(metadata={"a": "b"}, timeout=77)
    shown = box.state()
    assert (shown["state"], shown["metadata"], shown["timeout"]) == ("running", {"a": "b"}, 77)
    assert 0 < shown["ttl"] <= 77 and os.path.isdir(shown["root"])
    pid = box.start("sleep 1000").until("start")["pid"]
    assert box.state()["processes"] == [pid]
    server.api("DELETE", f"/sandboxes/{box.id}")
    assert (box.state()["state"], box.state()["ended"]) == ("killed", "killed")


def test_reset(server, box):
    server.knob("", {"status": 500}, count=0)
    server.fake("POST", "config", {"max_concurrent": 0})
    server.fake("POST", "reset")
    assert server.fake("GET", "requests")["total"] == 0 and server.fake("GET", "sandboxes") == []
    assert create(server).status == 201
    assert server.request("POST", "/_fake/config", {"max_concurent": 1}).status == 400
    assert server.request("GET", "/_fake/nothing").status == 404


# -- machines ---------------------------------------------------------------------------------------------------------

def test_a_sandbox_is_a_machine_of_its_own(server, box):
    other = server.create()
    box.write("/tmp/mine", b"x")
    assert other.read("/tmp/mine").status == 404
    assert box.run("id -un; pwd; ls -d /home/*")[0] == b"user\n/home/user\n/home/user\n"
    assert box.run("ps -e -o comm= | sort | uniq -c | grep -c bwrap")[0] == b"0\n"
    assert box.run("touch /usr/x")[2]["exitCode"] == 1
    assert box.run("kill -9 1; kill -9 -1; exit 3")[2]["exitCode"] == 3
    assert box.run("echo still here")[0] == b"still here\n", "init cannot be killed from inside"


def test_a_killed_sandbox_takes_its_processes_along(server, box):
    box.start("sleep 31415 & setsid sleep 31415 & echo up; wait").until("data")
    assert processes("31415")
    server.api("DELETE", f"/sandboxes/{box.id}")
    wait_for_no_process("31415")


def processes(word):
    """Pids of processes that have the word as an argument."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                arguments = f.read().split(b"\0")
        except OSError:
            continue
        if word.encode() in arguments:
            found.append(int(pid))
    return found


def wait_for_no_process(word):
    deadline = time.monotonic() + TIMEOUT
    while processes(word):
        assert time.monotonic() < deadline, f"left behind: {processes(word)}"


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL", "stdin"])
def test_nothing_outlives_the_fake(tmp_path, end):
    root = str(tmp_path / "root")
    server = FakeServer(root)
    mark = str(27182 + ["SIGTERM", "SIGKILL", "stdin"].index(end))
    server.create().start(f"setsid sleep {mark} & echo up; wait").until("data")
    if end == "stdin":
        server.process.stdin.close()
    else:
        server.process.send_signal(getattr(signal, end))
    assert server.process.wait(TIMEOUT) == (0 if end != "SIGKILL" else -signal.SIGKILL)
    wait_for_no_process(mark)
    if end != "SIGKILL":
        assert os.listdir(root) == []
