# SPDX-License-Identifier: ISC
"""The rws subsystem over ssh: JSON-RPC, commands and jobs, files."""

import json
import os
import time

import pytest
from clients import asyncssh_connect, ssh
from gateway import make_key, processes_with, public_key, wait_until
from rws_client import Rws, RwsError, bytes_of, encoded


@pytest.fixture
def rws(gateway):
    with Rws(gateway) as client:
        client.sh("find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +")
        yield client


def code_of(client, method, **params):
    """The code of the error that a call ends with."""
    with pytest.raises(RwsError) as caught:
        client.call(method, **params)
    return caught.value.code


# The stream


@pytest.mark.core
def test_requests_on_stdin_are_answered_before_the_channel_ends(gateway):
    request = '{"jsonrpc":"2.0","id":1,"method":"exec","params":{"command":"sleep 0.3; echo done"}}\n'
    done = ssh(gateway, "-s", "rws", stdin=request.encode())
    assert done.returncode == 0
    # A sandbox that takes its time is told before.
    assert json.loads(done.stdout.splitlines()[-1])["result"]["stdout"] == "done\n"


@pytest.mark.core
def test_a_slow_request_does_not_hold_up_a_quick_one(rws):
    slow = rws.send("exec", command="sleep 30")
    assert rws.call("info")["login"] == "sandbox"
    rws.notify("$/cancelRequest", id=slow)
    with pytest.raises(RwsError) as caught:
        rws.wait(slow)
    assert caught.value.code == "ABORTED"


def test_other_channels_of_the_connection_work_beside_it(gateway):
    import asyncio

    async def run():
        async with asyncssh_connect(gateway) as connection:
            process = await connection.create_process(subsystem="rws", encoding=None)
            process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"info"}\n')
            assert b'"result"' in await process.stdout.readline()
            assert (await connection.run("echo beside")).stdout == "beside\n"
            process.stdin.write_eof()
            await process.wait()
            assert process.exit_status == 0

    asyncio.run(run())


def test_an_unknown_subsystem_is_refused(gateway):
    assert ssh(gateway, "-s", "nope").returncode != 0


def test_a_forced_command_takes_the_place_of_the_subsystem(make_gateway, tmp_path):
    """As sshd(8) has it of command="..." in a key's line."""
    forced = make_key(tmp_path / "forced_key")
    line = f'command="echo forced" {public_key(forced)}'
    gateway = make_gateway(logins={"sandbox": {"key": line}})
    done = ssh(gateway, "-s", "rws", key=forced, stdin=b"")
    assert (done.returncode, done.stdout) == (0, b"forced\n")
    assert ssh(gateway, "true", key=forced).stdout == b"forced\n"


def test_what_a_client_does_not_read_does_not_fill_memory(gateway):
    with Rws(gateway) as client:
        client.call("info")
        client.send("exec", command="head -c 300000000 /dev/zero", stream=True, max_stream_bytes=0)
        (worker,) = gateway.pids("worker")
        time.sleep(2)  # for what would grow to grow
        with open(f"/proc/{worker}/status", encoding="ascii") as status:
            (line,) = [text for text in status if text.startswith("VmRSS")]
        assert int(line.split()[1]) < 48 * 1024


# Commands: the seed's rules


@pytest.mark.core
def test_exec_gives_exit_code_and_both_streams(rws):
    result = rws.call("exec", command="echo out; echo err >&2; exit 3")
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (3, "out\n", "err\n")
    assert result["truncated"] is False


@pytest.mark.core
def test_exec_of_a_list_of_words_goes_through_no_shell(rws):
    words = ["printf", "%s|", "a b", "$HOME", "*", ""]
    assert rws.call("exec", argv=words)["stdout"] == "a b|$HOME|*||"


def test_stdin_is_byte_exact_and_ends(rws):
    data = bytes(range(256)) * 1000
    result = rws.call("exec", command="cat", stdin_base64=encoded(data))
    assert bytes_of(result, "stdout") == data
    assert rws.call("exec", command="cat")["stdout"] == ""


def test_stdin_can_be_streamed(rws):
    number = rws.send("exec", command="while read line; do echo got $line; done; echo end",
                      stdin_open=True, stream=True)
    rws.call("input", request=number, data="one\n")
    wait_until(lambda: receive_some(rws) and b"got one\n" in rws.output(number))
    rws.call("input", request=number, data="two\n", end=True)
    assert rws.wait(number)["stdout"] == "got one\ngot two\nend\n"
    assert rws.output(number) == b"got one\ngot two\nend\n"


def receive_some(client):
    """Takes one notification, as there must be one."""
    client.notifications.append(client.receive())
    return True


