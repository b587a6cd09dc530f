# SPDX-License-Identifier: ISC
"""/files and filesystem.Filesystem: checklist item 6 and section 4 of the sheet."""
import base64
import gzip
import hashlib
import http.client
import json
import os
import time
from urllib.parse import quote

import pytest

from .client import envelope

EVERY_BYTE = bytes(range(256)) * 300


def form(*files, name="file"):
    """A multipart body and its content type."""
    body = b""
    for filename, data in files:
        disposition = f'form-data; name="{name}"; filename="{filename}"'.encode()
        body += b"--X\r\nContent-Disposition: " + disposition + b"\r\n\r\n" + data + b"\r\n"
    return body + b"--X--\r\n", {"Content-Type": "multipart/form-data; boundary=X"}


def upload(box, query, body, headers):
    return box.http("POST", "/files" + query, body, **headers)


# -- download ---------------------------------------------------------------------------------------------------------

def test_download(box):
    box.write("/tmp/some%20file", EVERY_BYTE)
    answer = box.read("/tmp/some%20file")
    assert (answer.status, answer.body) == (200, EVERY_BYTE)
    assert answer.headers["Content-Length"] == str(len(EVERY_BYTE))
    assert answer.headers["Content-Disposition"] == 'inline; filename="some file"'
    assert (answer.headers["Vary"], answer.headers["Accept-Ranges"]) == ("Accept-Encoding", "bytes")
    assert answer.headers["Last-Modified"]


def test_ranges(box):
    box.write("f", b"0123456789")
    for wanted, status, body in (("bytes=2-4", 206, b"234"), ("bytes=7-", 206, b"789"), ("bytes=-2", 206, b"89"),
                                 ("bytes=5-99", 206, b"56789"), ("bytes=", 200, b"0123456789"),
                                 ("bytes=10-", 416, None), ("lines=1", 416, None), ("bytes=4-2", 416, None)):
        answer = box.read("f", Range=wanted, Accept_Encoding="gzip")
        assert answer.status == status and body in (None, answer.body), wanted
        assert "Content-Encoding" not in answer.headers
    modified = box.read("f").headers["Last-Modified"]
    assert box.read("f", If_Modified_Since=modified).status == 304


def test_gzip_has_no_length(box):
    data = os.urandom(100000)
    box.write("f", data)
    answer = box.read("f", Accept_Encoding="gzip, deflate")
    assert answer.headers["Content-Encoding"] == "gzip" and "Content-Length" not in answer.headers
    assert gzip.decompress(answer.body) == data
    assert box.read("f", Accept_Encoding="gzip;q=0, identity").body == data
    box.write("f", b"small")
    assert "Content-Length" in box.read("f", Accept_Encoding="gzip").headers
    refused = box.read("f", Accept_Encoding="identity;q=0, br")
    assert (refused.status, refused.json["code"]) == (406, 406)


def test_download_errors(box):
    assert box.read("/none").json == {"code": 404, "message": "path '/none' does not exist"}
    assert box.read("/etc").json == {"code": 400, "message": "path '/etc' is a directory"}
    assert box.read("~other/x").status == 400
    assert box.http("GET", "/files?path=/etc/passwd&username=nobody-such").status == 401


def test_proc_files_have_no_length(box):
    answer = box.read("/proc/self/status")
    assert (answer.status, answer.body) == (500, b"seeker can't seek\n")
    assert b"Name:" in gzip.decompress(box.read("/proc/self/status", Accept_Encoding="gzip").body)


def test_content_types(box):
    for name, data, kind in (("a.txt", b"", "text/plain; charset=utf-8"), ("a.json", b"", "application/json"),
                             ("a", b"text", "text/plain; charset=utf-8"), ("a", b"\0", "application/octet-stream")):
        assert box.write(name, data).headers["Content-Type"] == "text/plain; charset=utf-8"
        assert box.read(name).headers["Content-Type"] == kind
    box.write("%C3%A9", b"")
    assert box.read("%C3%A9").headers["Content-Disposition"] == "inline; filename*=utf-8''%C3%A9"


