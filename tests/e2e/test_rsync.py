# SPDX-License-Identifier: ISC
"""rsync and tar pipes in both directions."""

import filecmp
import os
import subprocess

import pytest
from clients import TIMEOUT, environment, ssh, ssh_command, ssh_options

DRIVERS = ("local", "e2b", "daytona", "vercel")


@pytest.fixture(name="tree")
def tree_fixture(tmp_path):
    """A tree with what is easily lost: modes, links, odd names, holes, an empty directory."""
    top = tmp_path / "tree"
    (top / "sub" / "empty").mkdir(parents=True)
    (top / "binary").write_bytes(bytes(range(256)) * 8192)
    (top / "script").write_text("#!/bin/sh\n")
    (top / "script").chmod(0o750)
    (top / "sub" / "a name with spaces, é and 'quotes'").write_text("odd\n")
    (top / "sub" / "link").symlink_to("../binary")
    for number in range(300):
        (top / "sub" / f"small{number}").write_bytes(os.urandom(number))
    return top


def rsync(gateway, *arguments):
    done = subprocess.run(
        ["rsync", "-e", f"ssh -F {ssh_options(gateway)}", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT,
        env=environment(gateway),
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")


def assert_same(left, right):
    def check(comparison):
        assert not comparison.left_only and not comparison.right_only
        _, different, unreadable = filecmp.cmpfiles(
            comparison.left, comparison.right, comparison.common_files, shallow=False
        )
        assert not different and not unreadable
        for part in comparison.subdirs.values():
            check(part)

    check(filecmp.dircmp(left, right, ignore=[]))
    for path in left.rglob("*"):
        other = right / path.relative_to(left)
        assert path.lstat().st_mode == other.lstat().st_mode
        if path.is_symlink():
            assert os.readlink(path) == os.readlink(other)


@pytest.mark.core
def test_rsync_there_and_back_keeps_all(gateway, tree, tmp_path):
    """clients.md 13 and 56: rsync hangs or loses what arrives early."""
    name = tmp_path.name
    rsync(gateway, "-a", f"{tree}/", f"sandbox@gateway:{name}/")
    rsync(gateway, "-a", f"sandbox@gateway:{name}/", f"{tmp_path}/back/")
    assert_same(tree, tmp_path / "back")


def test_rsync_with_delete_removes_what_is_gone(gateway, tree, tmp_path):
    name = tmp_path.name
    rsync(gateway, "-a", f"{tree}/", f"sandbox@gateway:{name}/")
    for number in range(0, 300, 3):
        (tree / "sub" / f"small{number}").unlink()
    (tree / "binary").write_bytes(b"changed")
    rsync(gateway, "-a", "--delete", f"{tree}/", f"sandbox@gateway:{name}/")
    rsync(gateway, "-a", "--delete", f"sandbox@gateway:{name}/", f"{tmp_path}/back/")
    assert_same(tree, tmp_path / "back")


def test_rsync_of_whole_files_into_a_fresh_sandbox(gateway, tree, tmp_path):
    """clients.md 13: data that arrived before the backend was ready was dropped."""
    rsync(gateway, "-avW", f"{tree}/", f"sandbox+{tmp_path.name[:40].replace('_', '-')}@gateway:tree/")


@pytest.mark.core
def test_tar_pipes_both_ways(gateway, tree, tmp_path):
    name = tmp_path.name
    packed = subprocess.run(["tar", "-C", tree, "-cf", "-", "."], check=True, capture_output=True)
    done = ssh(gateway, f"mkdir -p {name} && tar -C {name} -xpf -", stdin=packed.stdout)
    assert done.returncode == 0, done.stderr
    back = tmp_path / "back"
    back.mkdir()
    with subprocess.Popen(
        ssh_command(gateway, f"tar -C {name} -cf - ."),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment(gateway),
    ) as client:
        subprocess.run(["tar", "-C", back, "-xpf", "-"], stdin=client.stdout, check=True)
        assert client.wait(TIMEOUT) == 0
    assert_same(tree, back)