def test_cwd_is_below_the_root(rws):
    rws.sh("mkdir -p a/b")
    root = rws.call("info")["root"]
    assert rws.call("exec", command="pwd", cwd="a/b")["stdout"] == f"{root}/a/b\n"
    assert rws.call("exec", command="pwd")["stdout"] == f"{root}\n"


def test_env_of_a_request_reaches_its_command(rws):
    result = rws.call("exec", command='echo "$A:$RWS_LOGIN"', env={"A": "b c"})
    assert result["stdout"] == "b c:sandbox\n"


@pytest.mark.core
def test_timeout_ends_the_group_with_124(rws):
    result = rws.call("exec", command="sleep 4711 & sleep 4711", timeout=300)
    assert result["exit_code"] == 124
    assert result["timed_out"] is True
    assert not processes_with("sleep 4711")


def test_a_command_that_ignores_term_is_killed_after_kill_grace(rws):
    result = rws.call("exec", command="trap '' TERM; while :; do sleep 0.1; done", timeout=200,
                      kill_grace=300)
    assert result["exit_code"] == 124
    assert result["duration"] < 10000


def test_a_command_that_exits_124_by_itself_was_not_timed_out(rws):
    result = rws.call("exec", command="exit 124")
    assert result["exit_code"] == 124
    assert "timed_out" not in result


@pytest.mark.every_driver
@pytest.mark.core
def test_abort_ends_the_command_and_is_told_as_aborted(rws):
    number = rws.send("exec", command="echo up; sleep 4712", stream=True)
    wait_until(lambda: receive_some(rws) and rws.output(number) == b"up\n")
    rws.notify("$/cancelRequest", id=number)
    with pytest.raises(RwsError) as caught:
        rws.wait(number)
    assert caught.value.code == "ABORTED"
    wait_until(lambda: not processes_with("sleep 4712"))


def test_output_over_max_output_bytes_is_truncated_and_the_command_ends_by_itself(rws):
    result = rws.call("exec", command="head -c 3000000 /dev/zero | tr '\\0' x; exit 5",
                      max_output_bytes=1000)
    assert result["stdout"] == "x" * 1000
    assert result["truncated"] is True
    assert result["exit_code"] == 5


def test_truncation_does_not_cut_a_character(rws):
    result = rws.call("exec", command="printf 'ééééé'", max_output_bytes=5)
    assert result["stdout"] == "éé"


@pytest.mark.core
def test_output_over_max_stream_bytes_stops_the_command_with_143_and_a_note(rws):
    result = rws.call("exec", command="yes", max_stream_bytes=1000000, max_output_bytes=10)
    assert result["exit_code"] == 143
    assert result["truncated"] is True
    assert "output" in result["note"]


def test_both_streams_count_for_max_stream_bytes(rws):
    result = rws.call("exec", command="yes | head -c 600000 & yes | head -c 600000 >&2; wait",
                      max_stream_bytes=1000000, max_output_bytes=10)
    assert result["exit_code"] == 143


def test_a_death_by_signal_is_told(rws):
    result = rws.call("exec", command="kill -USR1 $$")
    assert (result["exit_code"], result["signal"]) == (138, "USR1")


def test_streamed_output_is_complete_and_the_result_still_has_it(rws):
    number = rws.send("exec", command="head -c 500000 /dev/urandom | tee /dev/stderr", stream=True)
    result = rws.wait(number)
    assert rws.output(number) == bytes_of(result, "stdout")
    assert rws.output(number, "stderr") == bytes_of(result, "stderr")
    assert len(rws.output(number)) == 500000


@pytest.mark.every_driver
@pytest.mark.core
def test_background_kill_ends_what_a_command_left(rws):
    assert rws.call("exec", command="sleep 4713 & echo")["exit_code"] == 0
    assert not processes_with("sleep 4713")
    rws.call("write", path="a", content="")
    rws.call("remove", path="a")


@pytest.mark.every_driver
@pytest.mark.core
def test_background_keep_leaves_it_and_the_workspace_is_busy_until_it_ends(rws):
    rws.call("write", path="a", content="")
    result = rws.call("exec", command="sleep 4714 & echo", background="keep")
    assert processes_with("sleep 4714")
    assert code_of(rws, "remove", path="a") == "BUSY"
    assert code_of(rws, "rename", path="a", to="b") == "BUSY"
    assert [job["state"] for job in rws.call("jobs")["jobs"]] == ["left"]
    rws.call("signal", job=result["job"], signal="KILL")
    wait_until(lambda: not processes_with("sleep 4714"))
    wait_until(lambda: not rws.call("info")["busy"])
    rws.call("rename", path="a", to="b")
    rws.call("remove", path="b")


