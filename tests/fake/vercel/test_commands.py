# SPDX-License-Identifier: ISC
"""Commands: starting, waiting, logs, signals, and what nobody knows of them (the settings)."""
import json

import pytest

from .client import exit_of, lines_of, text_of


def code_of(answer):
    return answer.status, answer.json["error"]["code"]


# -- starting ---------------------------------------------------------------------------------------------------------


def test_a_detached_command_is_answered_at_once(box):
    answer = box.call("POST", "/cmd", {"command": "sleep", "args": ["1000"]})
    command = answer.json["command"]
    assert answer.headers["Content-Type"].startswith("application/json")
    assert command["id"].startswith("cmd_") and command["exitCode"] is None and "durationMs" not in command
    assert (command["name"], command["args"], command["cwd"]) == ("sleep", ["1000"], "/vercel")
    assert command["sessionId"] == box.id
    assert box.get(command["id"], wait="false").json["command"] == command


def test_a_waited_command_begins_and_ends_with_itself(box):
    answer = box.call("POST", "/cmd", {"command": "echo", "args": ["hi"], "wait": True})
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    first, last = lines_of(answer.body)
    assert first["command"]["exitCode"] is None and last["command"]["exitCode"] == 0
    assert first["command"]["id"] == last["command"]["id"] and last["command"]["durationMs"] >= 0
    assert text_of(box.logs(first["command"]["id"]), "stdout") == "hi\n", "the log is kept all the same"


def test_output_comes_between_when_it_is_wanted(box):
    lines = box.stream("sh", "-c", "echo out; echo err >&2; exit 7")
    assert text_of(lines, "stdout") == "out\n" and text_of(lines, "stderr") == "err\n"
    assert lines[-1]["command"]["exitCode"] == 7
    # Python's SDK says it in the query as well.
    answer = box.call("POST", "/cmd", {"command": "echo"}, wait="true", logs="true")
    assert text_of(lines_of(answer.body), "stdout") == "\n"


def test_each_line_is_flushed_when_it_is_there(box):
    box.run("mkfifo fifo")
    connection, answer = box.open_stream("POST", "/cmd", {
        "command": "sh", "args": ["-c", "echo first; read x < fifo; echo $x"], "wait": True, "logs": True})
    assert "command" in json.loads(answer.readline())
    assert json.loads(answer.readline()) == {"stream": "stdout", "data": "first\n"}
    box.run("echo second > fifo")
    assert json.loads(answer.readline()) == {"stream": "stdout", "data": "second\n"}
    assert json.loads(answer.readline())["command"]["exitCode"] == 0
    assert answer.read() == b""
    connection.close()


def test_arguments_environment_and_directory_are_the_requests(server):
    box = server.create(env={"A": "sandbox", "B": "sandbox"})
    assert box.run('echo "$A $B $1|$2"; pwd', "sh", "x y", env={"B": "request"}, cwd="/tmp")[1] == (
        "sandbox request x y|\n/tmp\n")
    assert text_of(box.stream("printf", "%s.", "*", "$A", "", "é"), "stdout") == "*.$A..é."
    assert code_of(box.call("POST", "/cmd", {"command": "pwd", "cwd": "/none"})) == (400, "bad_request")


@pytest.mark.parametrize("wrong", [{}, {"command": ""}, {"command": 1}, {"command": "x", "args": "y"},
                                   {"command": "x", "args": [1]}, {"command": "x", "timeout": 99},
                                   {"command": "x", "env": {"A": 1}}])
def test_a_malformed_request_is_refused(box, wrong):
    assert code_of(box.call("POST", "/cmd", wrong)) == (400, "bad_request")


def test_there_is_no_shell_and_a_missing_program_is_told(box):
    assert code_of(box.call("POST", "/cmd", {"command": "echo hi"})) == (400, "executable_not_found")
    assert code_of(box.call("POST", "/cmd", {"command": "/etc/passwd"})) == (400, "executable_not_found")
    box.server.config(not_executable_status=404)
    assert box.call("POST", "/cmd", {"command": "nosuch"}).status == 404
    assert code_of(box.call("POST", "/cmd", {"command": "true", "args": ["x" * (128 << 10)]})) == (400, "bad_request")
    assert box.call("GET", "/cmd").json["commands"] == []


