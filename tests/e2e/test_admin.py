# SPDX-License-Identifier: ISC
"""rws admin: what the operator sees of a running gateway, and what changes when told to."""

import array
import asyncio
import json
import os
import signal
import socket
import struct
import subprocess

import pytest
from clients import TIMEOUT, asyncssh_connect, ssh, ssh_start
from gateway import BUILD, Gateway, children, wait_until
from rws_client import Rws

VERSION = 1
REQUEST, END = 100, 106
LISTS = ("logins", "workspaces", "sessions", "channels")
CLIENTS_MAX = 16


def socket_path(gateway):
    return gateway.directory / "state" / "admin.sock"


def admin(gateway, *arguments, prefix=()):
    """Runs rws admin to its end."""
    command = [*prefix, BUILD / "rws", "admin", "-s", socket_path(gateway), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)


def answer(gateway, *arguments):
    """What it says to programs."""
    done = admin(gateway, "--json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def rows(gateway, name):
    return answer(gateway, name)[name]


def refusal(gateway, *arguments):
    """The code and the text of a failure."""
    done = admin(gateway, *arguments)
    assert done.returncode == 1 and done.stdout == ""
    program, code, text = done.stderr.strip().split(": ", 2)
    assert program == "rws" and "\n" not in text
    return code, text


STARTED = []


def begin(gateway, *arguments, **more):
    """ssh that ends with the test."""
    STARTED.append(ssh_start(gateway, *arguments, **more))
    return STARTED[-1]


def start(gateway, command, **more):
    """As begin, with a command that has said that it runs."""
    process = begin(gateway, f"echo up; {command}", **more)
    assert process.stdout.readline() == b"up\n"
    return process


def end(*processes):
    for process in processes:
        process.kill()
        process.wait(TIMEOUT)


def wait_empty(gateway):
    wait_until(lambda: not rows(gateway, "sessions"), what="the end of all sessions")


@pytest.fixture(autouse=True)
def quiet(gateway):
    """The gateway of the file has no sessions when a test begins, and keeps none of it."""
    wait_empty(gateway)
    yield
    end(*STARTED)
    STARTED.clear()


# What is seen


@pytest.mark.core
def test_status_says_how_the_gateway_is(gateway):
    start(gateway, "cat")
    status = answer(gateway, "status")
    assert status["pid"] == gateway.process.pid
    assert status["configuration"] == str(gateway.configuration)
    assert (status["sessions"], status["logging_in"], status["draining"]) == (1, 0, False)
    assert status["workers"] == len(gateway.pids("worker"))
    lines = admin(gateway, "status").stdout.splitlines()
    assert f"pid: {gateway.process.pid}" in lines and "draining: no" in lines


def test_logins_are_listed_with_their_policy_in_the_order_of_the_file(make_gateway):
    gateway = make_gateway(logins={"b": {"instances": "off"}, "a": {"instances": "attach"}, "c": {}})
    for login in ("c", "c+x", "c+x", "a"):
        start(gateway, "cat", login=login)
    assert rows(gateway, "logins") == [
        {"login": "b", "driver": "local", "instances": "off", "workspaces": 0, "sessions": 0},
        {"login": "a", "driver": "local", "instances": "attach", "workspaces": 1, "sessions": 1},
        {"login": "c", "driver": "local", "instances": "on", "workspaces": 2, "sessions": 3},
    ]


@pytest.mark.core
def test_workspaces_are_listed_with_their_sandbox_and_what_runs(gateway):
    client = begin(gateway, 'echo "$RWS_SANDBOX_ID"; cat')
    sandbox = client.stdout.readline().decode().strip()
    other = start(gateway, "cat", login="sandbox+seen")
    first, second = rows(gateway, "workspaces")
    assert (first["workspace"], first["login"], first["driver"]) == ("sandbox", "sandbox", "local")
    assert (first["state"], first["sandbox_id"], first["commands"]) == ("running", sandbox, 1)
    assert first["worker"] in gateway.pids("worker", "worker sandbox")
    assert "instance" not in first
    assert (second["workspace"], second["instance"], second["sessions"]) == ("sandbox+seen", "seen", 1)
    assert 0 < first["since"] <= first["last_used"]
    end(client, other)
    wait_until(lambda: {(row["sessions"], row["commands"]) for row in rows(gateway, "workspaces")} == {(0, 0)})
    assert answer(gateway, "destroy", "sandbox+seen")["state"] == "destroyed"


@pytest.mark.core
def test_sessions_are_listed_with_key_and_address(gateway):
    client = start(gateway, "cat")
    (session,) = rows(gateway, "sessions")
    known = subprocess.run(["ssh-keygen", "-lf", gateway.key], capture_output=True, text=True, check=True)
    assert session["key"] == known.stdout.split()[1]
    assert session["pid"] in gateway.pids("session", "127.0.0.1")
    assert (session["workspace"], session["state"], session["channels"]) == ("sandbox", "open", 1)
    assert session["address"] == "127.0.0.1" and session["port"] > 1023
    before = session["bytes_in"]
    client.stdin.write(b"x" * 100000)
    client.stdin.flush()
    wait_until(lambda: rows(gateway, "sessions")[0]["bytes_in"] >= before + 100000)
    wait_until(lambda: rows(gateway, "sessions")[0]["bytes_out"] >= 100000)


def test_a_session_that_has_not_logged_in_is_listed_as_such(gateway):
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.recv(1)
        (session,) = rows(gateway, "sessions")
        assert session["state"] == "logging in"
        assert session["port"] == client.getsockname()[1]
        assert "workspace" not in session and "key" not in session
        assert rows(gateway, "channels") == []
        assert answer(gateway, "status")["logging_in"] == 1


def test_channels_are_listed_with_their_kind(gateway):
    for words in (["cat"], ["-tt"], ["-s", "sftp"], ["scp -t ."], ["-s", "rws"]):
        begin(gateway, *words)
    wait_until(lambda: len(rows(gateway, "channels")) == 5)
    wait_until(lambda: "none" not in [row["kind"] for row in rows(gateway, "channels")])
    found = rows(gateway, "channels")
    assert sorted((row["kind"], row["pty"]) for row in found) == [
        ("exec", False),
        ("rws", False),
        ("scp", False),
        ("sftp", False),
        ("shell", True),
    ]
    assert {row["workspace"] for row in found} == {"sandbox"}
    assert {row["session"] for row in found} == {row["session"] for row in rows(gateway, "sessions")}


def test_channels_of_one_connection_are_numbered_and_counted(gateway):
    async def run():
        async with asyncssh_connect(gateway) as connection:
            await connection.run("true")
            one = await connection.create_process("cat", encoding=None)
            two = await connection.create_process("head -c 70000 /dev/zero; cat", encoding=None)
            one.stdin.write(b"12345")
            assert await one.stdout.readexactly(5) == b"12345"
            assert len(await two.stdout.readexactly(70000)) == 70000
            found = await asyncio.to_thread(rows, gateway, "channels")
            assert [row["channel"] for row in found] == [2, 3]
            assert [(row["bytes_in"], row["bytes_out"]) for row in found] == [(5, 5), (0, 70000)]

    asyncio.run(run())


def test_no_command_line_and_no_environment_is_shown(gateway):
    start(gateway, "cat; : s3cr3t")
    with Rws(gateway) as rws:
        rws.send("exec", command="sleep 4721", env={"TOKEN": "s3cr3t"})
        wait_until(lambda: rows(gateway, "workspaces")[0]["commands"] == 2)
        seen = "".join(admin(gateway, name).stdout + json.dumps(rows(gateway, name)) for name in LISTS)
    assert "exec" in seen
    assert "s3cr3t" not in seen and "4721" not in seen and "cat" not in seen


def test_a_table_has_the_rows_of_the_list(gateway):
    for _ in range(3):
        start(gateway, "cat")
    heads = {
        "logins": "login driver instances workspaces sessions",
        "workspaces": "workspace driver state sandbox_id origin worker sessions commands since last_used gateway",
        "sessions": "session pid workspace state address since bytes_in bytes_out channels key",
        "channels": "session channel workspace kind pty since bytes_in bytes_out",
    }
    for name, head in heads.items():
        done = admin(gateway, name)
        lines = done.stdout.splitlines()
        assert (done.returncode, lines[0].split()) == (0, head.split())
        assert len(lines) == 1 + len(rows(gateway, name))
    numbers = [row["session"] for row in rows(gateway, "sessions")]
    assert [int(line.split()[0]) for line in admin(gateway, "sessions").stdout.splitlines()[1:]] == numbers


def test_json_may_be_asked_for_in_front(gateway):
    command = [BUILD / "rws", "--json", "admin", "-s", socket_path(gateway), "logins"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert json.loads(done.stdout) == answer(gateway, "logins")


def test_an_empty_list_says_so(gateway):
    assert admin(gateway, "sessions").stdout == "no sessions\n"
    assert answer(gateway, "channels") == {"channels": []}


def test_watching_shows_what_changes(gateway):
    command = [BUILD / "rws", "admin", "-s", socket_path(gateway), "--json", "sessions", "--watch=100ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as watch:
        assert json.loads(watch.stdout.readline()) == {"sessions": []}
        client = start(gateway, "cat")
        while not json.loads(watch.stdout.readline())["sessions"]:
            continue
        end(client)
        while json.loads(watch.stdout.readline())["sessions"]:
            continue
        watch.terminate()


def test_a_user_sees_how_much_the_own_workspace_is_used(gateway):
    client = start(gateway, "cat")
    other = start(gateway, "cat", login="sandbox+other")
    with Rws(gateway) as rws:
        info = rws.call("info")
        assert (info["sessions"], info["commands"], info["busy"]) == (2, 1, True)
        end(client)
        wait_until(lambda: (rws.call("info")["sessions"], rws.call("info")["commands"]) == (1, 0))
    end(other)
    answer(gateway, "destroy", "sandbox+other")


# Who does not answer


def test_a_hung_session_is_listed_without_holding_up_the_others(gateway):
    for _ in range(3):
        start(gateway, "cat")
    hung = rows(gateway, "sessions")[1]
    os.kill(hung["pid"], signal.SIGSTOP)
    try:
        # The first waits for it, the second knows already.
        for _ in range(2):
            found = rows(gateway, "sessions")
            assert [row["state"] for row in found] == ["open", "no answer", "open"]
            assert found[1]["session"] == hung["session"] and found[1]["key"] == hung["key"]
            assert "bytes_in" not in found[1]
            assert [row["kind"] for row in rows(gateway, "channels")] == ["exec", "no answer", "exec"]
    finally:
        os.kill(hung["pid"], signal.SIGCONT)
    wait_until(lambda: [row["state"] for row in rows(gateway, "sessions")] == ["open"] * 3)


def test_a_hung_worker_is_listed_without_holding_up_the_others(gateway):
    clients = [start(gateway, "cat", login=login) for login in ("sandbox", "sandbox+hung")]
    (pid,) = gateway.pids("worker", "sandbox+hung")
    os.kill(pid, signal.SIGSTOP)
    try:
        found = rows(gateway, "workspaces")
        assert [row["state"] for row in found] == ["running", "no answer"]
        assert found[1]["worker"] == pid and "commands" not in found[1]
    finally:
        os.kill(pid, signal.SIGCONT)
    end(*clients)
    assert answer(gateway, "destroy", "sandbox+hung")["state"] == "destroyed"


def test_who_waits_for_a_worker_that_crashes_is_told(gateway):
    start(gateway, "cat", login="sandbox+crash")
    (pid,) = gateway.pids("worker", "sandbox+crash")
    os.kill(pid, signal.SIGSTOP)
    seen = gateway.log_length()
    command = [BUILD / "rws", "admin", "-s", socket_path(gateway), "stop", "sandbox+crash"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as waiting:
        gateway.wait_log("stop sandbox.crash", start=seen)
        os.kill(pid, signal.SIGKILL)
        assert waiting.stderr.read().startswith(b"rws: UNAVAILABLE: the worker of sandbox+crash ended")
        assert waiting.wait(TIMEOUT) == 1
    assert answer(gateway, "status")["crashes"] >= 1
    assert answer(gateway, "destroy", "sandbox+crash")["state"] == "destroyed"


def test_watching_ends_with_the_gateway(make_gateway):
    gateway = make_gateway()
    command = [BUILD / "rws", "admin", "-s", socket_path(gateway), "--json", "status", "--watch=100ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watch:
        watch.stdout.readline()
        answer(gateway, "drain")
        assert gateway.wait() == 0
        assert watch.wait(TIMEOUT) == 1
        assert watch.stderr.read().startswith(b"rws: ")


def test_fifty_sessions_are_listed_again_and_again(make_gateway):
    crowd(make_gateway, 50, 20)


@pytest.mark.stress
def test_a_thousand_sessions_are_listed_again_and_again(make_gateway):
    crowd(make_gateway, 1000, 20)


def crowd(make_gateway, count, lists):
    """Lists many sessions; what that takes is given back."""
    gateway = make_gateway(options={"max_startups": 2000, "max_startups_per_source": 2000})

    async def run():
        connections, channels = [], []
        for _ in range(count):
            connections.append(await asyncssh_connect(gateway))
            channels.append(await connections[-1].create_process("cat", encoding=None))
        before = 0
        for number in range(lists):
            found = await asyncio.to_thread(rows, gateway, "sessions")
            assert [row["session"] for row in found] == list(range(1, count + 1))
            assert len(await asyncio.to_thread(rows, gateway, "channels")) == count
            if number == lists // 2:
                before = memory(gateway.process.pid)
        assert memory(gateway.process.pid) <= before + (1 << 20)
        for connection in connections:
            connection.abort()

    asyncio.run(run())


def memory(pid):
    """The resident memory of a process."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# What is changed


@pytest.mark.core
def test_disconnect_tells_the_client_why_and_ends_its_session_alone(gateway):
    client, other = start(gateway, "cat"), start(gateway, "cat")
    number = rows(gateway, "sessions")[0]["session"]
    assert answer(gateway, "disconnect", str(number)) == {"session": str(number), "note": "disconnected"}
    out, err = client.communicate(timeout=TIMEOUT)
    assert (client.returncode, out) == (255, b"")
    assert b"disconnected by the gateway's operator" in err
    assert [row["session"] for row in rows(gateway, "sessions")] == [number + 1]
    out, _ = other.communicate(b"still here\n", timeout=TIMEOUT)
    assert (other.returncode, out) == (0, b"still here\n")


def test_disconnect_ends_what_the_session_ran(gateway):
    start(gateway, "sleep 4722")
    assert rows(gateway, "workspaces")[0]["commands"] == 1
    admin(gateway, "disconnect", str(rows(gateway, "sessions")[0]["session"]))
    wait_until(lambda: rows(gateway, "workspaces")[0]["commands"] == 0)


def test_disconnect_kills_a_session_that_hangs(gateway):
    start(gateway, "cat")
    session = rows(gateway, "sessions")[0]
    os.kill(session["pid"], signal.SIGSTOP)
    assert "killed" in answer(gateway, "disconnect", str(session["session"]))["note"]
    assert rows(gateway, "sessions") == []
    assert not os.path.exists(f"/proc/{session['pid']}")


def test_disconnect_ends_a_client_that_has_not_logged_in(gateway):
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.recv(1)
        admin(gateway, "disconnect", str(rows(gateway, "sessions")[0]["session"]))
        client.settimeout(TIMEOUT)
        while client.recv(65536):
            continue
    assert rows(gateway, "sessions") == []


def test_disconnect_of_no_session_is_refused(gateway):
    assert refusal(gateway, "disconnect", "999999")[0] == "NOT_FOUND"


def test_reload_takes_the_configuration_or_says_what_is_wrong(make_gateway):
    gateway = make_gateway()
    gateway.logins["more"] = {}
    gateway.write_configuration()
    assert "reloaded" in answer(gateway, "reload")["note"]
    assert [row["login"] for row in rows(gateway, "logins")] == ["sandbox", "more"]
    gateway.logins["less"] = {"driver": "nonsense"}
    gateway.write_configuration()
    code, text = refusal(gateway, "reload")
    assert code == "INVALID" and "nonsense" in text and "rwsd.conf:" in text
    assert [row["login"] for row in rows(gateway, "logins")] == ["sandbox", "more"]
    assert ssh(gateway, "true", login="more").returncode == 0


@pytest.mark.core
def test_drain_ends_the_gateway_once_the_sessions_have(make_gateway):
    gateway = make_gateway(options={"drain_grace": "1h"})
    client = start(gateway, "cat")
    assert "1 connections" in answer(gateway, "drain")["note"]
    assert answer(gateway, "status")["draining"] is True
    assert refusal(gateway, "start", "sandbox+new")[0] == "BUSY"
    assert refusal(gateway, "reload")[0] == "BUSY"
    client.stdin.close()
    assert client.wait(TIMEOUT) == 0
    assert gateway.wait() == 0
    assert not socket_path(gateway).exists()


def test_drain_given_twice_does_not_wait(make_gateway):
    gateway = make_gateway(options={"drain_grace": "1h"})
    client = start(gateway, "cat")
    answer(gateway, "drain")
    answer(gateway, "drain")
    assert gateway.wait() == 0
    assert client.wait(TIMEOUT) == 255


# Who may ask


@pytest.mark.core
def test_the_socket_is_for_its_user_alone(gateway):
    assert socket_path(gateway).stat().st_mode & 0o7777 == 0o600


def test_another_user_is_refused_whatever_the_mode_of_the_file(make_gateway):
    assert os.geteuid() == 0, "another user takes root to become"
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    gateway = make_gateway()
    done = admin(gateway, "status", prefix=nobody)
    assert done.returncode == 1 and done.stderr.startswith("rws: DENIED: ")
    (gateway.directory / "state").chmod(0o755)
    socket_path(gateway).chmod(0o666)
    for words in (["status"], ["drain"], ["destroy", "sandbox"]):
        done = admin(gateway, *words, prefix=nobody)
        assert (done.returncode, done.stdout) == (1, "")
        assert "this is for root" in done.stderr
    assert answer(gateway, "status")["draining"] is False
    gateway.wait_log("user 65534 was refused")


def test_a_socket_left_behind_is_replaced(make_gateway):
    gateway = make_gateway()
    started = children(gateway.process.pid)
    gateway.process.kill()
    gateway.wait()
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in started), what="its processes' end")
    assert socket_path(gateway).exists()
    gateway.start()
    assert answer(gateway, "status")["pid"] == gateway.process.pid


def test_a_socket_in_use_is_not_taken_from_its_gateway(gateway):
    second = subprocess.run([BUILD / "rwsd", "-f", gateway.configuration], capture_output=True, text=True,
                            timeout=TIMEOUT, check=False)
    assert second.returncode == 1
    assert "another gateway is using it" in second.stderr
    assert answer(gateway, "status")["pid"] == gateway.process.pid


def test_a_file_in_the_place_of_the_socket_stays(gateways):
    gateway = Gateway()
    gateways.append(gateway)
    place = gateway.directory / "precious"
    place.write_text("kept")
    gateway.options["admin_socket"] = place
    gateway.write_configuration()
    (gateway.directory / "state").mkdir()
    done = subprocess.run([BUILD / "rwsd", "-f", gateway.configuration], capture_output=True, text=True,
                          timeout=TIMEOUT, check=False)
    assert done.returncode == 1 and "is no socket" in done.stderr
    assert place.read_text() == "kept"


def test_the_socket_may_be_elsewhere(make_gateway):
    gateway = make_gateway(options={"admin_socket": "elsewhere.sock"})
    done = subprocess.run([BUILD / "rws", "admin", "status", "-s", gateway.directory / "elsewhere.sock"],
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0
    assert not socket_path(gateway).exists()


# What comes in


def connect(gateway):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(TIMEOUT)
    client.connect(str(socket_path(gateway)))
    return client


def frame(kind, payload=b"", version=VERSION, descriptor=0):
    return struct.pack(">IBBB", len(payload), kind, version, descriptor) + payload


def request(verb, target=None, more=b""):
    text = b"\xff" * 4 if target is None else struct.pack(">I", len(target)) + target
    return frame(REQUEST, bytes([verb]) + text + more)


def read_end(client):
    """All that comes until the gateway closes."""
    data = b""
    try:
        while piece := client.recv(65536):
            data += piece
    except ConnectionResetError:
        pass  # what we sent was not read to its end
    return data


GARBAGE = {
    "text": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": b"\0" * 4096,
    "a length past the limit": struct.pack(">IBBB", 0xFFFFFFFF, REQUEST, VERSION, 0),
    "another version": frame(REQUEST, b"\0" + b"\xff" * 4, version=9),
    "a message of ours": frame(END, b"\0" * 9),
    "a message of the sessions": frame(111, b"\0" * 20),
    "no request": frame(REQUEST),
    "a verb that there is not": request(99),
    "bytes behind the request": request(0, more=b"\0"),
    "a target where there is none": request(0, b"x"),
    "no target": request(7),
    "a target that is too long": request(7, b"x" * 600),
    "a target with a NUL": request(7, b"1\0002"),
    "a promised descriptor": frame(REQUEST, b"\0" + b"\xff" * 4, descriptor=1),
}


@pytest.mark.core
@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_ends_its_connection_and_nothing_else(gateway, name):
    client = start(gateway, "cat")
    with connect(gateway) as broken:
        broken.sendall(GARBAGE[name])
        assert read_end(broken) == b""
    assert len(rows(gateway, "sessions")) == 1
    out, _ = client.communicate(b"well\n", timeout=TIMEOUT)
    assert (client.returncode, out) == (0, b"well\n")


def test_descriptors_that_are_sent_do_not_stay(gateway):
    def count():
        return len(os.listdir(f"/proc/{gateway.process.pid}/fd"))

    answer(gateway, "status")
    before = wait_until(count)
    with open("/dev/null", "rb") as file:
        for number in range(1, 20):
            with connect(gateway) as client:
                passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()] * number))]
                client.sendmsg([request(0)], passed)
                read_end(client)
    wait_until(lambda: count() <= before, what="the end of all descriptors")


def test_a_second_request_on_a_connection_is_refused(gateway):
    with connect(gateway) as client:
        client.sendall(request(0) + request(0))
        data = read_end(client)
    assert data.count(b"rwsd.conf") == 1


def test_clients_are_limited_and_slow_ones_are_dropped(gateway):
    slow = [connect(gateway) for _ in range(CLIENTS_MAX)]
    slow[0].sendall(request(0)[:3])
    wait_until(lambda: admin(gateway, "status").returncode == 1)
    assert refusal(gateway, "status")[0] == "BUSY"
    assert ssh(gateway, "echo well").stdout == b"well\n"
    for client in slow:
        assert read_end(client) == b""
        client.close()
    assert answer(gateway, "status")["pid"] == gateway.process.pid


def test_a_client_that_does_not_read_holds_nobody_up(gateway):
    for _ in range(3):
        start(gateway, "cat")
    deaf = [connect(gateway) for _ in range(CLIENTS_MAX - 4)]
    for client in deaf:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        client.sendall(request(3))
    assert len(rows(gateway, "sessions")) == 3
    for client in deaf:
        client.close()


# The command line


@pytest.mark.parametrize("words", [
    [], ["nonsense"], ["disconnect"], ["stop"], ["sessions", "more"], ["--frob", "status"], ["-s"],
    ["disconnect", "abc"], ["disconnect", "0"], ["disconnect", "1", "2"], ["stop", "../sandbox"], ["stop", ""],
    ["forget"], ["forget", "a b"],
    ["status", "--watch=0"], ["status", "--watch=x"], ["drain", "--watch"], ["status", "--watchdog"],
])
def test_wrong_usage_is_told(words):
    done = subprocess.run([BUILD / "rws", "admin", *words], capture_output=True, text=True, timeout=TIMEOUT,
                          check=False)
    assert done.returncode == 64
    assert done.stderr.startswith("rws: INVALID: ") and done.stderr.endswith("Try: rws admin --help\n")


def test_without_a_gateway_it_fails(tmp_path):
    done = subprocess.run([BUILD / "rws", "admin", "-s", tmp_path / "none", "status"], capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1
    assert "no gateway can be reached on" in done.stderr


def test_help_names_every_command():
    text = subprocess.run([BUILD / "rws", "admin", "--help"], capture_output=True, text=True, check=True).stdout
    for word in (*LISTS, "status", "disconnect", "start", "stop", "destroy", "forget", "reload", "drain", "--watch"):
        assert word in text
    assert subprocess.run([BUILD / "rws", "help", "admin"], capture_output=True, text=True, check=True).stdout == text