def test_a_command_of_another_connection_makes_the_workspace_busy(gateway, rws):
    rws.call("write", path="a", content="")
    from clients import ssh_start

    with ssh_start(gateway, "echo up; sleep 4715") as other:
        assert other.stdout.readline() == b"up\n"
        assert code_of(rws, "remove", path="a") == "BUSY"
        other.kill()
        other.communicate()
    wait_until(lambda: not rws.call("info")["busy"])
    rws.call("remove", path="a")


@pytest.mark.every_driver
def test_a_kept_commands_later_output_is_in_its_logs(rws):
    job = rws.call("exec", command="(sleep 0.5; echo later; sleep 4716) & echo now",
                   background="keep")["job"]
    logs = wait_until(lambda: matching(rws.call("logs", job=job), "later"))
    assert logs["stdout"] == "now\nlater\n"
    assert logs["state"] == "left"
    rws.call("signal", job=job, signal="KILL")
    wait_until(lambda: not rws.call("info")["busy"])


def matching(logs, text):
    return logs if text in logs["stdout"] else None


def test_a_detached_command_outlives_its_client(gateway):
    with Rws(gateway) as client:
        job = client.call("exec", command="echo up; sleep 4717; exit 9", detach=True)["job"]
    wait_until(lambda: processes_with("sleep 4717"))
    with Rws(gateway) as client:
        assert wait_until(lambda: client.call("logs", job=job)["stdout"] == "up\n")
        # The one that sleeps, not the shell that waits for it.
        for pid, line in processes_with("sleep 4717").items():
            if line == "sleep 4717":
                os.kill(pid, 9)
        entry = wait_until(lambda: ended(client, job))
        assert entry["exit_code"] == 9


def ended(client, number):
    for job in client.call("jobs")["jobs"]:
        if job["job"] == number and job["state"] == "ended":
            return job
    return None


def test_attach_follows_a_job_and_gives_it_input(gateway, rws):
    job = rws.call("exec", command="echo first; read x; echo got $x; exit 4", detach=True,
                   stdin_open=True)["job"]
    wait_until(lambda: rws.call("logs", job=job)["stdout"] == "first\n")
    with Rws(gateway) as other:
        number = other.send("attach", job=job)
        other.call("input", request=number, data="it\n")
        assert other.wait(number)["exit_code"] == 4
        assert other.output(number) == b"first\ngot it\n"


@pytest.mark.every_driver
@pytest.mark.core
def test_a_client_that_leaves_takes_its_command_along(gateway):
    with Rws(gateway) as client:
        number = client.send("exec", command="echo up; sleep 4718", stream=True)
        wait_until(lambda: receive_some(client) and client.output(number) == b"up\n")
    wait_until(lambda: not processes_with("sleep 4718"))


def test_signals_of_unknown_jobs_and_names_are_refused(rws):
    assert code_of(rws, "signal", job=999) == "NOT_FOUND"
    assert code_of(rws, "signal", job=999, signal="NOPE") == "INVALID"
    assert code_of(rws, "logs", job=999) == "NOT_FOUND"
    assert code_of(rws, "attach", job=999) == "NOT_FOUND"


# Files


@pytest.mark.every_driver
@pytest.mark.core
def test_a_file_is_written_and_read_byte_for_byte(rws):
    data = bytes(range(256)) * 100
    assert rws.call("write", path="a/b/c", content_base64=encoded(data))["size"] == len(data)
    assert bytes_of(rws.call("read", path="a/b/c"), "content") == data
    text = rws.call("write", path="t", content="one\ntwo\nthree\n") and rws.call(
        "read", path="t", first_line=2, max_lines=1
    )
    assert (text["content"], text["truncated"]) == ("two\n", True)


def test_names_that_are_not_utf8_travel_as_base64(rws):
    name = encoded(b"bad\xff")
    rws.call("write", path_base64=name, content="x")
    assert rws.call("read", path_base64=name)["path_base64"] == name
    assert {"path_base64": name}.items() <= rws.call("list")["entries"][0].items()


def test_edit_replaces_one_text_or_all(rws):
    rws.call("write", path="f", content="a b a", mode="0750")
    assert code_of(rws, "edit", path="f", old="a", new="c") == "INVALID"
    assert code_of(rws, "edit", path="f", old="zz", new="c") == "INVALID"
    assert rws.call("edit", path="f", old="a", new="c", all=True)["replaced"] == 2
    assert rws.call("edit", path="f", old="b", new="")["replaced"] == 1
    assert rws.call("read", path="f")["content"] == "c  c"
    assert rws.call("stat", path="f")["mode"] == "0750"


def test_paths_outside_the_root_are_refused(rws):
    rws.sh("ln -s /etc out; ln -s ../../etc/passwd up")
    for path in ("../x", "/etc/passwd", "out/passwd", "up", "a/../../x"):
        assert code_of(rws, "read", path=path) == "OUTSIDE_ROOT"
        assert code_of(rws, "write", path=path, content="x") == "OUTSIDE_ROOT"
    assert code_of(rws, "list", path="out") == "OUTSIDE_ROOT"
    assert code_of(rws, "search", path="out", pattern="root") == "OUTSIDE_ROOT"