# -- upload -----------------------------------------------------------------------------------------------------------

def test_raw_upload_makes_parents_and_truncates_in_place(box):
    assert box.write("a/b/f", EVERY_BYTE).json == [{"path": "/home/user/a/b/f", "name": "f", "type": "file"}]
    box.run("chmod 751 a/b/f; ln a/b/f other")
    box.write("~/a/b/f", b"short")
    assert box.run("stat -c %a a/b/f; cat other")[0] == b"751\nshort", "same inode, mode kept"
    assert box.run("stat -c '%a %U' a a/b; umask")[0] == b"755 user\n755 user\n0022\n"


def test_large_upload_and_download(box):
    data = os.urandom(1 << 20) * 64
    box.write("raw", data)
    upload(box, "?path=form", *form(("x", data)))
    expected = hashlib.sha256(data).hexdigest()
    assert box.run("sha256sum raw form | cut -d' ' -f1")[0].decode().split() == [expected] * 2
    assert hashlib.sha256(box.read("raw").body).hexdigest() == expected


def test_multipart(box):
    answer = upload(box, "", *form(("/tmp/one", b"1"), ("rel/two", b"2")))
    assert [entry["path"] for entry in answer.json] == ["/tmp/one", "/home/user/rel/two"]
    assert upload(box, "?path=/tmp/q", *form(("ignored", b"3"))).json[0]["path"] == "/tmp/q"
    assert upload(box, "", *form(("/tmp/x", b""), name="other")).json == []
    twice = upload(box, "?path=/tmp/q", *form(("a", b"4"), ("b", b"5")))
    assert (twice.status, twice.json["code"]) == (400, 400)
    assert [box.read(f"/tmp/{name}").body for name in ("one", "q")] == [b"1", b"4"]


def test_gzip_upload(box):
    box.write("f", gzip.compress(EVERY_BYTE), Content_Encoding="gzip")
    assert box.read("f").body == EVERY_BYTE
    for encoding in ("compress", "gzip", "br"):
        assert box.write("f", b"x", Content_Encoding=encoding).status == 400


def test_upload_errors(box):
    raw = {"Content-Type": "application/octet-stream"}
    assert upload(box, "", b"x", raw).json == {
        "code": 400, "message": "path query parameter is required for raw body upload"}
    assert upload(box, "?path=f", b"x", {"Content-Type": "text/plain"}).status == 400
    assert upload(box, "?path=f", b"x", {}).status == 400
    assert upload(box, "?path=/etc", b"x", raw).status == 400
    assert upload(box, "?path=/etc/passwd/x", b"x", raw).status == 500
    assert upload(box, "?path=f&username=nobody-such", b"x", raw).status == 401


def test_full_disk(server, box):
    server.fake("POST", "config", {"disk_free": 4})
    answer = box.write("f", b"12345")
    assert (answer.status, answer.json["code"]) == (507, 507)
    assert "not enough disk space available" in answer.json["message"]
    assert box.read("f").body == b"1234"


def test_octet_stream_came_with_0_5_7(server):
    server.fake("POST", "config", {"envd_version": "0.5.6"})
    box = server.create()
    assert box.write("f", b"x").status == 500
    assert upload(box, "?path=f", *form(("f", b"x"))).status == 200


def test_metadata(server, box):
    answer = box.write("f", b"x", X_Metadata_Owner="me", X_Metadata_Job="1")
    assert answer.json[0]["metadata"] == {"owner": "me", "job": "1"}
    entry = box.rpc("filesystem.Filesystem/Stat", {"path": "f"}).json["entry"]
    assert entry["metadata"] == {"owner": "me", "job": "1"}
    assert "metadata" not in box.write("f", b"x").json[0], "every upload replaces the set"


def test_an_aborted_upload_leaves_a_partial_file(server, box):
    with server.socket() as sock:
        head = "".join(f"{name}: {value}\r\n" for name, value in box.headers().items())
        sock.sendall(f"POST /files?path=f HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}"
                     "Content-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\n".encode() + b"partial")
        while box.read("f").body != b"partial":
            pass
    assert box.read("f").body == b"partial"


