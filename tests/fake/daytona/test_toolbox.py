# SPDX-License-Identifier: ISC
"""execute and the file endpoints. What is asserted here was also seen of a real daemon 0.190."""
import json
import os
from urllib.parse import quote

import pytest

SETUP = r"""mkdir -p t/d t/locked; cd t; printf 0123456789 >f; ln -s nowhere dangling; ln -s f link; touch locked/in
chmod 0 locked; touch -d '2020-01-02 03:04:05.5 UTC' f; chmod 640 f; echo 'a needle' >d/n"""


@pytest.fixture
def tree(box):
    assert box.execute(SETUP) == (0, "")
    return box


def test_execute_merges_the_outputs_in_order(box):
    assert box.execute("echo out; echo err >&2; echo out2") == (0, "out\nerr\nout2\n")
    assert box.execute("exit 3") == (3, "")
    assert box.execute("echo $K; pwd", cwd="/tmp", envs={"K": "v"}) == (0, "v\n/tmp\n")
    assert box.execute("pwd; umask") == (0, "/home/daytona\n0022\n")


def test_the_command_is_the_shells_input_and_can_be_eaten(box):
    assert box.execute("cat\necho no\n") == (0, "echo no\n")
    assert box.execute("#" + "x" * 300000 + "\necho yes") == (0, "yes\n")


def test_execute_loses_bytes_that_are_no_utf8(box):
    answer = box.http("POST", "/process/execute", {"command": r"printf '\377\342\202a\0<\303\251'"})
    assert answer.body == b'{"exitCode":0,"result":"\\ufffd\\ufffd\\ufffda\\u0000\\u003c\xc3\xa9"}'


def test_exit_codes_of_deaths(box):
    assert box.execute("kill -9 $$") == (-1, "")
    assert box.execute("sh -c 'kill -9 $$'; exit $?")[0] == 137
    assert box.execute("pwd", cwd="/nope") == (-1, "fork/exec /bin/bash: no such file or directory")


def test_a_timeout_kills_the_group_and_loses_the_output(box):
    answer = box.http("POST", "/process/execute", {"command": "echo lost; sleep 1000 & sleep 1000", "timeout": 1})
    assert answer.status == 408
    assert answer.json["message"] == "request timeout: command execution timeout"
    assert box.execute("ps -A -o comm= | grep -c sleep; true") == (0, "0\n")


def test_execute_waits_for_whoever_holds_the_output(box):
    box.execute("(while [ ! -e go ]; do sleep 0.02; done; echo late) >/dev/null 2>&1 &")
    connection = box.server.connect()
    command = "touch begun; (while [ ! -e go ]; do sleep 0.02; done; echo late) & echo first"
    connection.request("POST", box.prefix + "/process/execute", json.dumps({"command": command}), {
        "Authorization": "Bearer dtn_x"})
    while box.read("begun").status != 200:
        pass
    box.execute("touch go")
    assert json.loads(connection.getresponse().read())["result"] == "first\nlate\n"


def test_a_client_that_leaves_changes_nothing(box):
    connection = box.server.connect()
    command = "touch begun; while [ ! -e go ]; do sleep 0.02; done; touch done"
    connection.request("POST", box.prefix + "/process/execute", json.dumps({"command": command}), {
        "Authorization": "Bearer dtn_x"})
    while box.read("begun").status != 200:
        pass
    connection.close()
    box.execute("touch go")
    while box.read("done").status != 200:
        pass


@pytest.mark.parametrize("body, text", [
    ({"command": " "}, "bad request: command cannot be empty or whitespace-only"),
    ({}, "Field validation for 'Command' failed on the 'required' tag"),
    ({"command": "x", "envs": {"a-b": ""}}, "bad request: invalid environment variable name: 'a-b'"),
    ({"command": "x", "timeout": -1}, "cannot unmarshal number -1 into Go struct field ExecuteRequest.timeout"),
    (b"{", "bad request: invalid request body: unexpected EOF")])
def test_execute_refuses(box, body, text):
    answer = box.http("POST", "/process/execute", body)
    assert answer.status == 400 and text in answer.json["message"]
    assert (answer.json["code"], answer.json["path"], answer.json["method"]) == (
        "BAD_REQUEST", "/process/execute", "POST")
    assert answer.headers["Content-Type"] == "application/json"


def test_run_code(box):
    answer = box.http("POST", "/process/code-run", {"language": "python", "code": "import sys; print(sys.argv[1:])",
                                                    "argv": ["a"]})
    assert answer.json == {"exitCode": 0, "result": "['a']\n"}
    assert box.http("POST", "/process/code-run", {"language": "cobol", "code": "x"}).status == 400


