# SPDX-License-Identifier: ISC
"""Records of sandboxes: after restarts, with a lost sandbox, and with several gateways on one PostgreSQL."""

import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from clients import ssh, ssh_start
from gateway import BUILD, children, processes, wait_until
from records import Postgres, sqlite_records
from rws_client import Rws, RwsError
from test_records_crash import SETTLED, kill_all, kill_records

DRIVERS = ("e2b",)

# Seconds after which a worker has no answer, however late that comes.
ANSWER_WAIT = 16

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture(name="postgres", scope="module")
def postgres_fixture():
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(name="make_shared")
def make_shared_fixture(make_gateway, postgres):
    """Makes gateways of one name on one database, which begins without tables."""
    postgres.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    name = f"shared-{os.urandom(4).hex()}"

    def make(arguments=(), **login):
        options = {"gateway": name, "state_database": postgres.url}
        return make_gateway(options=options, logins={"sandbox": login}, arguments=arguments)

    return make


def paths(provider, method="POST"):
    return [request["path"] for request in provider.requests() if request["method"] == method]


def creates(provider):
    return paths(provider).count("/sandboxes")


def sandbox_id(gateway, login="sandbox"):
    done = ssh(gateway, "echo $RWS_SANDBOX_ID", login=login)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


# One gateway


def test_a_restarted_gateway_knows_its_sandbox_without_looking(make_gateway, provider):
    gateway = make_gateway()
    sandbox = sandbox_id(gateway)
    (record,) = sqlite_records(gateway)
    assert record == {"login": "sandbox", "instance": "", "sandbox": sandbox, "created": 1, "state": "ready"}
    gateway.end()
    gateway.start()
    provider.forget_requests()
    assert sandbox_id(gateway) == sandbox
    assert "/v2/sandboxes" not in paths(provider, "GET")


def test_a_sandbox_of_before_the_records_is_found_by_its_label(make_gateway, provider):
    gateway = make_gateway()
    sandbox = sandbox_id(gateway)
    gateway.end()
    for path in (gateway.directory / "state/records").iterdir():
        path.unlink()
    gateway.start()
    assert sandbox_id(gateway) == sandbox
    assert [record["sandbox"] for record in sqlite_records(gateway)] == [sandbox]
    assert creates(provider) == 1


def test_an_attached_sandbox_is_recorded_as_such(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"instances": "attach"}})
    sandbox = sandbox_id(gateway)
    assert sandbox_id(gateway, f"sandbox={sandbox}") == sandbox
    records = {record["instance"]: (record["sandbox"], record["created"]) for record in sqlite_records(gateway)}
    assert records == {"": (sandbox, 1), f"={sandbox}": (sandbox, 0)}
    assert creates(provider) == 1


def test_a_lost_sandbox_is_made_again(make_gateway, provider):
    gateway = make_gateway()
    first = sandbox_id(gateway)
    gateway.end()
    provider.end_sandbox()
    gateway.start()
    done = ssh(gateway, "-tt", "echo $RWS_SANDBOX_ID")
    second = [record["sandbox"] for record in sqlite_records(gateway)]
    assert second != [first]
    assert second[0].encode() in done.stdout
    assert f"sandbox {first} is gone; making a new one".encode() in done.stdout + done.stderr
    # Bytes of a command without a terminal stay its own.
    gateway.end()
    provider.end_sandbox()
    gateway.start()
    done = ssh(gateway, "echo hello")
    assert (done.stdout, done.stderr) == (b"hello\n", b"")


def test_a_lost_sandbox_is_reported_where_that_is_asked_for(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"on_lost": "report"}})
    first = sandbox_id(gateway)
    gateway.end()
    provider.end_sandbox()
    gateway.start()
    done = ssh(gateway, "true")
    assert done.returncode == 255
    assert f"rws: NOT_FOUND: e2b: connect to sandbox {first}: 404".encode() in done.stderr
    assert not provider.sandboxes()
    assert sandbox_id(gateway) != first