@pytest.mark.every_driver
def test_errors_have_their_codes(rws):
    rws.call("mkdir", path="d/e")
    rws.call("write", path="f", content="")
    assert code_of(rws, "read", path="nope") == "NOT_FOUND"
    assert code_of(rws, "read", path="d") == "IS_DIRECTORY"
    assert code_of(rws, "list", path="f") == "NOT_DIRECTORY"
    assert code_of(rws, "remove", path="d") == "NOT_EMPTY"
    assert code_of(rws, "rename", path="f", to="d") == "EXISTS"
    assert code_of(rws, "write", path="f", content="", overwrite=False) == "EXISTS"
    assert code_of(rws, "write", path="big", content="x" * (11 << 20)) == "TOO_LARGE"
    assert code_of(rws, "write", path="f", content="", mode="999") == "INVALID"


def test_a_listing_is_sorted_bounded_and_hides_dot_files(rws):
    for path in ("b/2", "b/1", "a", ".hidden/x", "c"):
        rws.call("write", path=path, content="")
    names = lambda **params: [entry["path"] for entry in rws.call("list", **params)["entries"]]
    assert names() == ["a", "b", "c"]
    assert names(recursive=True) == ["a", "b", "b/1", "b/2", "c"]
    assert names(recursive=True, skip_dirs=["b"]) == ["a", "b", "c"]
    assert names(include_hidden=True)[0] == ".hidden"
    assert names(glob="b/*") == ["b/1", "b/2"]
    assert names(limit=2) == ["a", "b"]
    assert rws.call("list", limit=2)["truncated"] is True
    assert rws.call("list", limit=3)["truncated"] is False


def test_remove_can_go_to_the_trash(rws):
    rws.call("write", path="d/f", content="kept")
    place = rws.call("remove", path="d", recursive=True, trash=True)["trash"]
    assert place.startswith(".rws/trash/")
    assert rws.call("read", path=f"{place}/f")["content"] == "kept"


def test_search_finds_lines(rws):
    rws.call("write", path="a/one.c", content="int main(void)\nfoo\n")
    rws.call("write", path="two.txt", content="Main\nmain")
    rws.call("write", path=".git/three.c", content="main")
    rws.call("write", path="bin.c", content="main\0")
    found = lambda **params: [
        (match["path"], match["line"]) for match in rws.call("search", **params)["matches"]
    ]
    assert found(pattern="main") == [("a/one.c", 1), ("two.txt", 2)]
    assert found(pattern="main", ignore_case=True, glob="*.txt") == [("two.txt", 1), ("two.txt", 2)]
    assert found(pattern="m.*n$", regex=True) == [("two.txt", 2)]
    assert found(pattern="main", exclude=["a/**"]) == [("two.txt", 2)]
    assert found(pattern="nothing like this") == []
    assert rws.call("search", pattern="main", limit=1)["truncated"] is True
    assert code_of(rws, "search", pattern="(", regex=True) == "INVALID"
    assert found(pattern="-e") == []


# The sandbox


def test_a_stopped_sandbox_keeps_its_files_and_starts_again(make_gateway):
    gateway = make_gateway()
    with Rws(gateway) as client:
        client.call("write", path="f", content="kept")
        client.send("exec", command="sleep 4719")
        wait_until(lambda: processes_with("sleep 4719"))
        assert client.call("sandbox.stop")["state"] == "stopped"
        assert not processes_with("sleep 4719")
        assert client.call("read", path="f")["content"] == "kept"
        before = client.call("info")["sandbox_id"]
        assert client.call("sandbox.destroy")["state"] == "destroyed"
        assert client.call("sandbox.start")["sandbox_id"] != before
        assert code_of(client, "read", path="f") == "NOT_FOUND"


def test_never_delete_refuses_to_destroy(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"never_delete": "on"}})
    with Rws(gateway) as client:
        assert code_of(client, "sandbox.destroy") == "DENIED"
        assert client.call("sandbox.extend")["state"] == "running"


def test_a_command_that_comes_while_the_sandbox_stops_runs_in_the_next(make_gateway):
    gateway = make_gateway()
    with Rws(gateway) as client:
        client.call("write", path="f", content="kept")
        client.send("exec", command="trap '' TERM; sleep 4720")
        wait_until(lambda: processes_with("sleep 4720"))
        stop = client.send("sandbox.stop")
        number = client.send("exec", command="cat f")
        assert client.wait(stop)["state"] == "stopped"
        assert client.wait(number)["stdout"] == "kept"