def test_small_endpoints(box):
    assert box.http("GET", "/version").json == {"version": "0.190.0"}
    for path in ("/work-dir", "/user-home-dir", "/project-dir"):
        assert box.http("GET", path).json == {"dir": "/home/daytona"}
    assert box.http("GET", "/nothing").status == 404


# -- files ------------------------------------------------------------------------------------------------------------


def test_info(tree):
    assert tree.http("GET", "/files/info?path=t/link").json == {
        "name": "link", "size": 10, "mode": "-rw-r-----", "modTime": "2020-01-02 03:04:05.5 +0000 UTC",
        "modifiedAt": "2020-01-02T03:04:05.5Z", "isDir": False, "owner": "1000", "group": "1000",
        "permissions": "0640"}
    assert tree.http("GET", "/files/info?path=/tmp").json["mode"] == "dtrwxrwxrwx"


def test_lists_leave_out_what_cannot_be_looked_at(tree):
    for path in ("/files?path=t", "/files/?path=/home/daytona/t/"):
        assert [entry["name"] for entry in tree.http("GET", path).json] == ["d", "f", "link", "locked"]
    assert tree.http("GET", "/files?path=t/locked").status == 403


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/files?path=/nope", 404), ("GET", "/files?path=t/f", 400), ("GET", "/files/info", 400),
    ("GET", "/files/info?path=t/dangling", 404), ("GET", "/files/info?path=t/locked/in", 403),
    ("GET", "/files/info?path=t/f/x", 400), ("GET", "/files/download?path=t/d", 400),
    ("GET", "/files/download?path=/nope", 404), ("DELETE", "/files?path=t/d", 400),
    ("DELETE", "/files?path=t/dangling", 404), ("DELETE", "/files?path=t/dangling&recursive=true", 404),
    ("POST", "/files/folder?path=t/f", 400), ("POST", "/files/folder?path=t/x&mode=9", 400),
    ("POST", "/files/permissions?path=/nope&mode=600", 404), ("POST", "/files/permissions?path=t/f&mode=x", 400),
    ("POST", "/files/permissions?path=t/f&owner=nosuch", 400), ("POST", "/files/permissions?path=t/f&owner=0", 400),
    ("POST", "/files/move?source=t/f&destination=t/d", 409), ("POST", "/files/move?source=t/f", 400),
    ("POST", "/files/move?source=t/f&destination=/nope/x", 404),
    ("POST", "/files/move?source=/nope&destination=x", 404),
    ("GET", "/files/search?path=t", 400), ("POST", "/files/upload?path=x", 400)])
def test_file_errors_have_empty_bodies(tree, method, path, status):
    answer = tree.http(method, path)
    assert (answer.status, answer.body) == (status, b"")
    assert "Content-Type" not in answer.headers


def test_folders_permissions_move_delete(tree):
    for method, path, status in (
            ("POST", "/files/folder?path=t/a/b&mode=700", 201), ("POST", "/files/folder?path=t/a/b", 201),
            ("POST", "/files/permissions?path=t/f&mode=4755&owner=daytona&group=1000", 200),
            ("POST", "/files/move?source=t/f&destination=t/a/g", 200),
            ("DELETE", "/files?path=t/d&recursive=true", 204)):
        answer = tree.http(method, path)
        assert (answer.status, answer.body) == (status, b""), path
    assert tree.execute("cd t; stat -c %n:%a a a/b a/g; ls") == (
        0, "a:700\na/b:700\na/g:755\na\ndangling\nlink\nlocked\n")


def test_searches_and_replace(tree):
    assert tree.http("GET", "/files/search?path=t&pattern=*n*").json == {
        "files": ["t/d/n", "t/dangling", "t/link"]}
    assert tree.http("GET", "/files/find?path=/home/daytona/t/&pattern=needle").json == [
        {"file": "/home/daytona/t/d/n", "line": 1, "content": "a needle"}]
    answer = tree.http("POST", "/files/replace", {"files": ["t/d/n", "/no"], "pattern": "needle", "newValue": "pin"})
    assert answer.json == [{"file": "t/d/n", "success": True}, {
        "file": "/no", "success": False, "error": "open /no: no such file or directory"}]
    assert tree.read("t/d/n").body == b"a pin\n"