def test_a_login_has_no_more_sandboxes_than_it_may(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"max_instances": 2, "instances": "on"}})
    assert ssh(gateway, "true").returncode == 0
    assert ssh(gateway, "true", login="sandbox+one").returncode == 0
    done = ssh(gateway, "true", login="sandbox+two")
    assert done.returncode == 255
    assert b"rws: DENIED: login sandbox has 2 sandboxes" in done.stderr
    assert len(provider.sandboxes()) == 2
    # What is there stays within reach.
    assert ssh(gateway, "true", login="sandbox+one").returncode == 0


def test_a_create_whose_outcome_is_unknown_keeps_its_place(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"max_instances": 1, "instances": "on"}})
    provider.fault("/sandboxes$", {"status": 500, "body": {"message": "who knows"}}, count=0, method="POST")
    done = ssh(gateway, "true", login="sandbox+one", timeout=120)
    assert done.returncode == 255
    assert provider.struck() > 1
    assert [record["state"] for record in sqlite_records(gateway)] == ["creating"]
    assert b"has 1 sandbox, and may have no more" in ssh(gateway, "true", login="sandbox+two").stderr


def test_a_killed_records_process_disturbs_nobody(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"idle_timeout": "500ms"}})
    with ssh_start(gateway, "echo ready; cat") as client:
        assert client.stdout.readline() == b"ready\n"
        seen = gateway.log_length()
        kill_records(gateway)
        gateway.wait_log("the records process ended unexpectedly", 20, seen)
        client.stdin.write(b"still here\n")
        client.stdin.flush()
        assert client.stdout.readline() == b"still here\n"
        # The next one is told again, and answers what was asked meanwhile.
        assert ssh(gateway, "true", login="sandbox+other").returncode == 0
        client.stdin.close()
        assert client.wait(30) == 0
    wait_until(lambda: not provider.sandboxes(), timeout=SETTLED, what="both to be disposed of")
    wait_until(lambda: not sqlite_records(gateway), what="no record to be left")


def test_a_records_process_that_cannot_take_a_worker_any_more_is_replaced(make_gateway):
    gateway = make_gateway()
    sandbox_id(gateway)
    (records,) = gateway.pids("records")
    in_use = len(os.listdir(f"/proc/{records}/fd"))
    status = pathlib.Path(f"/proc/{records}/status").read_text()
    user, group = (int(re.search(rf"{name}:\t(\d+)", status).group(1)) for name in ("Uid", "Gid"))
    command = ["prlimit", f"--pid={records}", f"--nofile={in_use}:{in_use}"]
    # As its own user: root need not have the right to limit others.
    own = {"user": user, "group": group} if os.geteuid() == 0 else {}
    subprocess.run(command, check=True, **own)
    wait_until(lambda: ssh(gateway, "true", login="sandbox+other").returncode == 0, timeout=60, what="another one")
    assert records not in gateway.pids("records")


def test_a_records_process_that_cannot_be_started_is_not_left_over(make_gateway):
    gateway = make_gateway()
    sandbox_id(gateway)
    place = gateway.directory / "state/records"
    elsewhere = place.rename(gateway.directory / "elsewhere")
    place.write_text("no directory")
    seen = gateway.log_length()
    kill_records(gateway)
    for _ in range(2):
        gateway.wait_log("start the records process: .*Not a directory", 20, seen)
        seen = gateway.log_length()
    assert not gateway.pids("records")
    place.unlink()
    elsewhere.rename(place)
    wait_until(lambda: len(gateway.pids("records")) == 1, what="the records process")
    assert sandbox_id(gateway, "sandbox+other")


