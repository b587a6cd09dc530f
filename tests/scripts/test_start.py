# SPDX-License-Identifier: ISC
"""core/scripts/start.sh: what is missing is named, the root is made and found."""

import os
import pathlib
import shutil

import shells


def check(shell, directory, root, what="create", **environment):
    status, stdout, _ = shells.run(
        shell, "start", [root, what], directory, environment=environment
    )
    assert status == 0
    return dict(line.split(" ", 1) for line in stdout.decode().splitlines())


def test_the_root_is_made_and_its_symlinks_are_resolved(shell, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    found = check(shell, tmp_path, tmp_path / "link" / "new" / "root")
    assert found["root"] == str(tmp_path / "real" / "new" / "root")
    assert os.path.isdir(found["root"])


def test_a_root_that_is_not_to_be_made_is_reported(shell, tmp_path):
    found = check(shell, tmp_path, tmp_path / "none", "find")
    assert "none" in found["problem"] and "root" not in found
    assert not (tmp_path / "none").exists()


def test_a_root_that_is_a_file_is_reported(shell, tmp_path):
    (tmp_path / "file").write_text("")
    assert "not a directory" in check(shell, tmp_path, tmp_path / "file")["problem"]


def test_a_root_with_an_odd_name_is_found(shell, tmp_path):
    root = tmp_path / "-n two  words '$x'"
    assert check(shell, tmp_path, root)["root"] == str(root)


def test_the_login_shell_is_taken_from_the_environment_else_bash(shell, tmp_path):
    assert check(shell, tmp_path, tmp_path, SHELL="/bin/sh")["shell"] == "/bin/sh"
    assert check(shell, tmp_path, tmp_path, SHELL="/no/such")["shell"] == shutil.which("bash")


def test_commands_that_the_image_lacks_are_named(shell, tmp_path):
    """A PATH with all that is needed but tar, and a setsid that cannot wait (busybox has such a one)."""
    programs = tmp_path / "bin"
    programs.mkdir()
    needed = "base64 cat chmod cp cut head ln ls mkdir mktemp mv od readlink realpath rm rmdir sort"
    needed += " stat tail touch tr wc find true sh"
    for name in needed.split():
        (programs / name).symlink_to(pathlib.Path(shutil.which(name)).resolve())
    (programs / "setsid").write_text("#!/bin/sh\nexit 1\n")
    (programs / "setsid").chmod(0o755)
    missing = check(shell, tmp_path, tmp_path, PATH=str(programs))["missing"]
    if shell == "busybox":
        # Its own tar counts as little as its setsid: the shell finds both within itself.
        assert "setsid" in missing
    else:
        assert missing.split() == ["tar", "util-linux-setsid"]
