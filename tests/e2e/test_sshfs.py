# SPDX-License-Identifier: ISC
"""A workspace mounted with sshfs, and ordinary programs on the mount."""

import os
import subprocess

import pytest
from clients import TIMEOUT, environment, ssh_options
from files import files_gateway_fixture, fresh, no_leftovers, remote, run

gateway = files_gateway_fixture()


@pytest.fixture
def mount(gateway, tmp_path):
    fresh(gateway, "mnt")
    point = tmp_path / "mnt"
    point.mkdir()
    command = ["sshfs", "-F", ssh_options(gateway), "sandbox@gateway:mnt", point]
    done = run(gateway, [*command, "-o", f"idmap=user,uid={os.getuid()},gid={os.getgid()}"])
    assert done.returncode == 0, done.stderr
    yield point
    subprocess.run(["fusermount3", "-u", point], check=True, timeout=TIMEOUT)


def shell(gateway, script, cwd):
    done = subprocess.run(
        ["sh", "-ec", script],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT,
        env=environment(gateway, GIT_CONFIG_NOSYSTEM="1"),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.every_driver
@pytest.mark.core
def test_files_on_the_mount_behave(gateway, mount):
    output = shell(
        gateway,
        "echo one >a; echo two >>a; cat a; echo new >b; mv b a; cat a; ls; "
        "ln a hard; ln -s a soft; cat soft; chmod 600 a; stat -c %a a; "
        "truncate -s 2 a; wc -c <a; touch -d @1000000000 a; stat -c %Y a; rm hard soft; "
        "mkdir -p d/e; mv d D; rmdir D/e D; dd if=/dev/zero of=a bs=1 seek=9 count=1 conv=notrunc "
        "2>/dev/null; wc -c <a; : >empty; ls",
        mount,
    )
    expected = "one\ntwo\nnew\na\nnew\n600\n2\n1000000000\n10\na\nempty\n"
    assert output == expected
    assert remote(gateway, "ls mnt; wc -c <mnt/a") == "a\nempty\n10\n"
    no_leftovers(gateway)


def test_git_and_a_compiler_on_the_mount(gateway, mount, tmp_path):
    origin = tmp_path / "origin"
    identity = "-c user.name=T -c user.email=t@example.org"
    shell(
        gateway,
        f"git init -q {origin}; cd {origin}; for i in $(seq 1 60); do echo $i >f$i; done; "
        f"printf 'int main(void) {{ return 42; }}\\n' >m.c; git add .; git {identity} commit -qm one; "
        f"git checkout -qb two; echo changed >f1; git {identity} commit -qam two; git checkout -q -",
        tmp_path,
    )
    output = shell(
        gateway,
        f"git clone -q {origin} repo; cd repo; git checkout -q two; cat f1; git status --short; "
        "cc -o m m.c; ./m || echo $?; make -s m2 2>/dev/null || true; git checkout -q -; cat f1",
        mount,
    )
    assert output == "changed\n?? m\n42\n1\n" or output == "changed\n42\n1\n"
    no_leftovers(gateway)


def test_an_open_file_can_be_read_written_and_renamed(gateway, mount):
    del gateway
    path = mount / "rw"
    with open(path, "w+b") as file:
        file.write(b"a" * 100_000)
        file.seek(50)
        file.write(b"XYZ")
        file.flush()
        file.seek(49)
        assert file.read(5) == b"aXYZa"
        path.rename(mount / "moved")
        assert os.path.getsize(mount / "moved") == 100_000
        file.seek(0, 2)
        file.write(b"end")
    assert (mount / "moved").read_bytes()[-4:] == b"aend"
    assert not path.exists()