def test_a_database_that_was_removed_is_made_again_while_the_gateway_runs(make_gateway):
    gateway = make_gateway()
    sandbox_id(gateway)
    for path in (gateway.directory / "state/records").glob("records.db*"):
        path.unlink()
    other = sandbox_id(gateway, "sandbox+other")
    gateway.wait_log("records.db was removed or replaced while it was in use")
    assert [record["sandbox"] for record in sqlite_records(gateway)] == [other]


def test_the_records_process_has_few_rights(make_gateway):
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    (records,) = gateway.pids("records")
    # Without what it was started with.
    assert gateway.roles()[records][1] == "rwsd: records"
    status = pathlib.Path(f"/proc/{records}/status").read_text()
    assert "Seccomp:\t2" in status
    assert "NoNewPrivs:\t1" in status
    if os.geteuid() == 0:
        assert "Uid:\t0" not in status


# Waiting for a sandbox


def test_ctrl_c_ends_the_wait_for_a_sandbox(make_gateway, provider):
    gateway = make_gateway()
    provider.config(create_ms=5000)
    with ssh_start(gateway, "-tt", "cat") as client:
        wait_until(lambda: creates(provider), what="the create")
        client.stdin.write(b"typed ahead\x03")
        client.stdin.flush()
        out, errors = client.communicate(timeout=4)
        assert client.returncode == 255
        assert b"rws: ABORTED: " in out + errors
    # What was begun is not begun again.
    assert ssh(gateway, "true").returncode == 0
    assert creates(provider) == 1


def test_a_ctrl_c_for_a_command_without_a_terminal_is_its_input(make_gateway, provider):
    gateway = make_gateway()
    provider.config(create_ms=500)
    assert ssh(gateway, "cat", stdin=b"a\x03b").stdout == b"a\x03b"


def test_a_provider_that_does_not_answer_is_told_of_in_time(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"request_timeout": "1s"}})
    provider.fault("/sandboxes$", {"delay_ms": 60000}, count=0)
    done = ssh(gateway, "-tt", "true", timeout=60)
    assert done.returncode == 255
    assert b"starting sandbox..." in done.stdout + done.stderr
    assert b"rws: " in done.stdout + done.stderr


# The database


def test_the_rules_hold_with_postgresql_too(postgres):
    postgres.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    done = subprocess.run(
        [BUILD / "unit/test_records_store"],
        env={**os.environ, "RECORDS_DATABASE": postgres.url},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert postgres.sql("SELECT COUNT(*) FROM rwsd_schema") == [["2"]]


def test_the_password_of_the_database_shows_nowhere(make_shared, postgres):
    gateway = make_shared()
    assert ssh(gateway, "true").returncode == 0
    lines = processes()
    for pid in [gateway.process.pid, *children(gateway.process.pid)]:
        assert postgres.password not in lines.get(pid, "")
        assert postgres.password.encode() not in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    postgres.sql("ALTER USER rwsd PASSWORD 'another one'")
    try:
        gateway.end()
        seen = gateway.log_length()
        gateway.start()
        assert ssh(gateway, "true").returncode == 255
        gateway.wait_log("password authentication failed", 20, seen)
    finally:
        # The one connection that is let in: by the server's own socket, as its own user.
        postgres.reset_password()
    assert postgres.password not in gateway.log_text()


def test_without_the_database_sessions_go_on_and_new_ones_are_told(make_shared, postgres, provider):
    gateway = make_shared(instances="on")
    with ssh_start(gateway, "echo ready; cat") as client:
        assert client.stdout.readline() == b"ready\n"
        postgres.halt()
        try:
            client.stdin.write(b"still here\n")
            client.stdin.flush()
            assert client.stdout.readline() == b"still here\n"
            done = ssh(gateway, "true", login="sandbox+new")
            assert done.returncode == 255
            assert done.stderr == (
                b"rws: UNAVAILABLE: the gateway's records cannot be reached; try again later\n"
            )
            # One whose sandbox is in use here needs no record.
            assert ssh(gateway, "true").returncode == 0
        finally:
            postgres.start()
        wait_until(lambda: ssh(gateway, "true", login="sandbox+new").returncode == 0, what="the database")
        client.stdin.close()
        assert client.wait(30) == 0
    assert creates(provider) == 2


def test_a_database_that_hangs_holds_nobody_up_for_long(make_shared, postgres):
    gateway = make_shared(instances="on")
    with ssh_start(gateway, "echo ready; cat") as client:
        assert client.stdout.readline() == b"ready\n"
        with postgres.frozen():
            done = ssh(gateway, "true", login="sandbox+new", timeout=40)
            assert done.returncode == 255
            assert b"rws: UNAVAILABLE: the gateway's records " in done.stderr
            client.stdin.write(b"still here\n")
            client.stdin.flush()
            assert client.stdout.readline() == b"still here\n"
        wait_until(lambda: ssh(gateway, "true", login="sandbox+new").returncode == 0, what="the database")
        client.kill()


def test_a_database_that_was_restarted_is_no_trouble(make_shared, postgres, provider):
    gateway = make_shared(instances="on")
    assert ssh(gateway, "true").returncode == 0
    postgres.halt()
    postgres.start()
    assert ssh(gateway, "true", login="sandbox+new").returncode == 0
    assert creates(provider) == 2


# Several gateways


def test_first_use_by_many_through_two_gateways_makes_one_sandbox(make_shared, postgres, provider):
    gateways = [make_shared(), make_shared()]
    provider.config(create_ms=700)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: sandbox_id(gateways[number % 2]), range(8)))
    assert len(set(found)) == 1
    assert creates(provider) == 1
    assert [record["sandbox"] for record in postgres.records()] == found[:1]


