# SPDX-License-Identifier: ISC
"""The daemon: command line, reload, drain, and what its processes are and hold."""

import os
import re
import signal
import stat
import subprocess

import pytest
from clients import TIMEOUT, ssh, ssh_start
from gateway import BUILD, Gateway, make_key, processes_with, public_key, wait_until


@pytest.fixture(name="idle")
def idle_fixture():
    """A gateway that is configured and not started."""
    made = Gateway()
    made.write_configuration()
    yield made
    made.stop()


def rwsd(gateway, *arguments):
    return subprocess.run(
        [BUILD / "rwsd", "-f", gateway.configuration, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def test_a_good_configuration_passes_the_check_in_silence(idle):
    done = rwsd(idle, "-t")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.core
@pytest.mark.parametrize(
    "line,reason",
    [
        ("no_such_option = 1", "no_such_option"),
        ("max_auth_tries = many", "max_auth_tries"),
        ("listen = nowhere", "listen"),
        ("log_level", "log_level|="),
    ],
)
def test_a_bad_line_is_refused_with_file_line_and_reason(idle, line, reason):
    text = idle.configuration.read_text()
    idle.configuration.write_text(f"{line}\n{text}")
    for arguments in (["-t"], []):
        done = rwsd(idle, *arguments)
        assert done.returncode != 0
        assert re.search(rf"rwsd\.conf:1: .*({reason})", done.stderr)


@pytest.mark.parametrize(
    "options,place,reason",
    [
        ({"driver": "e2b"}, "6: login sandbox", "there is no api_key, and no E2B_API_KEY either"),
        ({"driver": "e2b", "api_key": "k", "api_url": "e2b.app"}, "9: api_url", "it is no URL"),
        ({"driver": "e2b", "api_key": "k", "lifetime": "banana"}, "9: lifetime", '"banana" is not a duration'),
        ({"driver": "daytona", "api_key": "k", "resources": "cpu=2"}, "9: resources", "resources need an image"),
        ({"driver": "daytona", "api_key": "k", "ca_file": "none.pem"}, "9: ca_file", "none.pem: No such file"),
        (
            {"driver": "vercel", "oidc_token": "a.b.c", "image": "a", "runtime": "node24"},
            "10: runtime",
            "image and runtime exclude each other",
        ),
    ],
)
def test_options_that_a_driver_cannot_take_are_refused(idle, monkeypatch, options, place, reason):
    for name in ("E2B_API_KEY", "DAYTONA_API_KEY", "VERCEL_OIDC_TOKEN", "VERCEL_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    idle.logins = {"sandbox": {**options, "key": public_key(idle.key)}}
    idle.write_configuration()
    for arguments in (["-t"], []):
        done = rwsd(idle, *arguments)
        assert done.returncode == 1
        assert re.search(rf"rwsd\.conf:{place}: .*{re.escape(reason)}", done.stderr)


def test_a_key_file_that_others_can_write_is_refused(idle):
    keys = idle.directory / "keys"
    keys.write_text(public_key(idle.key) + "\n")
    keys.chmod(0o666)
    idle.logins = {"sandbox": {"authorized_keys": keys}}
    idle.write_configuration()
    done = rwsd(idle, "-t")
    assert done.returncode != 0
    assert str(keys) in done.stderr


@pytest.mark.parametrize(
    "name,value,reason",
    [
        ("admin_socket", "/tmp/" + "a" * 120, "the path is longer than 107 bytes"),
        ("admin_socket", "/proc/none/admin.sock", "/proc/none/: No such file or directory"),
        ("admin_socket", "/etc/passwd", "/etc/passwd is there and is no socket"),
        ("state", "/proc/none/state", "/proc/none/: No such file or directory"),
        ("host_keys", "/proc/none/keys", "/proc/none/: No such file or directory"),
        ("listen", ["127.0.0.1:0"] * 17, "there are more than 16 addresses"),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_the_start(idle, name, value, reason):
    idle.options = {name: value, **{key: old for key, old in idle.options.items() if key != name}}
    idle.write_configuration()
    for arguments in (["-t"], []):
        done = rwsd(idle, *arguments)
        assert done.returncode == 1
        assert re.search(rf"^rwsd: .*rwsd\.conf:1: {name}: .*{reason}$", done.stderr)


def test_a_user_that_does_not_exist_is_refused_where_it_matters(idle):
    idle.options = {"user": "nobody-of-this-name", **idle.options}
    idle.write_configuration()
    done = rwsd(idle, "-t")
    if os.geteuid() == 0:
        assert done.returncode == 1
        assert done.stderr.endswith('rwsd.conf:1: user: there is no user "nobody-of-this-name"\n')
    else:
        assert (done.returncode, done.stderr) == (0, "")


def test_the_printed_configuration_loads_again_to_the_same(idle):
    first = rwsd(idle, "-x")
    assert first.returncode == 0
    assert f"listen = {idle.options['listen']}" in first.stdout
    idle.configuration.write_text(first.stdout)
    assert rwsd(idle, "-x").stdout == first.stdout


def test_an_override_wins_over_the_file(idle):
    assert re.search(r"^max_auth_tries = 2$", rwsd(idle, "-x", "-o", "max_auth_tries=2").stdout, re.M)
    assert rwsd(idle, "-x", "-o", "no_such_option=2").returncode != 0


def test_the_version_is_told_without_a_configuration(idle):
    done = subprocess.run([BUILD / "rwsd", "-V"], capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert re.fullmatch(r"rwsd \d+\.\d+\.\d+, libssh 0\.\d+\.\d+.*\n", done.stdout)


def test_unknown_flags_are_a_usage_error(idle):
    done = rwsd(idle, "-Z")
    assert done.returncode == 64
    assert "usage:" in done.stderr


def test_verbose_shows_every_message_between_processes(make_gateway):
    gateway = make_gateway(arguments=["-v"])
    assert ssh(gateway, "true").returncode == 0
    for name in ("AUTH_REQUEST", "AUTH_ANSWER", "COMMAND_START", "COMMAND_EXIT"):
        gateway.wait_log(rf"(->|<-) .*{name} \d+ bytes")


@pytest.mark.core
def test_reload_takes_new_logins_and_keeps_connections(make_gateway, tmp_path):
    gateway = make_gateway()
    running = ssh_start(gateway, "echo ready; cat; exit 5")
    assert running.stdout.readline() == b"ready\n"
    other = make_key(tmp_path / "other")
    gateway.logins = {"fresh": {"key": public_key(other)}}
    gateway.write_configuration()
    seen = gateway.log_length()
    gateway.signal(signal.SIGHUP)
    gateway.wait_log("reloaded", start=seen)
    assert ssh(gateway, "echo in", login="fresh", key=other).stdout == b"in\n"
    assert ssh(gateway, "true").returncode == 255
    stdout, _ = running.communicate(b"still here\n", timeout=TIMEOUT)
    assert (running.returncode, stdout) == (5, b"still here\n")


def test_a_bad_reload_changes_nothing(make_gateway):
    gateway = make_gateway()
    gateway.configuration.write_text("nonsense\n")
    seen = gateway.log_length()
    gateway.signal(signal.SIGHUP)
    gateway.wait_log("not reloaded", start=seen)
    assert ssh(gateway, "echo in").stdout == b"in\n"


@pytest.mark.core
def test_term_drains_and_exits_with_0(make_gateway):
    """clients.md 46: sessions dropped with no message, children left."""
    gateway = make_gateway(options={"drain_grace": "1s"})
    mark = "315367777" + str(os.getpid())
    client = ssh_start(gateway, f"echo ready; sleep {mark}")
    assert client.stdout.readline() == b"ready\n"
    gateway.signal(signal.SIGTERM)
    gateway.wait_log("draining")
    assert ssh(gateway, "true").returncode == 255
    assert gateway.wait() == 0
    client.communicate(timeout=TIMEOUT)
    assert client.returncode != 0
    wait_until(lambda: not processes_with(mark), what="end of the command")


def test_what_ends_within_the_grace_is_not_disturbed_by_a_drain(make_gateway):
    gateway = make_gateway(options={"drain_grace": "60s"})
    client = ssh_start(gateway, "echo ready; cat; exit 3")
    assert client.stdout.readline() == b"ready\n"
    gateway.signal(signal.SIGTERM)
    gateway.wait_log("draining")
    stdout, _ = client.communicate(b"the rest", timeout=TIMEOUT)
    assert (client.returncode, stdout) == (3, b"the rest")
    assert gateway.wait() == 0


def test_a_terminal_is_told_of_a_drain(make_gateway):
    gateway = make_gateway(options={"drain_grace": "1s"})
    client = ssh_start(gateway, "-tt", "echo ready; sleep 86400")
    assert client.stdout.readline().strip() == b"ready"
    gateway.signal(signal.SIGTERM)
    stdout, stderr = client.communicate(timeout=TIMEOUT)
    assert re.search(rb"^rws: .*going down", stdout + stderr, re.M)
    assert gateway.wait() == 0


def test_nothing_is_left_of_a_gateway_that_was_killed(make_gateway):
    gateway = make_gateway()
    mark = "315368888" + str(os.getpid())
    client = ssh_start(gateway, f"echo ready; sleep {mark}")
    assert client.stdout.readline() == b"ready\n"
    pids = list(gateway.roles())
    gateway.process.kill()
    gateway.wait()
    client.communicate(timeout=TIMEOUT)
    wait_until(lambda: not processes_with(mark), what="end of the command")
    wait_until(lambda: not [pid for pid in pids if os.path.exists(f"/proc/{pid}")], what="end of all")


def test_a_second_gateway_on_the_same_port_says_so(make_gateway, idle):
    gateway = make_gateway()
    idle.options["listen"] = f"127.0.0.1:{gateway.port}"
    idle.write_configuration()
    done = rwsd(idle)
    assert done.returncode != 0
    assert f"127.0.0.1:{gateway.port}" in done.stdout + done.stderr


@pytest.mark.core
def test_processes_show_their_role_and_login(make_gateway):
    gateway = make_gateway()
    client = ssh_start(gateway, "echo ready; cat", login="sandbox+a")
    assert client.stdout.readline() == b"ready\n"
    assert len(gateway.pids("auth")) == 1
    assert len(gateway.pids("session", "sandbox+a")) == 1
    assert len(gateway.pids("worker", "sandbox+a")) == 1
    client.communicate(timeout=TIMEOUT)


def descriptors(pid):
    """What a process has open, by number: the kind of each, and its target."""
    found = {}
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            mode = os.stat(entry.path).st_mode
            found[int(entry.name)] = (stat.S_IFMT(mode), os.readlink(entry.path))
        except FileNotFoundError:
            pass
    return found


@pytest.fixture(name="busy", scope="module")
def busy_fixture():
    """A gateway with one running command, to look at from outside."""
    made = Gateway()
    try:
        made.start()
        client = ssh_start(made, "echo ready; cat")
        assert client.stdout.readline() == b"ready\n"
        yield made
        client.communicate(timeout=TIMEOUT)
    finally:
        made.stop()


@pytest.mark.parametrize("role", ["auth", "session", "worker"])
def test_a_process_holds_only_what_it_was_handed(busy, role):
    (pid,) = busy.pids(role, "" if role == "auth" else "sandbox")
    sockets = {
        target
        for kind, target in descriptors(busy.process.pid).values()
        if kind in (stat.S_IFSOCK, stat.S_IFIFO)
    }
    for number, (kind, target) in descriptors(pid).items():
        if number < 3:
            assert kind in (stat.S_IFCHR, stat.S_IFIFO), target
            continue
        assert number == 3 or target not in sockets, f"{role} shares {number}: {target}"
        # Sockets, pipes and loops: no file of the configuration, no key, no log.
        assert kind != stat.S_IFREG, f"{role} has {target} open"
        if kind == stat.S_IFDIR:
            assert role == "worker" and "workspaces" in target
        if kind == 0:
            assert "anon_inode:" in target


@pytest.mark.parametrize("role", ["auth", "session", "worker"])
def test_a_process_has_given_its_rights_up(busy, role):
    (pid,) = busy.pids(role, "" if role == "auth" else "sandbox")
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    if os.geteuid() == 0:
        assert status["Uid"].split()[0] != "0"
        # An auth process may keep the right to read key files of any user.
        allowed = {0, 1 << 2} if role == "auth" else {0}
        assert int(status["CapEff"], 16) in allowed


def test_no_process_shows_a_key_in_its_arguments_or_environment(busy):
    secret = busy.key.read_text().splitlines()[1]
    for pid in busy.roles():
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                assert secret.encode() not in file.read()
    assert secret not in busy.log_text()


def test_json_log_lines_are_json(make_gateway):
    import json

    gateway = make_gateway(options={"log_format": "json"})
    assert ssh(gateway, "true").returncode == 0
    lines = [json.loads(line) for line in gateway.log_text().splitlines()]
    assert any("logged in" in line["text"] or "logs in" in line["text"] for line in lines)
    assert all({"time", "level", "process", "pid", "text"} <= set(line) for line in lines)


def test_a_login_and_its_end_are_logged(make_gateway):
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    line = gateway.wait_log(r".*logs in as sandbox with (SHA256:\S+).*")
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", gateway.key], check=True, capture_output=True, text=True
    )
    assert line.group(1) == shown.stdout.split()[1]
    gateway.wait_log("connection closed")
