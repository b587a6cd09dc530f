# SPDX-License-Identifier: ISC
"""core/scripts/file.sh: a write in a private file, in one part or several, and moved into its place."""

import base64
import pathlib
import stat

import shells


def file(shell, directory, *arguments):
    status, stdout, _ = shells.run(shell, "file", arguments, directory)
    assert status == 0
    return stdout.decode().rstrip("\n")


def prepare(shell, directory, path):
    word, name = file(shell, directory, "prepare", path).split(" ")
    assert word == "ok"
    return pathlib.Path(base64.b64decode(name).decode())


def test_parts_are_added_in_order_and_leave_nothing_behind(shell, tmp_path):
    target = tmp_path / "odd name\n"
    target.write_text("before")
    temp = prepare(shell, tmp_path, target)
    assert temp.parent == tmp_path and stat.S_IMODE(temp.stat().st_mode) == 0o600
    temp.write_bytes(b"one\0")
    part = pathlib.Path(f"{temp}.part")
    for content in (b"two\n", b"\xffthree"):
        part.write_bytes(content)
        assert file(shell, tmp_path, "append", temp) == "ok"
        assert not part.exists()
    assert target.read_text() == "before"
    assert file(shell, tmp_path, "place", temp, target) == "ok"
    assert target.read_bytes() == b"one\0two\n\xffthree"
    assert not temp.exists()


def test_a_part_that_did_not_come_is_an_error(shell, tmp_path):
    temp = prepare(shell, tmp_path, tmp_path / "file")
    assert file(shell, tmp_path, "append", temp).startswith("UNAVAILABLE ")


def test_what_is_given_up_goes_with_its_part(shell, tmp_path):
    temp = prepare(shell, tmp_path, tmp_path / "file")
    part = pathlib.Path(f"{temp}.part")
    part.write_text("x")
    assert file(shell, tmp_path, "drop", temp) == "ok"
    assert not temp.exists() and not part.exists()