def test_a_sandbox_is_idle_only_when_no_gateway_uses_it(make_shared, provider):
    one, two = make_shared(idle_timeout="500ms"), make_shared(idle_timeout="500ms")
    with ssh_start(one, "echo $RWS_SANDBOX_ID; cat") as client:
        sandbox = client.stdout.readline().decode().strip()
        assert sandbox_id(two) == sandbox
        two.wait_log("the sandbox stays: others use it")
        wait_until(lambda: not two.pids("worker"), what="the end of the other worker")
        assert [found["id"] for found in provider.sandboxes()] == [sandbox]
        client.stdin.write(b"still here\n")
        client.stdin.close()
        assert client.stdout.readline() == b"still here\n"
        assert client.wait(30) == 0
    wait_until(lambda: not provider.sandboxes(), timeout=90, what="its disposal")


def test_a_command_of_another_gateway_makes_the_workspace_busy(make_shared):
    one, two = make_shared(), make_shared()
    with ssh_start(one, "echo x >file; echo ready; cat") as client, Rws(two) as rws:
        assert client.stdout.readline() == b"ready\n"
        for method, parameters in (("remove", {"path": "file"}), ("rename", {"path": "file", "to": "other"})):
            with pytest.raises(RwsError) as refused:
                rws.call(method, **parameters)
            assert refused.value.code == "BUSY"
        client.stdin.close()
        assert client.wait(30) == 0
        wait_until(lambda: not is_busy(rws), what="the end of the command")
        assert rws.call("remove", path="other")


def is_busy(rws):
    """Tries to rename the file; what is left of a command takes a moment to go."""
    try:
        rws.call("rename", path="file", to="other")
    except RwsError as error:
        assert error.code == "BUSY", error
        return True
    return False


def test_a_gateway_that_vanishes_while_it_creates_blocks_the_other_for_half_a_minute(
    make_shared, postgres, provider
):
    one, two = make_shared(), make_shared()
    provider.config(create_ms=3000)
    with ssh_start(one, "true") as client:
        wait_until(lambda: creates(provider), what="the create")
        kill_all(one)
        client.communicate(timeout=30)
    with ssh_start(two, "-tt", "echo id=$RWS_SANDBOX_ID; cat") as client:
        sandbox = None
        told = b""
        while sandbox is None:
            line = client.stdout.readline()
            assert line, told
            told += line
            if line.startswith(b"id="):
                sandbox = line[3:].strip().decode()
        assert [record["sandbox"] for record in postgres.records()] == [sandbox]
        wait_until(lambda: [found["id"] for found in provider.sandboxes()] == [sandbox], what="one sandbox")
        client.kill()


