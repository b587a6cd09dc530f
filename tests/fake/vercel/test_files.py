# SPDX-License-Identifier: ISC
"""Files: archives in, bytes out, directories."""
import gzip
import os
import tarfile

import pytest

from .client import TEAM, TOKEN, archive


def code_of(answer):
    return answer.status, answer.json["error"]["code"]


def entry(name, kind, **fields):
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in fields.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_every_format_of_tar_is_unpacked(box, form):
    data, long = os.urandom(200000), "d" * 90 + "/" + "n" * 80
    answer = box.write({"vercel/deep/er/f": data, f"tmp/{long}": b"long"}, form=form)
    assert (answer.status, answer.json) == (200, {})
    assert box.read("/vercel/deep/er/f").body == data
    assert box.read("/tmp/" + long).body == b"long"


def test_a_pax_archive_may_have_names_of_any_length_and_language(box):
    name = "vercel/" + "é" * 100 + "/" + "x" * 200
    assert box.write({name: b"1"}, form=tarfile.PAX_FORMAT).status == 200
    assert box.read("/" + name).body == b"1"


def test_an_archive_may_come_in_chunks_and_compressed_in_parts(box):
    whole = archive({"vercel/f": b"x" * 100000}, tarfile.PAX_FORMAT)
    raw = gzip.decompress(whole)
    parts = gzip.compress(raw[:5000]) + gzip.compress(raw[5000:])
    sock = box.server.socket()
    head = (f"POST /api/v2/sandboxes/sessions/{box.id}/fs/write?teamId={TEAM} HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: {TOKEN['Authorization']}\r\nContent-Type: application/gzip\r\nx-cwd: /\r\n"
            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
    sock.sendall(head.encode())
    for start in range(0, len(parts), 100):
        piece = parts[start:start + 100]
        sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
    sock.sendall(b"0\r\n\r\n")
    assert sock.makefile("rb").read().startswith(b"HTTP/1.1 200")
    sock.close()
    assert box.read("f").body == b"x" * 100000


def test_modes_are_kept_and_owners_are_not(box):
    files = {"t": entry("vercel/tool", tarfile.REGTYPE, mode=0o755, uid=7, gid=7),
             "s": entry("vercel/secret", tarfile.REGTYPE, mode=0o600),
             "d": entry("vercel/dir", tarfile.DIRTYPE, mode=0o755)}
    assert box.write(files).status == 200
    assert box.run("stat -c '%n %U %a' tool secret dir")[1] == "tool ubuntu 755\nsecret ubuntu 600\ndir ubuntu 755\n"


def test_names_are_below_the_directory_that_is_told(box):
    assert box.write({"a": b"1", "/b": b"2"}, cwd="/tmp/new").status == 200
    assert box.write({"c": b"3"}, cwd="rel").status == 200
    answer = box.call("POST", "/fs/write", archive({"d": b"4"}, tarfile.USTAR_FORMAT),
                      {"Content-Type": "application/gzip"})
    assert answer.status == 200
    assert [box.read(path).body for path in ("/tmp/new/a", "/tmp/new/b", "rel/c", "/vercel/d")] == [
        b"1", b"2", b"3", b"4"]


def test_a_file_that_exists_is_overwritten_in_place(box):
    box.run("echo a longer text > f; ln f hard; ln -s f soft")
    assert box.write({"vercel/soft": b"new"}).status == 200
    assert box.run("cat f hard; stat -c %F soft")[1] == "newnewsymbolic link\n"


@pytest.mark.parametrize("files", [
    {"l": entry("vercel/l", tarfile.SYMTYPE, linkname="x")}, {"h": entry("vercel/h", tarfile.LNKTYPE, linkname="x")},
    {"../etc/x": b""}, {"vercel/../../x": b""}, {"usr/bin/x": b""}, {"tmp": b"a directory is there"}])
def test_what_cannot_be_unpacked_is_refused_and_what_came_before_stays(box, files):
    assert code_of(box.write({"vercel/first": b"1", **files, "vercel/last": b"2"})) == (400, "bad_request")
    assert box.read("first").body == b"1" and box.read("last").status == 404


def test_a_body_that_is_no_archive_is_refused(box):
    gzipped = {"Content-Type": "application/gzip"}
    good = archive({"f": b"x" * 100000}, tarfile.USTAR_FORMAT)
    for body in (b"", b"plain", gzip.compress(b"no tar" * 200), good[:len(good) // 2]):
        assert code_of(box.call("POST", "/fs/write", body, gzipped)) == (400, "bad_request")
    assert code_of(box.call("POST", "/fs/write", good)) == (400, "bad_request"), "of another type"


def test_a_write_can_be_too_big(box):
    box.server.config(max_write_bytes=1000)
    assert code_of(box.write({"vercel/f": os.urandom(2000)})) == (413, "too_large")
    assert box.write({"vercel/f": b"small"}).status == 200


def test_a_file_is_read_as_it_is(box):
    data = os.urandom(300000)
    box.write({"tmp/f": data})
    for answer in (box.read("/tmp/f"), box.read("f", cwd="/tmp"), box.read("../tmp/f")):
        assert answer.status == 200 and answer.body == data
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["Transfer-Encoding"] == "chunked"
        assert "filename" in answer.headers["Content-Disposition"]
    box.server.config(read_length=True)
    assert box.read("/tmp/f").headers["Content-Length"] == "300000"


def test_what_cannot_be_read_says_why(box):
    assert code_of(box.read("/none")) == code_of(box.read("/etc/passwd/x")) == (404, "not_found")
    assert code_of(box.read("/tmp")) == code_of(box.call("POST", "/fs/read", {})) == (400, "bad_request")


def test_directories_are_made_with_their_parents_or_not(box):
    def mkdir(path, **fields):
        return box.call("POST", "/fs/mkdir", {"path": path, **fields})
    assert (mkdir("a/b/c").status, mkdir("a/b/c").status) == (200, 200)
    assert mkdir("x/y", recursive=False).status == 400
    box.server.config(mkdir_recursive=False)
    assert mkdir("p/q").status == 400 and mkdir("a").status == 400 and mkdir("p").status == 200
    assert mkdir("q", cwd="/vercel/p").json == {}
    assert box.run("ls -d a/b/c p/q; ls x")[1] == "a/b/c\np/q\n"
