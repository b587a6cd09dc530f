# SPDX-License-Identifier: ISC
"""The SFTP server, on both backends, with OpenSSH's sftp and paramiko."""

import errno
import os
import random
import shutil
import signal
import stat
import struct

import pytest
from clients import ssh, ssh_options
from files import (
    describe,
    error_number,
    files_gateway_fixture,
    fresh,
    make_files_gateway,
    make_tree,
    no_leftovers,
    open_sftp,
    remote,
    run,
    sftp,
)
from gateway import Gateway, public_key, wait_until

gateway = files_gateway_fixture()


@pytest.mark.every_driver
@pytest.mark.core
def test_exit_status_is_0_after_a_clean_end(gateway):
    done = sftp(gateway, "pwd\n")
    assert (done.returncode, gateway.provider.home in done.stdout.decode()) == (0, True)
    # The subsystem's own, which scp looks at (gravitational/teleport#23626).
    command = ["ssh", "-F", ssh_options(gateway), "-s", "sandbox@gateway", "sftp"]
    done = run(gateway, command, stdin=struct.pack(">IBI", 5, 1, 3))
    assert done.returncode == 0
    assert done.stdout[4:9] == b"\x02\0\0\0\x03"
    assert done.stderr == b""


@pytest.mark.every_driver
@pytest.mark.core
def test_a_tree_goes_there_and_back(gateway, tmp_path):
    make_tree(tmp_path / "tree", links=False)
    fresh(gateway, "put")
    done = sftp(gateway, "put -rp tree put/\nget -rp put/tree back\n", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert describe(tmp_path / "back") == describe(tmp_path / "tree")
    assert (tmp_path / "back/run").stat().st_mtime == 1_100_000_000
    no_leftovers(gateway)


def test_reget_and_reput_go_on_where_they_stopped(gateway, tmp_path):
    whole = os.urandom(700_000)
    (tmp_path / "whole").write_bytes(whole)
    (tmp_path / "part").write_bytes(whole[:300_000])
    fresh(gateway, "resume")
    batch = (
        "put part resume/up\nreput whole resume/up\nget resume/up got\n"
        "put whole resume/down\nreget resume/down part\n"
    )
    done = sftp(gateway, batch, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "got").read_bytes() == whole
    assert (tmp_path / "part").read_bytes() == whole


def test_commands_of_openssh(gateway, tmp_path):
    (tmp_path / "f").write_text("content")
    fresh(gateway, "c")
    batch = (
        "cd c\nput f\nrename f g\nchmod 600 g\nln g hard\nln -s g soft\nmkdir d\nls -la\ndf\n"
        "cp g copied\nrm hard\nrm soft\nrmdir d\nls -1\n"
    )
    done = sftp(gateway, batch, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "-rw-------" in done.stdout.decode()
    assert remote(gateway, "ls c") == "copied\ng\n"


def test_failures_have_the_right_status_and_a_text(gateway):
    fresh(gateway, "e")
    remote(gateway, "mkdir e/full")
    with open_sftp(gateway) as session:
        assert error_number(lambda: session.stat("e/none")) == errno.ENOENT
        assert error_number(lambda: session.stat("/etc/passwd")) == errno.EACCES
        assert error_number(lambda: session.open("/etc/passwd")) == errno.EACCES
        assert "EXISTS" in error_number(lambda: session.mkdir("e/full"))
        session.open("e/full/f", "w").close()
        assert "NOT_EMPTY" in error_number(lambda: session.rmdir("e/full"))
        assert "IS_DIRECTORY" in error_number(lambda: session.remove("e/full"))
        assert "IS_DIRECTORY" in error_number(lambda: session.open("e/full", "w").close())
        session.open("e/a", "w").close()
        session.open("e/b", "w").close()
        assert "EXISTS" in error_number(lambda: session.rename("e/a", "e/b"))
        session.posix_rename("e/a", "e/b")
        assert "EXISTS" in error_number(lambda: session.open("e/b", "wx"))
        # One failure harms nothing that comes after it.
        assert session.listdir("e/full") == ["f"]


def test_what_is_written_appears_at_close_in_one_step(gateway):
    fresh(gateway, "w")
    with open_sftp(gateway) as session:
        session.open("w/f", "w").write("old")
        file = session.open("w/f", "w")
        file.write(b"new" * 1000)
        file.flush()
        assert remote(gateway, "cat w/f; ls w") == "oldf\n"
        # The client itself finds what it has open.
        assert session.stat("w/f").st_size == 3000
        new = session.open("w/new", "w")
        new.write("x")
        new.flush()
        assert sorted(session.listdir("w")) == ["f", "new"]
        assert remote(gateway, "ls w") == "f\n"
        file.close()
        new.close()
    assert remote(gateway, "wc -c <w/f; ls -A w") == "3000\nf\nnew\n"


def test_random_reads_and_writes(gateway):
    fresh(gateway, "r")
    expected = bytearray(os.urandom(300_000))
    generator = random.Random(7)
    with open_sftp(gateway) as session:
        with session.open("r/f", "w") as file:
            file.write(bytes(expected))
        with session.open("r/f", "r+") as file:
            for _ in range(50):
                at, piece = generator.randrange(320_000), os.urandom(generator.randrange(1, 5000))
                file.seek(at)
                file.write(piece)
                expected.extend(b"\0" * max(0, at - len(expected)))
                expected[at : at + len(piece)] = piece
            file.flush()
            file.seek(1000)
            assert file.read(100) == bytes(expected[1000:1100])
            file.truncate(310_000)
        del expected[310_000:]
        expected.extend(b"\0" * (310_000 - len(expected)))
        with session.open("r/f", "a") as file:
            file.write(b"end")
        expected += b"end"
        with session.open("r/f") as file:
            assert file.read() == bytes(expected)
            file.seek(-3, 2)
            assert file.read() == b"end"
            file.seek(400_000)
            assert file.read() == b""


def test_renaming_and_removing_what_is_open(gateway):
    """As sshfs does, whose CLOSE comes after the program has gone on."""
    fresh(gateway, "o")
    with open_sftp(gateway) as session:
        file = session.open("o/a", "w")
        file.write("moved")
        file.flush()
        session.posix_rename("o/a", "o/b")
        file.close()
        gone = session.open("o/gone", "w")
        gone.write("x")
        gone.flush()
        session.remove("o/gone")
        gone.close()
        under = session.open("o/under", "w")
        under.write("old")
        under.flush()
        session.posix_rename("o/b", "o/under")
        under.close()
        inside = session.open("o/inside", "w")
        inside.write("kept")
        inside.flush()
        session.rename("o", "o2")
        inside.close()
    assert remote(gateway, "cd o2 && ls -A && cat under inside") == "inside\nunder\nmovedkept"
    remote(gateway, "rm -rf o2")


def test_a_file_over_the_limit_is_refused_early(gateways, backend, tmp_path):
    limited = make_files_gateway(backend, max_file_bytes="1MiB")
    gateways.append(limited)
    limited.start()
    (tmp_path / "big").write_bytes(b"x" * 1_200_000)
    with open_sftp(limited) as session:
        file = session.open("big", "w")
        file.seek(1 << 20)
        failure = error_number(lambda: (file.write("x"), file.flush()))
        assert "TOO_LARGE" in failure and "over max_file_bytes (1 MiB)" in failure
        file.close()
        assert "big" not in session.listdir()
    assert sftp(limited, "put big\n", cwd=tmp_path).returncode != 0
    with open_sftp(limited) as session:
        remote(limited, "truncate -s 1048577 sparse")
        assert "TOO_LARGE" in error_number(lambda: session.open("sparse"))


def test_attributes_are_set_and_told(gateway):
    fresh(gateway, "s")
    with open_sftp(gateway) as session:
        session.open("s/f", "w").close()
        session.truncate("s/f", 77)
        session.chmod("s/f", 0o4711)
        session.utime("s/f", (100, 200))
        session.symlink("f", "s/l")
        told = session.lstat("s/f")
        assert (stat.S_IMODE(told.st_mode), told.st_size, told.st_mtime) == (0o4711, 77, 200)
        assert stat.S_ISLNK(session.lstat("s/l").st_mode)
        assert stat.S_ISREG(session.stat("s/l").st_mode)
        assert session.readlink("s/l") == "f"
        assert session.normalize("s/../s/./l") == f"{gateway.provider.home}/s/f"
        # In a user namespace the kernel calls an owner that does not exist there invalid.
        error_number(lambda: session.chown("s/f", 4711, 4711))
        session.chown("s/f", told.st_uid, told.st_gid)


def test_names_of_any_bytes(gateway):
    names = [b"\xff\xfe", b"new\nline", b"end\n", b" ", b"-rf", b"a'b\"c", b"n" * 255, b"\x01", b"*"]
    fresh(gateway, "n")
    with open_sftp(gateway) as session:
        for name in names:
            with session.open(b"n/" + name, "w") as file:
                file.write(name)
        for name in names:
            assert session.open(b"n/" + name).read() == name
    listed = remote(gateway, "cd n && find . -type f -printf '%f\\0'")
    found = listed.encode(errors="surrogateescape").split(b"\0")[:-1]
    assert sorted(found) == sorted(names)


def test_a_big_directory_is_listed_whole(gateway):
    fresh(gateway, "many")
    remote(gateway, "cd many && seq 1 3000 | xargs touch")
    with open_sftp(gateway) as session:
        assert sorted(map(int, session.listdir("many"))) == list(range(1, 3001))
    done = sftp(gateway, "ls -1 many\n")
    assert len(done.stdout.splitlines()) == 3001


def test_hashes_are_those_of_the_bytes(gateway):
    fresh(gateway, "h")
    with open_sftp(gateway) as session:
        with session.open("h/f", "w") as file:
            file.write("hello")
        with session.open("h/f") as file:
            assert file.check("md5").hex() == "5d41402abc4b2a76b9719d911017c592"


@pytest.mark.core
def test_malformed_packets_end_the_channel_or_get_a_status(gateway):
    def talk(*packets):
        command = ["ssh", "-F", ssh_options(gateway), "-s", "sandbox@gateway", "sftp"]
        return run(gateway, command, stdin=b"".join(packets))

    init = struct.pack(">IBI", 5, 1, 3)
    for bad in [b"\xff\xff\xff\xff", b"\0\0\0\0", struct.pack(">I", 257 * 1024 + 1)]:
        done = talk(init, bad)
        assert (done.returncode, b"INVALID" in done.stderr) == (255, True)
    unknown = struct.pack(">IBI", 5, 99, 7)
    short = struct.pack(">IBI", 5, 3, 8)
    done = talk(init, unknown, short)
    assert done.returncode == 0
    assert struct.pack(">BII", 101, 7, 8) in done.stdout
    assert struct.pack(">BII", 101, 8, 5) in done.stdout
    assert talk(struct.pack(">IBI", 5, 3, 8)).returncode == 255


def test_every_operation_is_in_the_log(gateway, tmp_path):
    """teleport#65205, warpgate#2354."""
    (tmp_path / "f").write_bytes(b"x" * 1234)
    fresh(gateway, "l")
    start = gateway.log_length()
    sftp(gateway, "put f l/f\nrename l/f l/g\nget l/g g\nrm l/g\n-rm l/none\n", cwd=tmp_path)
    for pattern in [
        r"sftp: open for writing .*l/f",
        r"sftp: close .*l/f, read 0, written 1234",
        r"sftp: rename .*l/f .*l/g",
        r"sftp: close .*l/g, read 1234, written 0",
        r"sftp: remove .*l/g$",
        r"sftp: ended",
    ]:
        gateway.wait_log(pattern, start=start)


def test_sftp_exec_and_scp_see_one_file_system(gateway):
    """superfly/flyctl#5080"""
    remote(gateway, "echo by exec >one")
    with open_sftp(gateway) as session:
        assert session.open("one").read() == b"by exec\n"
    done = ssh(gateway, "cat $HOME/one; rm one")
    assert done.stdout == b"by exec\n"


def tree_of(path):
    return {
        name: (value if value[0] != "file" else ("file", value[2]))
        for name, value in describe(path).items()
    }


def test_random_operations_end_in_the_tree_that_a_local_directory_has(gateway, tmp_path):
    """The same operations through SFTP and on a directory of this machine."""
    generator = random.Random(20)
    names = ["a", "b", "c", "d/a", "d/b", "d/e/a", "d", "d/e", "x y", "l"]
    local = tmp_path / "local"
    local.mkdir()
    fresh(gateway, "p")

    def both(over_there, here):
        outcomes = []
        for call in (over_there, here):
            try:
                call()
                outcomes.append(True)
            except OSError:
                outcomes.append(False)
        assert outcomes[0] == outcomes[1]

    def write(path, data, mode):
        with open(path, mode) as file:
            file.write(data)

    def put(session, path, data, mode):
        with session.open(path, mode) as file:
            file.write(data)

    def rename(old, new):
        if new.exists() or new.is_symlink():
            raise FileExistsError
        old.rename(new)

    with open_sftp(gateway) as session:
        session.chdir("p")
        for _ in range(250):
            name, other = generator.choice(names), generator.choice(names)
            data = os.urandom(generator.randrange(3000))
            verb = generator.choice("write append mkdir remove rmdir rename replace symlink chmod".split())
            if verb == "write":
                both(lambda: put(session, name, data, "wb"), lambda: write(local / name, data, "wb"))
            elif verb == "append" and (local / name).is_file():
                both(lambda: put(session, name, data, "ab"), lambda: write(local / name, data, "ab"))
            elif verb == "mkdir":
                both(lambda: session.mkdir(name), lambda: (local / name).mkdir())
            elif verb == "remove":
                both(lambda: session.remove(name), lambda: (local / name).unlink())
            elif verb == "rmdir":
                both(lambda: session.rmdir(name), lambda: (local / name).rmdir())
            elif verb == "rename" and name != other:
                both(lambda: session.rename(name, other), lambda: rename(local / name, local / other))
            elif verb == "replace" and name != other:
                both(
                    lambda: session.posix_rename(name, other),
                    lambda: (local / name).rename(local / other),
                )
            elif verb == "symlink":
                both(lambda: session.symlink("a", name), lambda: (local / name).symlink_to("a"))
            elif verb == "chmod" and (local / name).is_file():
                both(lambda: session.chmod(name, 0o640), lambda: (local / name).chmod(0o640))
    remote(gateway, "tar -C p -cf p.tar .")
    with open_sftp(gateway) as session:
        session.get("p.tar", str(tmp_path / "p.tar"))
    shutil.unpack_archive(tmp_path / "p.tar", tmp_path / "there")
    assert tree_of(tmp_path / "there") == tree_of(local)
    no_leftovers(gateway)


@pytest.mark.every_driver
@pytest.mark.parametrize("victim", ["client", "session", "worker"])
def test_a_killed_write_leaves_the_old_file(gateways, backend, victim, tmp_path):
    gateway = make_files_gateway(backend, leftover_age="1s")
    gateways.append(gateway)
    gateway.start()
    # A directory of its own: in some homes the provider keeps things too.
    remote(gateway, "mkdir d; echo old >d/f")
    client = open_sftp(gateway)
    session = client.__enter__()
    file = session.open("d/f", "w")
    file.write(b"torn" * 100_000)
    file.flush()
    new = session.open("d/new", "w")
    new.write(b"torn")
    new.flush()
    if victim == "client":
        session.get_channel().get_transport().sock.close()
    else:
        for pid in gateway.pids(victim, "sandbox"):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not gateway.pids("session", "sandbox"), what="the session's end")
    assert remote(gateway, "cat d/f; ls -A d") == "old\nf\n"
    with open_sftp(gateway) as again:
        again.open("d/f", "w").write("new")
        wait_until(
            # What goes while it looks is no failure.
            lambda: remote(gateway, "find d /tmp/.rws-* -type f ! -path '*/agent-*' 2>/dev/null; :") == "d/f\n",
            what="the sweep",
        )
    assert remote(gateway, "cat d/f") == "new"


def test_forced_commands_and_internal_sftp(gateways):
    gateway = Gateway()
    gateway.logins = {
        "sandbox": {"key": f'command="internal-sftp" {public_key(gateway.key)}'},
        "forced": {"key": f'command="echo forced" {public_key(gateway.key)}'},
    }
    gateways.append(gateway)
    gateway.start()
    with open_sftp(gateway) as session:
        session.open("f", "w").close()
        assert session.listdir() == ["f"]
    command = ["ssh", "-F", ssh_options(gateway), "sandbox@gateway", "echo hi"]
    done = run(gateway, command, stdin=struct.pack(">IBI", 5, 1, 3))
    assert done.stdout[4:9] == b"\x02\0\0\0\x03"
    done = run(gateway, ["ssh", "-F", ssh_options(gateway), "-s", "forced@gateway", "sftp"])
    assert done.returncode != 0 and b"\x02\0\0\0\x03" not in done.stdout
    done = run(gateway, ["ssh", "-F", ssh_options(gateway), "forced@gateway", "scp -f x"])
    assert done.stdout == b"forced\n"