def test_a_vanished_gateways_sandbox_is_disposed_of_by_the_other(make_shared, provider):
    one, two = make_shared(idle_timeout="1s"), make_shared(idle_timeout="1s")
    with ssh_start(one, "echo ready; cat") as client:
        assert client.stdout.readline() == b"ready\n"
        kill_all(one)
        client.kill()
    two.wait_log("workspace sandbox is idle, and no gateway has it", timeout=120)
    wait_until(lambda: not provider.sandboxes(), timeout=60, what="its disposal")


def stop_worker_with_a_grant(gateway):
    """An operator destroys the sandbox, and the worker is stopped when it is allowed to and does not know yet."""
    (records,), (worker,) = gateway.pids("records"), gateway.pids("worker")
    os.kill(records, signal.SIGSTOP)
    # pylint: disable=consider-using-with # whoever calls waits for it
    operator = subprocess.Popen(
        [BUILD / "rws", "admin", "-s", gateway.directory / "state/admin.sock", "destroy", "sandbox"],
        stderr=subprocess.PIPE,
        text=True,
    )
    gateway.wait_log("worker -> records RECORD_RELEASE ")
    os.kill(worker, signal.SIGSTOP)
    os.kill(records, signal.SIGCONT)
    gateway.wait_log("records -> worker RECORD_MAY_RELEASE")
    os.kill(records, signal.SIGSTOP)
    return operator, [worker, records]


def test_a_gateway_that_was_stopped_does_not_destroy_what_another_has_taken_over(make_shared, postgres, provider):
    one, two = make_shared(arguments=["-v"]), make_shared()
    sandbox = sandbox_id(one)
    operator, stopped = stop_worker_with_a_grant(one)
    asked = time.monotonic()
    # Half a minute passes.
    postgres.sql("UPDATE rwsd_workspaces SET until = 1; UPDATE rwsd_leases SET until = 1")
    with ssh_start(two, "echo $RWS_SANDBOX_ID; cat") as client:
        assert client.stdout.readline().decode().strip() == sandbox
        wait_until(lambda: time.monotonic() > asked + ANSWER_WAIT, what="the end of the wait")
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        assert operator.communicate(timeout=60)[1].startswith("rws: BUSY: ")
        assert [found["id"] for found in provider.sandboxes()] == [sandbox]
        client.stdin.write(b"still here\n")
        client.stdin.close()
        assert client.stdout.readline() == b"still here\n"
        assert client.wait(30) == 0


def test_under_load_the_death_of_one_gateway_loses_nothing(make_shared, postgres, provider):
    one, two = make_shared(max_instances=100), make_shared(max_instances=100)
    logins = [f"sandbox+{number}" for number in range(6)]
    stop = time.monotonic() + 15

    def client(number):
        """Connects again and again, by either gateway as long as both are there; counts successes."""
        done = 0
        while time.monotonic() < stop or done == 0:
            gateway = two if number % 2 or one.process.poll() is not None else one
            done += ssh(gateway, "true", login=logins[number % len(logins)], timeout=90).returncode == 0
        return done

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        running = [pool.submit(client, number) for number in range(12)]
        wait_until(lambda: len(provider.sandboxes()) >= 3, what="some sandboxes")
        kill_all(one)
        assert all(future.result() for future in running)
    records = {record["sandbox"] for record in postgres.records()}
    wait_until(
        lambda: {found["id"] for found in provider.sandboxes()} == records, SETTLED, "exactly the recorded ones"
    )
    assert len(records) == len(logins)