def test_a_command_may_be_root(box):
    assert box.run('id -u; echo "$USER $HOME $SUDO_USER $X"', sudo=True, env={"X": "kept"})[1] == (
        "0\nroot /root ubuntu kept\n")
    script = "sudo id -u; sudo -n X=1 sh -c 'echo $X $HOME'; sudo -u ubuntu -- id -un; sudo -u nobody id -u"
    assert box.run(script)[1] == "0\n1 /root\nubuntu\n65534\n"


# -- output -----------------------------------------------------------------------------------------------------------


def test_bytes_that_are_no_text_become_replacement_characters(box):
    assert box.run(r"printf 'a\377\300\257b\000c\355\240\200'")[1] == "a\ufffd\ufffd\ufffdb\0c\ufffd\ufffd\ufffd"


def test_characters_can_come_as_escapes(box):
    box.server.config(json_escapes=True)
    answer = box.call("POST", "/cmd", {"command": "echo", "args": ["é😀"], "wait": True, "logs": True})
    assert b'"data":"\\u00e9\\ud83d\\ude00\\n"' in answer.body
    assert text_of(lines_of(answer.body), "stdout") == "é😀\n"


@pytest.mark.parametrize("how, seen", [("stream", "é"), ("chunk", "\ufffd\ufffd")])
def test_a_character_in_two_reads_is_kept_or_damaged(box, how, seen):
    box.server.config(utf8=how)
    box.run("mkfifo fifo")
    connection, answer = box.open_stream("POST", "/cmd", {
        "command": "sh", "args": ["-c", r"echo go; printf '\303'; read x < fifo; printf '\251'"], "wait": True,
        "logs": True})
    answer.readline()
    begun = lines_of(answer.readline())
    box.run("echo > fifo")
    assert text_of(begun + lines_of(answer.read()), "stdout") == "go\n" + seen
    connection.close()


def test_a_big_output_arrives_whole(box):
    lines = box.stream("sh", "-c", "seq 300000; seq 300000 >&2")
    expected = "".join(f"{n}\n" for n in range(1, 300001))
    assert text_of(lines, "stdout") == text_of(lines, "stderr") == expected


def test_logs_begin_at_the_first_byte_and_follow_to_the_end(box):
    box.run("mkfifo fifo")
    number = box.start("sh", "-c", "echo one; read x < fifo; echo $x >&2")
    connection, answer = box.open_stream("GET", f"/cmd/{number}/logs")
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert json.loads(answer.readline()) == {"stream": "stdout", "data": "one\n"}
    box.run("echo two > fifo")
    assert json.loads(answer.readline()) == {"stream": "stderr", "data": "two\n"}
    assert answer.read() == b""
    connection.close()
    assert box.logs(number) == box.logs(number) == [
        {"stream": "stdout", "data": "one\n"}, {"stream": "stderr", "data": "two\n"}]


@pytest.mark.parametrize("setting, seen", [("null", "0\n"), ("pipe", "")])
def test_stdin_is_at_its_end_or_never_gets_there(box, setting, seen):
    box.server.config(stdin=setting)
    assert box.run("exec wc -c", timeout=500)[1] == seen


def test_a_command_ends_with_its_output_or_with_its_leader(box):
    box.run("mkfifo fifo")
    script = "(read x < fifo; echo late) & echo done"
    number = box.start("sh", "-c", script)
    assert box.get(number).json["command"]["exitCode"] is None
    box.run("echo > fifo")
    assert box.exit_code(number) == 0 and text_of(box.logs(number), "stdout") == "done\nlate\n"
    box.server.config(command_end="leader")
    assert box.run(script)[:2] == (0, "done\n")


# -- finding ----------------------------------------------------------------------------------------------------------


def test_commands_are_listed_newest_first(box):
    numbers = [box.start("true", "a"), box.start("true", "b")]
    listed = box.call("GET", "/cmd").json["commands"]
    assert [command["id"] for command in listed] == numbers[::-1]
    assert [command["args"] for command in listed] == [["b"], ["a"]]