def test_compose(box):
    box.write("1", b"one")
    box.write("2", b"two")
    box.http("POST", "/files/compose", {"source_paths": ["1", "2"], "destination": "12"})
    assert box.read("12").body == b"onetwo" and box.read("1").status == 404


# -- signatures -------------------------------------------------------------------------------------------------------

def signature(*parts):
    digest = hashlib.sha256(":".join(str(part) for part in parts).encode()).digest()
    return "v1_" + base64.b64encode(digest).decode().rstrip("=")


def signed(server, box, query, sign):
    headers = {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "49983"}
    return server.request("GET", f"/files?{query}&signature={quote(sign, safe='')}", headers=headers)


def test_signatures(server, box):
    box.write("/tmp/f", b"x")
    soon, past = int(time.time()) + 100, int(time.time()) - 100
    good = signature("/tmp/f", "read", "", box.token)
    assert signed(server, box, "path=/tmp/f", good).body == b"x"
    assert signed(server, box, f"path=/tmp/f&username=root&signature_expiration={soon}",
                  signature("/tmp/f", "read", "root", box.token, soon)).body == b"x"
    late = signed(server, box, f"path=/tmp/f&signature_expiration={past}",
                  signature("/tmp/f", "read", "", box.token, past))
    assert late.json == {"code": 401, "message": "signature is already expired"}
    wrong = signed(server, box, "path=/tmp/f", signature("/tmp/f", "write", "", box.token))
    assert wrong.json == {"code": 401, "message": "invalid signature"}
    bare = {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "49983"}
    assert server.request("GET", "/files?path=/tmp/f", headers=bare).json["message"] == \
        "missing signature query parameter"
    assert box.read("/tmp/f", X_Access_Token="wrong").json["message"] == \
        "access token present in header but does not match"


# -- filesystem.Filesystem --------------------------------------------------------------------------------------------

def filesystem(box, method, **message):
    return box.rpc("filesystem.Filesystem/" + method, message)


def test_stat(box):
    box.run("mkdir d; printf 12345 > d/f; chmod 4640 d/f; ln -s f d/l; ln -s nowhere d/dangling; : > d/empty")
    entry = filesystem(box, "Stat", path="d/f").json["entry"]
    assert {key: entry[key] for key in ("name", "type", "path", "size", "mode", "permissions", "owner", "group")} == {
        "name": "f", "type": "FILE_TYPE_FILE", "path": "/home/user/d/f", "size": "5", "mode": 0o640,
        "permissions": "urw-r-----", "owner": "user", "group": "user"}
    assert entry["modifiedTime"].endswith("Z")
    link = filesystem(box, "Stat", path="d/l").json["entry"]
    assert (link["type"], link["symlinkTarget"], link["permissions"][0]) == ("FILE_TYPE_FILE", "/home/user/d/f", "L")
    assert "type" not in filesystem(box, "Stat", path="d/dangling").json["entry"]
    assert "size" not in filesystem(box, "Stat", path="d/empty").json["entry"]
    missing = filesystem(box, "Stat", path="/none")
    assert (missing.status, missing.json["code"]) == (404, "not_found")


def test_list_dir(box):
    assert filesystem(box, "ListDir", path="~").json == {}
    box.run("mkdir -p d/e/f; : > d/x; ln -s d link")

    def paths(**message):
        return [entry["path"] for entry in filesystem(box, "ListDir", **message).json["entries"]]
    assert paths(path="d") == ["/home/user/d/e", "/home/user/d/x"]
    assert paths(path="d", depth=2) == ["/home/user/d/e", "/home/user/d/e/f", "/home/user/d/x"]
    assert paths(path="link") == ["/home/user/link/e", "/home/user/link/x"]
    assert filesystem(box, "ListDir", path="/none").json["code"] == "not_found"
    assert filesystem(box, "ListDir", path="d/x").json["code"] == "invalid_argument"
    box.run("ln -s loop loop")
    assert filesystem(box, "ListDir", path="loop").json["code"] == "failed_precondition"