def test_download(tree):
    answer = tree.read("t/f")
    assert (answer.body, answer.headers["Content-Length"]) == (b"0123456789", "10")
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == "attachment; filename=\"f\"; filename*=utf-8''f"
    part = tree.read("t/f", Range="bytes=4-6")
    assert (part.status, part.body, part.headers["Content-Range"]) == (206, b"456", "bytes 4-6/10")
    assert tree.read("t/f", Range="bytes=20-").status == 416
    assert tree.read("t/f", **{"If-Modified-Since": "Thu, 02 Jan 2020 03:04:05 GMT"}).status == 304
    assert tree.read("/proc/self/status").body == b"", "a size of 0 is believed"


def test_bulk_download(tree):
    answer = tree.http("POST", "/files/bulk-download", {"paths": ["t/f", "/nope", "t/d", "t/locked/in"]})
    assert answer.headers["Content-Type"] == "multipart/form-data; boundary=DAYTONA-FILE-BOUNDARY"
    parts = answer.body.split(b"--DAYTONA-FILE-BOUNDARY\r\n")
    assert parts[1] == (b"Content-Disposition: form-data; name=\"file\"; filename=\"t/f\"; filename*=utf-8''t%2Ff\r\n"
                        b"Content-Length: 10\r\nContent-Type: application/octet-stream\r\n\r\n0123456789\r\n")
    errors = [json.loads(part.partition(b"\r\n\r\n")[2].partition(b"\r\n")[0]) for part in parts[2:]]
    assert [(error["statusCode"], error["code"]) for error in errors] == [
        (404, "FILE_NOT_FOUND"), (400, "INVALID_FILE_PATH"), (403, "FILE_ACCESS_DENIED")]
    assert answer.body.endswith(b"\r\n--DAYTONA-FILE-BOUNDARY--\r\n")
    assert tree.http("POST", "/files/bulk-download", {"paths": []}).status == 400


def test_bulk_upload_writes_in_place(tree):
    data = os.urandom(3 << 20) + b"\r\n--BOUN\r\n--"
    answer = tree.upload([("files[0].path", None, b" t/new/a b \n"), ("files[0].file", "x", data),
                          ("files[1].path", None, b"t/link"), ("files[1].file", "x", b"short")])
    assert answer.json == {"files": [{"path": "t/new/a b", "bytes": len(data)}, {"path": "t/link", "bytes": 5}]}
    assert tree.read("t/new/a b").body == data
    assert tree.execute("cat t/f; stat -c %a t/f t/new 't/new/a b'") == (0, "short640\n755\n644\n")


@pytest.mark.parametrize("parts, errors", [
    ([("files[0].file", "x", b"d"), ("files[0].path", None, b"z")], ["file[0]: missing .path metadata"]),
    ([("files[0].path", None, b"  "), ("files[0].file", "x", b"d")],
     ["path[0]: empty path", "file[0]: missing .path metadata"]),
    ([("files[0].path", None, b"/tmp"), ("files[0].file", "x", b"d")],
     ["/tmp: create: open /tmp: is a directory"]),
    ([("files[7].path", None, b"t/locked/x"), ("files[7].file", "x", b"d")],
     ["t/locked/x: create: open t/locked/x: permission denied"])])
def test_bulk_upload_errors(tree, parts, errors):
    good = [("files[9].path", None, b"good"), ("files[9].file", "x", b"d")]
    answer = tree.upload(parts + good)
    assert (answer.status, answer.json) == (400, {"errors": errors, "files": [{"path": "good", "bytes": 1}]})


def test_bulk_uploads_that_end_early(box):
    whole = (b"--B\r\nContent-Disposition: form-data; name=\"files[0].path\"\r\n\r\nf\r\n--B\r\n"
             b"Content-Disposition: form-data; name=\"files[0].file\"; filename=\"f\"\r\n\r\ndata\r\n--B--\r\n")
    kind = {"Content-Type": "multipart/form-data; boundary=B"}

    def cut(at):
        answer = box.http("POST", "/files/bulk-upload", whole[:at], **kind)
        return answer.status, answer.json
    assert cut(len(whole)) == (200, {"files": [{"path": "f", "bytes": 4}]})
    assert cut(100) == (200, {"files": None}), "in the head of a part: as if there had been none"
    assert cut(whole.index(b"data\r\n--B--") + 1) == (400, {
        "errors": ["f: write: unexpected EOF", "reading part: multipart: NextPart: EOF"], "files": None})
    assert box.read("f").body == b"d", "and what came is written"
    assert box.http("POST", "/files/bulk-upload", b"x", **{"Content-Type": "text/plain"}).json == {
        "errors": ["invalid multipart form"]}


def test_upload_of_one_file(box):
    assert box.upload([("file", "x", b"data")], "/files/upload?path=" + quote("new/a b")).status == 200
    assert box.read("new/a b").body == b"data"
    assert box.upload([("other", "x", b"data")], "/files/upload?path=y").status == 400