def test_an_unknown_command_is_not_found(box):
    for method, path in (("GET", ""), ("GET", "/logs"), ("POST", "/kill")):
        assert code_of(box.call(method, "/cmd/cmd_none" + path)) == (404, "not_found")


def test_a_client_that_leaves_stops_nothing(box):
    box.run("mkfifo fifo")
    connection, answer = box.open_stream("POST", "/cmd", {
        "command": "sh", "args": ["-c", "read x < fifo; echo $x; exit 5"], "wait": True, "logs": True})
    number = json.loads(answer.readline())["command"]["id"]
    answer.close()
    connection.close()
    box.run("echo on > fifo")
    assert box.exit_code(number) == 5 and text_of(box.logs(number), "stdout") == "on\n"


# -- signals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body, code", [({}, 143), ({"signal": 2}, 130), ({"signal": 9}, 137), ({"signal": 10}, 138)])
def test_a_signal_ends_a_command_with_128_and_its_number(box, body, code):
    number = box.start("sleep", "1000")
    assert box.kill(number, **body).json["command"]["id"] == number
    assert box.exit_code(number) == code


def test_only_a_running_command_can_be_killed(box):
    number = box.start("true")
    box.exit_code(number)
    assert code_of(box.kill(number)) == (400, "bad_request")
    number = box.start("sleep", "1000")
    for wrong in (0, 65, "TERM"):
        assert code_of(box.kill(number, signal=wrong)) == (400, "bad_request")


@pytest.mark.parametrize("scope, survives", [("process", True), ("group", False)])
def test_a_signal_reaches_the_process_or_its_group(box, scope, survives):
    box.server.config(kill_scope=scope, command_end="leader")
    box.run("mkfifo fifo")
    number = box.start("sh", "-c", "sleep 1000 & echo $! > fifo; wait")
    child = box.run("cat fifo")[1].strip()
    box.kill(number)
    assert box.exit_code(number) == 143
    alive = "while [ -e /proc/$1 ] && ! grep -q ') Z' /proc/$1/stat; do [ $2 = True ] && exit 0; done; exit 1"
    assert box.run(alive, "sh", child, str(survives))[0] == (0 if survives else 1)


def test_a_command_leads_a_group_or_does_not(box):
    leads = "set -- $(cat /proc/$$/stat); [ $5 = $$ ]"
    assert box.run(leads)[0] == 0
    box.server.config(own_group=False)
    assert box.run(leads)[0] == 1


def test_a_timeout_is_a_kill(box):
    assert box.run("echo begun; exec sleep 1000", timeout=300)[:2] == (137, "begun\n")


# -- the end of the session -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["error_line", "eof", "reset"])
def test_a_stream_learns_of_the_sessions_end(box, how):
    box.server.config(stream_on_stop=how)
    connection, answer = box.open_stream("POST", "/cmd", {
        "command": "sleep", "args": ["1000"], "wait": True, "logs": True})
    number = json.loads(answer.readline())["command"]["id"]
    followed, follower = box.open_stream("GET", f"/cmd/{number}/logs")
    box.call("POST", "/stop")
    for stream in (answer, follower):
        if how == "reset":
            with pytest.raises(ConnectionError):
                stream.read()
            continue
        rest = lines_of(stream.read())
        assert rest == ([] if how == "eof" else [{"stream": "error", "data": {
            "code": "sandbox_stream_closed",
            "message": "Sandbox stream was closed and is not accepting commands."}}])
    connection.close()
    followed.close()


def test_nothing_can_be_read_of_a_session_that_has_ended(box):
    number = box.start("echo", "hi")
    box.exit_code(number)
    connection, answer_later = box.open_later("GET", f"/cmd/{box.start('sleep', '1000')}?wait=true&x=")
    connection.close()
    del answer_later
    terminal = box.terminal("cat")
    box.call("POST", "/stop")
    assert code_of(box.get(number)) == code_of(box.call("GET", f"/cmd/{number}/logs")) == (410, "sandbox_stopped")
    assert exit_of(terminal) == (b"", None) and terminal.code == 1006