def test_make_dir_move_remove(box):
    assert filesystem(box, "MakeDir", path="a/b").json["entry"]["type"] == "FILE_TYPE_DIRECTORY"
    again = filesystem(box, "MakeDir", path="a/b")
    assert (again.status, again.json["code"]) == (409, "already_exists")
    box.write("f", b"x")
    assert filesystem(box, "MakeDir", path="f").json["code"] == "invalid_argument"
    moved = filesystem(box, "Move", source="f", destination="/tmp/new/g")
    assert moved.json["entry"]["path"] == "/tmp/new/g", "one file system, parents made"
    assert filesystem(box, "Move", source="f", destination="g").json["code"] == "not_found"
    assert filesystem(box, "Move", source="/tmp/new/g", destination="/tmp/new").status == 500
    filesystem(box, "MakeDir", path="empty")
    over = filesystem(box, "Move", source="a", destination="empty")
    assert over.status == 500 and over.json["message"].endswith(": file exists"), "Go refuses what rename(2) does"
    for _ in range(2):
        assert filesystem(box, "Remove", path="/tmp/new").json == {}
    assert box.read("/tmp/new/g").status == 404


def test_watch_dir(box):
    box.run("mkdir -p d/sub")
    stream = box.stream("filesystem.Filesystem/WatchDir", {"path": "d", "recursive": True, "includeEntry": True})

    def message():
        return next(iter(json.loads(stream.frame()[1]).items()))
    assert message() == ("start", {})
    box.write("d/sub/f", b"x")
    kind, event = message()
    assert (kind, event["name"], event["type"]) == ("filesystem", "sub/f", "EVENT_TYPE_CREATE")
    assert event["entry"]["path"] == "/home/user/d/sub/f"
    box.run("rm d/sub/f")
    while (event := message()[1])["type"] != "EVENT_TYPE_REMOVE":
        pass
    assert event == {"name": "sub/f", "type": "EVENT_TYPE_REMOVE"}
    missing = box.stream("filesystem.Filesystem/WatchDir", {"path": "/none"})
    assert json.loads(missing.frame()[1])["error"]["code"] == "not_found"


def test_polled_watcher(box):
    watcher = filesystem(box, "CreateWatcher", path=".").json["watcherId"]
    assert filesystem(box, "GetWatcherEvents", watcherId=watcher).json == {}
    box.run(": > f")
    events = filesystem(box, "GetWatcherEvents", watcherId=watcher).json["events"]
    assert {"name": "f", "type": "EVENT_TYPE_CREATE"} in events
    assert filesystem(box, "RemoveWatcher", watcherId=watcher).json == {}
    assert filesystem(box, "GetWatcherEvents", watcherId=watcher).status == 404


# -- small endpoints --------------------------------------------------------------------------------------------------

def test_small_endpoints(server):
    box = server.create(envVars={"A": "1"})
    assert box.http("GET", "/envs").json["A"] == "1"
    assert box.http("GET", "/metrics").json["cpu_count"] == 2


def test_a_kept_connection_serves_both_planes(server, box):
    connection = server.connect()
    for _ in range(3):
        connection.request("GET", "/health", headers=box.headers())
        answer = connection.getresponse()
        assert answer.status == 204 and not answer.will_close
        answer.read()
    connection.request("POST", "/process.Process/Start", envelope({"process": {"cmd": "true"}, "stdin": False}),
                       box.headers(**{"Content-Type": "application/connect+json"}))
    assert connection.getresponse().read()
    connection.request("GET", "/health", headers=box.headers())
    assert connection.getresponse().status == 204


def test_the_sandbox_dies_under_a_download(server, box):
    box.write("f", b"x" * (32 << 20))
    connection = server.connect()
    connection.request("GET", "/files?path=f", headers=box.headers())
    answer = connection.getresponse()
    answer.read(1000)
    server.fake("POST", f"sandboxes/{box.id}/kill")
    with pytest.raises((ConnectionError, http.client.IncompleteRead)):
        while answer.read(1 << 20):
            pass
        raise http.client.IncompleteRead(b"")
