# SPDX-License-Identifier: ISC
"""Data-plane routing, envd's authentication and process.Process: checklist items 2 to 5."""
import base64
import gzip
import hashlib
import json

import pytest

from .client import envelope

START = "process.Process/Start"


def b64(data):
    return base64.b64encode(data).decode()


# -- routing and authentication ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("headers, status, text", [
    ({"E2b-Sandbox-Id": "ix"}, 400, "missing header\n"),
    ({"E2b-Sandbox-Port": "49983"}, 400, "missing header\n"),
    ({}, 400, "Invalid host\n"),
    ({"E2b-Sandbox-Id": "I-X", "E2b-Sandbox-Port": "49983"}, 400, "Invalid sandbox ID\n"),
    ({"E2b-Sandbox-Id": "ix", "E2b-Sandbox-Port": "no"}, 500, "Unexpected error when routing request: ")])
def test_bad_routing(server, headers, status, text):
    answer = server.request("GET", "/health", headers=headers)
    assert answer.status == status and answer.body.decode().startswith(text)


def test_routing_by_host(server, box):
    for host in (f"49983-{box.id}.e2b.test", f"49983-{box.id}.e2b.test:80"):
        assert server.request("GET", "/health", headers={"Host": host}).status == 204
    shared = {"Host": "sandbox.e2b.test", "E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "49983"}
    assert server.request("GET", "/health", headers=shared).status == 204


def test_gone_closed_and_hidden(server, box):
    gone = server.request("GET", "/health", headers={"E2b-Sandbox-Id": "inone", "E2b-Sandbox-Port": "49983"})
    assert gone.status == 502
    assert gone.json == {"sandboxId": "inone", "message": "The sandbox was not found", "code": 502}
    closed = box.http("GET", "/", E2b_Sandbox_Port="8080")
    assert closed.json == {"sandboxId": box.id, "message": "The sandbox is running but port is not open", "port": 8080,
                           "code": 502}
    server.fake("POST", "config", {"envd_down": True})
    assert box.http("GET", "/health").json["port"] == 49983
    hidden = box.http("POST", "/init", {})
    assert (hidden.status, hidden.json["path"], hidden.json["code"]) == (404, "/init", 404)


def test_user_agent_trap(server):
    routing = {"E2b-Sandbox-Id": "inone", "E2b-Sandbox-Port": "49983", "User-Agent": "my-operator/1"}
    assert server.request("GET", "/health", headers=routing).body.startswith(b"<!DOCTYPE html>")
    assert server.request("GET", "/health", headers={**routing, "Accept": "application/json"}).json["code"] == 502


def test_other_ports_are_forwarded(box):
    serve = ("import http.server as h, sys\nclass H(h.BaseHTTPRequestHandler):\n"
             "  def do_GET(self):\n    self.send_response(200); self.end_headers(); self.wfile.write(b'inside')\n"
             "  log_message = lambda *a: None\n"
             "s = h.HTTPServer(('127.0.0.1', 8080), H); print('up', flush=True); s.serve_forever()")
    box.stream(START, {"process": {"cmd": "/usr/bin/python3", "args": ["-c", serve]}, "stdin": False}).until("data")
    assert box.http("GET", "/x", E2b_Sandbox_Port="8080").body == b"inside"


def test_wrong_token(box):
    for path in ("/" + START, "/process.Process/List", "/metrics", "/envs"):
        answer = box.http("POST", path, {}, X_Access_Token="wrong")
        assert (answer.status, answer.json["code"]) == (401, 401)
        assert answer.json["message"].startswith("unauthorized access, please provide a valid access token")
    assert box.http("GET", "/health", X_Access_Token="wrong").status == 204


def test_unknown_user(box):
    basic = "Basic " + b64(b"nobody-such:")
    unary = box.rpc("filesystem.Filesystem/Stat", {"path": "/"}, Authorization=basic)
    assert unary.status == 401
    assert unary.json == {"code": "unauthenticated", "message": "invalid username: 'nobody-such'"}
    stream = box.start("true", headers={"Authorization": basic})
    assert stream.answer.status == 200
    assert stream.event() == ("eos", {"error": unary.json})


def test_protocol_errors(box):
    assert box.http("GET", "/" + START).status == 405
    assert box.http("POST", "/" + START, {}, Content_Type="application/json").headers["Accept-Post"]
    assert box.http("POST", "/process.Process/List", {}, Content_Type="text/plain").status == 415
    assert box.http("POST", "/process.Process/None", {}, Content_Type="application/json").status == 404
    empty = box.rpc("process.Process/List", b"")
    assert (empty.status, empty.json["code"]) == (400, "invalid_argument")
    one = envelope({"process": {"cmd": "true"}})
    for body, code in ((b"", "unimplemented"), (one + one, "unimplemented"), (one[:-1], "invalid_argument"),
                       (envelope(b"{"), "invalid_argument")):
        assert box.stream(START, body).event()[1]["error"]["code"] == code


# -- output and end ---------------------------------------------------------------------------------------------------

def test_events_and_defaults(box):
    stream = box.start("echo out; echo err >&2")
    assert stream.answer.headers["Content-Type"] == "application/connect+json"
    kind, value = stream.event()
    assert kind == "start" and value["pid"] > 0
    output, end, trailer = stream.rest()
    assert (output["stdout"], output["stderr"], trailer) == (b"out\n", b"err\n", {})
    assert end == {"exited": True, "status": "exit status 0"}, "no exitCode and no error for 0"


def test_ends(box):
    assert box.run("exit 3")[2] == {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}
    killed = box.run("kill -9 $$")[2]
    assert killed == {"exitCode": -1, "status": "signal: killed", "error": "signal: killed"}
    assert box.run("kill -HUP $$")[2]["error"] == "signal: hangup"
    missing = box.stream(START, {"process": {"cmd": "no-such-program"}, "stdin": False}).rest()
    assert missing[1]["exitCode"] == 127 and b"No such file" in missing[0]["stderr"]


def test_chunks_are_at_most_32_kib_and_whitespace_varies(box):
    stream, sizes, forms = box.start("head -c 3000000 /dev/zero"), [], set()
    while True:
        flags, payload = stream.frame()
        if flags & 2:
            break
        forms.add(payload[:12])
        data = json.loads(payload)["event"].get("data")
        if data:
            sizes.append(len(base64.b64decode(data["stdout"])))
    assert sum(sizes) == 3000000 and max(sizes) == 32768
    assert len(forms) > 1


def test_large_binary_output(box):
    script = "head -c 67108864 /dev/zero | tr '\\0' '\\377'"
    assert box.run(script)[0] == b"\xff" * 67108864


def test_the_end_waits_for_inherited_pipes(box):
    stream = box.start("mkfifo fifo; (read x < fifo; echo late) & echo early")
    stream.until("data")
    box.run("echo go > fifo")
    output, end, _ = stream.rest()
    assert output["stdout"] == b"late\n" and end["exited"]


def test_start_errors(box):
    def error(message, **headers):
        return box.stream(START, message, **headers).event()[1]["error"]
    assert error({"process": {"cmd": "true", "cwd": "/nowhere"}}) == {
        "code": "invalid_argument", "message": "cwd '/nowhere' does not exist"}
    assert error({"process": {"cmd": "true", "cwd": "/etc/passwd"}})["code"] == "invalid_argument"
    assert error({"process": {"cmd": "true"}}, Connect_Timeout_Ms="soon")["code"] == "invalid_argument"
    assert error({"process": {"cmd": "true"}}, Connect_Timeout_Ms="12345678901")["code"] == "invalid_argument"


def test_a_timeout_of_0_ends_the_stream_but_not_the_process(box):
    headers = {"Connect_Timeout_Ms": "0"}
    trailer = box.start("sleep 1000", headers=headers, tag="goes on").rest()[2]
    assert trailer["error"]["code"] == "deadline_exceeded"
    assert box.rpc("process.Process/List", {}).json["processes"][0]["tag"] == "goes on"
    assert box.rpc("process.Process/List", {}, **headers).status == 504


def test_environment(server):
    box = server.create(envVars={"A": "1", "B": "1"})
    message = {"process": {"cmd": "env", "envs": {"B": "2"}}, "stdin": False}
    output = box.stream(START, message).rest()[0]["stdout"].decode()
    env = dict(line.split("=", 1) for line in output.splitlines())
    assert (env["A"], env["B"], env["HOME"], env["USER"]) == ("1", "2", "/home/user", "user")
    assert env["E2B_SANDBOX_ID"] == box.id
    assert not {"TERM", "LANG", "SHELL"} & set(env)


def test_a_process_inherits_nothing_but_its_streams(box):
    assert box.run("for fd in $(seq 0 63); do [ -e /proc/$$/fd/$fd ] && echo $fd; done")[0] == b"0\n1\n2\n"


def test_children_share_envds_group_and_the_pid_is_the_programs(box):
    stream = box.start("echo $$ $(ps -o pgid= -p $$)")
    pid = stream.until("start")["pid"]
    shown, group = stream.rest()[0]["stdout"].split()
    assert int(shown) == pid and int(group) != pid


def test_keepalive(box):
    stream = box.start("read x", headers={"Keepalive_Ping_Interval": "1"}, stdin=True)
    pid = stream.until("start")["pid"]
    assert stream.event() == ("keepalive", {})
    box.close_stdin(pid)
    stream.rest()


def test_dropping_the_stream_does_not_kill_and_connect_replays_nothing(box):
    stream = box.start("while read l; do echo $l; done", stdin=True)
    pid = stream.until("start")["pid"]
    box.send_input(pid, b"one\n")
    stream.until("data")
    stream.close()
    connected = [box.stream("process.Process/Connect", {"process": {"pid": pid}}) for _ in range(2)]
    assert all(each.event() == ("start", {"pid": pid}) for each in connected)
    box.send_input(pid, b"two\n")
    box.close_stdin(pid)
    for each in connected:
        output, end, _ = each.rest()
        assert output["stdout"] == b"two\n" and end["exited"]


def test_output_without_a_subscriber_is_thrown_away(box):
    stream = box.start("read x; head -c 1000000 /dev/zero; touch done; read y; echo end", stdin=True)
    pid = stream.until("start")["pid"]
    stream.close()
    while box.server.fake("GET", "requests?path=Start")["requests"][-1]["ended"] == "ok":
        pass
    box.send_input(pid, b"x\n")
    while box.read("done").status != 200:
        pass
    connected = box.stream("process.Process/Connect", {"process": {"pid": pid}})
    connected.until("start")
    box.send_input(pid, b"y\n")
    assert b"end\n" in connected.rest()[0]["stdout"]


def test_a_late_connect_gets_start_and_end_for_a_while(server, box):
    stream = box.start("echo lost; exit 7")
    pid = stream.until("start")["pid"]
    stream.rest()
    late = box.stream("process.Process/Connect", {"process": {"pid": pid}}).rest()
    assert late[0]["stdout"] == b"" and late[1]["exitCode"] == 7
    server.fake("POST", "config", {"exit_retention_s": 0})
    stream = box.start("true")
    pid = stream.until("start")["pid"]
    stream.rest()
    while "error" not in (trailer := box.stream("process.Process/Connect", {"process": {"pid": pid}}).rest()[2]):
        pass
    assert trailer["error"] == {"code": "not_found", "message": f"process with pid {pid} not found"}


def test_a_slow_subscriber_stalls_the_others_and_the_program(box):
    stream = box.start("head -c 40000000 /dev/zero; touch done", stdin=False)
    pid = stream.until("start")["pid"]
    other = box.stream("process.Process/Connect", {"process": {"pid": pid}})
    other.until("data")
    assert box.read("done").status == 404, "nobody reads the first stream"
    stream.close()
    assert other.rest()[1]["exited"]


def test_connect_timeout_kills_the_leader_only(box):
    stream = box.start("(sleep 1000 >/dev/null 2>&1 & echo $!); exec sleep 1001", headers={"Connect_Timeout_Ms": "300"})
    pid = stream.until("start")["pid"]
    child = int(base64.b64decode(stream.until("data")["stdout"]))
    assert stream.rest()[1:] == (None, {"error": {"code": "deadline_exceeded", "message": "context deadline exceeded"}})
    assert box.run(f"while kill -0 {pid} 2>/dev/null; do :; done; kill -0 {child} && echo alive")[0] == b"alive\n"


# -- input ------------------------------------------------------------------------------------------------------------

def test_stdin_false_is_empty_and_absent_is_an_open_pipe(box):
    assert box.run("wc -c", stdin=False)[0].strip() == b"0"
    stream = box.stream(START, {"process": {"cmd": "wc", "args": ["-c"]}})
    pid = stream.until("start")["pid"]
    assert box.send_input(pid, b"12345").json == {}
    assert box.close_stdin(pid).json == {}
    assert stream.rest()[0]["stdout"].strip() == b"5"


def test_input_errors(box):
    none = box.send_input(424242, b"x")
    assert (none.status, none.json) == (404, {"code": "not_found", "message": "process with pid 424242 not found"})
    stream = box.start("exec 0<&-; echo closed; sleep 1000", stdin=True)
    pid = stream.until("start")["pid"]
    stream.until("data")
    broken = box.send_input(pid, b"x")
    assert (broken.status, broken.json["code"]) == (500, "internal") and "broken pipe" in broken.json["message"]
    assert box.close_stdin(pid).status == 200 and box.close_stdin(pid).status == 200
    pid = box.start("sleep 1000").until("start")["pid"]
    off = box.send_input(pid, b"x")
    assert off.json == {"code": "internal", "message": "error writing to stdin: stdin not enabled or closed"}
    assert box.send_input(pid, b"x", "pty").json["code"] == "internal"
    resize = box.rpc("process.Process/Update", {"process": {"pid": pid}, "pty": {"size": {"cols": 1, "rows": 1}}})
    assert (resize.status, resize.json["message"]) == (500, "error resizing tty: tty not assigned to process")
    assert box.rpc("process.Process/SendInput", {"process": {"pid": pid}, "input": {}}).status == 501


def test_a_blocked_input_survives_its_request_and_the_close_queues_behind_it(server, box):
    stream = box.start("until [ -e go ]; do sleep 0.01; done; wc -c", stdin=True)
    pid = stream.until("start")["pid"]
    connection = server.connect()
    connection.request("POST", "/process.Process/SendInput", json.dumps({
        "process": {"pid": pid}, "input": {"stdin": b64(b"x" * 300000)}}), box.headers(
            **{"Content-Type": "application/json", "Connect-Timeout-Ms": "1"}))
    while not any(e["bytes_in"] > 400000 for e in server.fake("GET", "requests?path=SendInput")["requests"]):
        pass
    connection.close()
    closing = server.connect()
    closing.request("POST", "/process.Process/CloseStdin", json.dumps({"process": {"pid": pid}}), box.headers(
        **{"Content-Type": "application/json"}))
    box.write("go", b"")
    assert closing.getresponse().status == 200
    assert stream.rest()[0]["stdout"].strip() == b"300000"


def test_a_kill_frees_a_blocked_input(server, box):
    stream = box.start("exec sleep 1000", stdin=True)
    pid = stream.until("start")["pid"]
    connection = server.connect()
    connection.request("POST", "/process.Process/SendInput", json.dumps({
        "process": {"pid": pid}, "input": {"stdin": b64(b"x" * 300000)}}), box.headers(
            **{"Content-Type": "application/json"}))
    while not any(e["bytes_in"] > 400000 for e in server.fake("GET", "requests?path=SendInput")["requests"]):
        pass
    box.signal(pid, "SIGNAL_SIGKILL")
    answer = connection.getresponse()
    assert answer.status == 500 and "broken pipe" in json.loads(answer.read())["message"]


def test_stream_input(server, box):
    stream = box.start("sha256sum", stdin=True)
    pid = stream.until("start")["pid"]
    data = bytes(range(256)) * 4096
    parts = [{"start": {"process": {"pid": pid}}}, {"keepalive": {}}]
    parts += [{"data": {"input": {"stdin": b64(data[i:i + 50000])}}} for i in range(0, len(data), 50000)]
    sent = box.stream("process.Process/StreamInput", b"".join(envelope(part) for part in parts))
    assert sent.frame() == (0, b"{}") and sent.event() == ("eos", {})
    box.close_stdin(pid)
    assert stream.rest()[0]["stdout"].split()[0].decode() == hashlib.sha256(data).hexdigest()
    lost = box.stream("process.Process/StreamInput", envelope({"start": {"process": {"pid": 424242}}}))
    assert lost.event()[1]["error"]["code"] == "not_found"
    with pytest.raises(ConnectionError):
        box.stream("process.Process/StreamInput", envelope({"data": {"input": {"stdin": ""}}}))


# -- signals, terminals, list -----------------------------------------------------------------------------------------

def test_signals(box):
    stream = box.start("trap 'echo term; exit 5' TERM; echo up; while :; do sleep 0.01; done")
    pid = stream.until("start")["pid"]
    stream.until("data")
    for bad in ("SIGNAL_SIGINT", 2, "SIGNAL_UNSPECIFIED"):
        assert box.signal(pid, bad).status == 501
    assert box.signal(pid, "SIGNAL_SIGTERM").json == {}
    assert stream.rest()[1]["exitCode"] == 5
    assert box.signal(pid, "SIGNAL_SIGKILL").status == 404


def test_a_signal_reaches_the_leader_only_and_ends_the_stream(box):
    stream = box.start("sleep 1000 & echo $!; wait")
    pid = stream.until("start")["pid"]
    child = int(base64.b64decode(stream.until("data")["stdout"]))
    box.signal(pid, 9)
    assert stream.rest()[1]["error"] == "signal: killed", "although the child still holds the pipes"
    assert box.run(f"kill -0 {child} && echo alive")[0] == b"alive\n"


def test_terminal(box):
    message = {"process": {"cmd": "bash", "args": ["-c", "stty -echo size; read x; stty size; echo got $x; tty"]},
               "pty": {"size": {"cols": 90, "rows": 25}}}
    stream = box.stream(START, message)
    pid = stream.until("start")["pid"]
    assert base64.b64decode(stream.until("data")["pty"]) == b"25 90\r\n"
    assert box.rpc("process.Process/Update", {"process": {"pid": pid}, "pty": {"size": {"cols": 120, "rows": 40}}}
                   ).json == {}
    assert box.send_input(pid, b"no").json["code"] == "internal"
    refused = box.close_stdin(pid)
    assert (refused.status, refused.json["code"]) == (500, "unknown")
    box.send_input(pid, b"typed\r", "pty")
    output, end, _ = stream.rest()
    assert b"40 120" in output["pty"] and b"got typed" in output["pty"] and b"/dev/pts/" in output["pty"]
    assert end["exited"]


def test_list_and_tags(box):
    assert box.rpc("process.Process/List", {}).json == {}
    config = {"cmd": "sleep", "args": ["1000"], "cwd": "/tmp"}
    stream = box.stream(START, {"process": config, "tag": "t", "stdin": False})
    pid = stream.until("start")["pid"]
    assert box.rpc("process.Process/List", {}).json == {"processes": [{"config": config, "pid": pid, "tag": "t"}]}
    assert box.stream("process.Process/Connect", {"process": {"tag": "t"}}).event() == ("start", {"pid": pid})
    assert box.stream("process.Process/Connect", {"process": {"tag": "u"}}).event()[1]["error"]["code"] == "not_found"


def test_gzip_when_the_client_asks(box):
    unary = box.rpc("process.Process/List", {}, Accept_Encoding="gzip")
    assert unary.headers["Content-Encoding"] == "gzip" and json.loads(gzip.decompress(unary.body)) == {}
    stream = box.start("true", headers={"Connect_Accept_Encoding": "gzip"})
    flags, payload = stream.frame()
    assert flags == 1 and "start" in json.loads(gzip.decompress(payload))["event"]


# -- version gates ----------------------------------------------------------------------------------------------------

def old_box(server, version):
    server.fake("POST", "config", {"envd_version": version})
    return server.create()


def test_before_0_3_0_the_stdin_flag_is_ignored(server):
    box = old_box(server, "0.2.0")
    user = {"Authorization": "Basic " + b64(b"user:")}
    stream = box.start("wc -c", headers=user, stdin=False)
    pid = stream.until("start")["pid"]
    assert box.send_input(pid, b"x").status == 200


def test_before_0_4_0_a_user_must_be_named(server):
    assert old_box(server, "0.3.9").start("true").event()[1]["error"]["code"] == "unauthenticated"


def test_before_0_5_2_there_is_no_close_stdin(server):
    box = old_box(server, "0.5.1")
    pid = box.start("cat", stdin=True).until("start")["pid"]
    assert box.close_stdin(pid).status == 404


def test_before_0_6_13_an_exit_is_forgotten_at_once(server):
    box = old_box(server, "0.6.12")
    stream = box.start("true")
    pid = stream.until("start")["pid"]
    stream.rest()
    late = box.stream("process.Process/Connect", {"process": {"pid": pid}})
    assert late.event()[1]["error"]["code"] == "not_found"
