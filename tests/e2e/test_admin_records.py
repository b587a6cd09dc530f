# SPDX-License-Identifier: ISC
"""What the operator sees of the records, of workspaces that have no worker; and a database that is no good."""

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess

import pytest
from clients import TIMEOUT, ssh, ssh_start
from gateway import BUILD, Gateway, wait_until
from records import Postgres, sqlite_records
from rws_client import Rws
from test_admin import admin, answer, connect, memory, read_end, refusal, request, rows

DRIVERS = ("e2b",)

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture(name="postgres", scope="module")
def postgres_fixture():
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(name="shared")
def shared_fixture(postgres):
    """The options of gateways on one database, which begins without tables."""
    postgres.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return {"gateway": f"shared-{os.urandom(4).hex()}", "state_database": postgres.url}


def workspaces(gateway):
    return {row["workspace"]: row for row in rows(gateway, "workspaces")}


def database(gateway):
    return gateway.directory / "state/records/records.db"


def change(gateway, statement, *values):
    with contextlib.closing(sqlite3.connect(database(gateway), timeout=10)) as connection:
        connection.executemany(statement, values or [()])
        connection.commit()


def insert(gateway, *values, state="kept"):
    """Puts workspaces of the login "sandbox" on record, each an instance and the id of a sandbox."""
    statement = (
        "INSERT INTO rwsd_workspaces (login, instance, place, driver, sandbox, created, state, made, used, idle, "
        f"holder, until, doubt) VALUES ('sandbox', ?, '', 'e2b', ?, 1, '{state}', 1000, 2000, 3000, '', 0, 0)"
    )
    change(gateway, statement, *values)


def sandbox_id(gateway, login="sandbox"):
    return ssh(gateway, "echo $RWS_SANDBOX_ID", login=login).stdout.decode().strip()


# What is seen


def test_a_workspace_without_a_worker_is_listed_as_it_is_recorded(make_gateway):
    gateway = make_gateway(logins={"sandbox": {"instances": "attach"}})
    sandbox = sandbox_id(gateway)
    assert sandbox_id(gateway, f"sandbox={sandbox}") == sandbox
    answer(gateway, "start", "sandbox+one")
    one = answer(gateway, "stop", "sandbox+one")["sandbox_id"]
    gateway.end()
    gateway.start()
    assert gateway.pids("worker") == []
    found = workspaces(gateway)
    assert list(found) == ["sandbox", "sandbox+one", f"sandbox={sandbox}"]
    row = found["sandbox"]
    assert (row["login"], row["driver"], row["sandbox_id"]) == ("sandbox", "e2b", sandbox)
    assert (row["state"], row["origin"], row["recorded"]) == ("running", "created", True)
    assert (row["worker"], row["sessions"]) == (0, 0)
    assert 0 < row["since"] <= row["last_used"]
    assert "commands" not in row and "gateway" not in row
    assert (found["sandbox+one"]["state"], found["sandbox+one"]["sandbox_id"]) == ("stopped", one)
    assert found[f"sandbox={sandbox}"]["origin"] == "attached"
    line = admin(gateway, "workspaces").stdout.splitlines()[1]
    assert re.fullmatch(rf"sandbox +e2b +running +{sandbox} +created +- +0 +.*", line)


def test_of_a_sandbox_that_is_being_made_nothing_is_said_that_nobody_knows(make_gateway):
    gateway = make_gateway()
    insert(gateway, ("new", None), state="creating")
    row = workspaces(gateway)["sandbox+new"]
    assert row["state"] == "creating"
    assert "origin" not in row and "sandbox_id" not in row


def test_a_workspace_with_a_worker_has_one_row(make_gateway):
    gateway = make_gateway()
    sandbox = sandbox_id(gateway)
    (row,) = rows(gateway, "workspaces")
    assert row["worker"] in gateway.pids("worker")
    assert (row["state"], row["origin"], row["sandbox_id"]) == ("running", "created", sandbox)
    assert row["commands"] == 0 and row["recorded"] is True


@pytest.mark.parametrize("count", [1000])
def test_thousands_of_records_are_listed_without_holding_anybody_up(make_gateway, count):
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    insert(gateway, *[(f"n{number}", f"i{number}") for number in range(count)])
    found = workspaces(gateway)
    assert len(found) == count + 1
    row = found["sandbox+n7"]
    assert (row["state"], row["sandbox_id"], row["since"], row["last_used"]) == ("kept", "i7", 1, 2)
    command = [BUILD / "rws", "admin", "-s", gateway.directory / "state/admin.sock", "--json", "workspaces"]
    with subprocess.Popen([*command, "--watch=100ms"], stdout=subprocess.PIPE) as watch:
        for _ in range(3):
            watch.stdout.readline()
            assert ssh(gateway, "true").returncode == 0
        watch.terminate()


def test_who_does_not_read_is_not_sent_more_than_fits(make_gateway):
    """Twelve megabytes of records; the gateway keeps four of them at most, and loses none."""
    gateway = make_gateway()
    before = memory(gateway.process.pid)
    count = 20000
    insert(gateway, *[(f"n{number}", "i" * 500) for number in range(count)])
    with connect(gateway) as client:
        client.sendall(request(2))
        wait_until(lambda: memory(gateway.process.pid) > before + (3 << 20), what="a full queue")
        data = read_end(client)
    assert data.count(b"i" * 500) == count
    assert memory(gateway.process.pid) < before + (8 << 20)


def test_a_local_sandbox_without_a_worker_is_stopped(gateways):
    """It ends with the worker, whatever is recorded."""
    gateway = Gateway()
    gateways.append(gateway)
    gateway.start()
    sandbox = sandbox_id(gateway)
    gateway.end()
    gateway.start()
    (row,) = rows(gateway, "workspaces")
    assert (row["state"], row["sandbox_id"], row["worker"]) == ("stopped", sandbox, 0)


def test_the_workspaces_of_other_gateways_are_listed_and_marked(gateways, provider, shared):
    logins = {"sandbox": provider.login(), "here": {}}
    gateways += [Gateway(options=shared, logins=logins), Gateway(options=shared, logins=logins)]
    one, two = (gateway.start() for gateway in gateways)
    sandbox = sandbox_id(one)
    local = sandbox_id(one, "here")
    place = answer(one, "status")["gateway"]
    assert re.fullmatch("[0-9a-f]{16}", place) and place != answer(two, "status")["gateway"]
    with ssh_start(one, "echo ready; cat", login="here") as client:
        assert client.stdout.readline() == b"ready\n"
        found = workspaces(two)
        assert (found["sandbox"]["sandbox_id"], found["sandbox"]["gateway"]) == (sandbox, place)
        assert (found["here"]["sandbox_id"], found["here"]["gateway"]) == (local, place)
        assert found["here"]["state"] == "running"
        # The own ones carry no mark, and of a shared one there is one row with both in it.
        assert "gateway" not in workspaces(one)["here"]
        assert sandbox_id(two) == sandbox
        row = workspaces(two)["sandbox"]
        assert row["gateway"] == place and row["worker"] in two.pids("worker")
        assert refusal(two, "forget", "sandbox")[0] == "BUSY"
        client.kill()


def test_what_another_gateway_has_done_is_seen_past_a_worker_that_does_nothing(gateways, provider, shared):
    logins = {"sandbox": provider.login()}
    gateways += [Gateway(options=shared, logins=logins), Gateway(options=shared, logins=logins)]
    one, two = (gateway.start() for gateway in gateways)
    first = sandbox_id(one)
    assert sandbox_id(two) == first
    with Rws(two) as idle:
        answer(two, "stop", "sandbox")
        assert workspaces(two)["sandbox"]["state"] == "stopped"
        answer(one, "destroy", "sandbox")
        second = sandbox_id(one)
        assert second != first
        row = workspaces(two)["sandbox"]
        assert (row["state"], row["sandbox_id"]) == ("running", second)
        assert idle.call("exec", command="echo $RWS_SANDBOX_ID")["stdout"].strip() == second


def test_without_the_database_what_has_a_worker_is_listed_and_it_is_said(make_gateway, shared, postgres):
    gateway = make_gateway(options=shared)
    assert ssh(gateway, "true").returncode == 0
    answer(gateway, "start", "sandbox+gone")
    answer(gateway, "stop", "sandbox+gone")
    wait_until(lambda: not gateway.pids("worker", "sandbox+gone"), what="the worker's end")
    assert list(workspaces(gateway)) == ["sandbox", "sandbox+gone"]
    postgres.halt()
    try:
        said = answer(gateway, "workspaces")
        assert [row["workspace"] for row in said["workspaces"]] == ["sandbox"]
        assert said["note"].startswith("the records do not answer (postgresql: ")
        done = admin(gateway, "workspaces")
        assert done.returncode == 0 and len(done.stdout.splitlines()) == 2
        assert done.stderr.startswith("rws: the records do not answer") and done.stderr.count("\n") == 1
    finally:
        postgres.start()
    wait_until(lambda: len(workspaces(gateway)) == 2, what="the database")


# Records without a login


def test_sandboxes_without_a_login_are_warned_of_listed_and_forgotten(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {}, "former": {}})
    assert ssh(gateway, "true").returncode == 0
    former = sandbox_id(gateway, "former+x")
    gateway.end()
    del gateway.logins["former"]
    seen = gateway.log_length()
    gateway.start()
    warning = rf"warning listener.* workspace former\+x: sandbox {former} \(e2b\) is on record"
    gateway.wait_log(warning, start=seen)
    assert "no login sandbox" not in gateway.log_text()
    assert workspaces(gateway)["former+x"]["state"] == "no login"
    # Once at the start, and once at each reload.
    seen = gateway.log_length()
    answer(gateway, "reload")
    gateway.wait_log(warning, start=seen)
    assert refusal(gateway, "destroy", "former+x")[0] == "NOT_FOUND"
    done = admin(gateway, "forget", "former+x")
    assert (done.returncode, done.stdout) == (0, f"former+x: forgotten, sandbox {former}\n")
    assert list(workspaces(gateway)) == ["sandbox"]
    assert former in [sandbox["id"] for sandbox in provider.sandboxes()]
    assert refusal(gateway, "forget", "former+x")[0] == "NOT_FOUND"
    assert [record["login"] for record in sqlite_records(gateway)] == ["sandbox"]


def test_what_is_in_use_is_not_forgotten(make_gateway):
    gateway = make_gateway()
    sandbox = sandbox_id(gateway)
    assert refusal(gateway, "forget", "sandbox")[0] == "BUSY"
    assert [record["sandbox"] for record in sqlite_records(gateway)] == [sandbox]


def test_records_that_hang_are_not_waited_for(make_gateway):
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    insert(gateway, ("gone", "i1"))
    (records,) = gateway.pids("records")
    os.kill(records, signal.SIGSTOP)
    try:
        said = answer(gateway, "workspaces")
        assert [row["workspace"] for row in said["workspaces"]] == ["sandbox"]
        assert "not in time" in said["note"]
        assert refusal(gateway, "forget", "sandbox+gone")[0] == "TIMEOUT"
    finally:
        os.kill(records, signal.SIGCONT)
    # What comes too late disturbs nobody.
    wait_until(lambda: list(workspaces(gateway)) == ["sandbox"], what="the record to be forgotten")


# A database that is no good


def check(gateway, *arguments):
    """rwsd -t, and a start that does not get far; what both say."""
    said = []
    for words in (["-t"], []):
        done = subprocess.run([BUILD / "rwsd", *words, "-f", gateway.configuration, *arguments], cwd=gateway.directory,
                              capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        said.append(done.stderr)
    return said


def newer_tables(gateway):
    change(gateway, "INSERT INTO rwsd_schema (version) VALUES (1000)")


def no_database(gateway):
    for path in database(gateway).parent.glob("records.db-*"):
        path.unlink()
    database(gateway).write_bytes(b"this is no database" * 1000)


def no_rights(gateway):
    database(gateway).chmod(0)


@pytest.mark.parametrize("spoil, words", [
    (newer_tables, "the tables are of version 1000"),
    (no_database, "file is not a database"),
    (no_rights, "unable to open database file"),
], ids=lambda value: getattr(value, "__name__", None))
def test_a_file_that_cannot_be_used_is_refused_by_the_check_and_the_start(make_gateway, spoil, words):
    gateway = make_gateway()
    gateway.end()
    spoil(gateway)
    for said in check(gateway):
        assert words in said
    assert not list(gateway.directory.glob("state/admin.sock"))


@pytest.mark.parametrize("url, words", [
    ("postgresql://user:s3/cr3t@host/db", "no number"),
    ("postgresql://user:s3%zzcr3t@host/db", "invalid percent-encoded token"),
    ("postgresql://user:s3cr3t@[::1/db", "end of string"),
    ("postgresql://user:s3cr3t@host/db?s3cr3t=s3cr3t", "invalid URI query parameter"),
])
def test_a_url_that_is_none_is_refused_without_its_password_being_shown(make_gateway, url, words):
    gateway = make_gateway()
    gateway.end()
    for said in check(gateway, "-o", f"state_database={url}"):
        assert words in said
        assert "cr3t" not in said and "s3" not in said


def test_tables_of_a_newer_program_in_postgresql_are_refused(make_gateway, shared, postgres):
    gateway = make_gateway(options=shared)
    gateway.end()
    postgres.sql("INSERT INTO rwsd_schema (version) VALUES (1000)")
    for said in check(gateway):
        assert "the tables are of version 1000" in said


def test_a_database_that_is_away_is_warned_of_and_waited_for(make_gateway, shared, postgres):
    gateway = make_gateway(options=shared)
    gateway.end()
    postgres.halt()
    try:
        done = subprocess.run([BUILD / "rwsd", "-t", "-f", gateway.configuration], cwd=gateway.directory,
                              capture_output=True, text=True, timeout=TIMEOUT, check=False)
        assert done.returncode == 0
        assert done.stderr.startswith("rwsd: warning: state_database: postgresql: connect: ")
        seen = gateway.log_length()
        gateway.start()
        gateway.wait_log("warning listener.* the database of the records does not answer", start=seen)
        assert ssh(gateway, "true").returncode == 255
    finally:
        postgres.start()
    wait_until(lambda: ssh(gateway, "true").returncode == 0, what="the database")


def test_the_check_makes_nothing(make_gateway, shared, postgres):
    gateway = make_gateway()
    gateway.end()
    shutil.rmtree(gateway.directory / "state/records")
    command = [BUILD / "rwsd", "-t", "-f", gateway.configuration]
    for more in ([], ["-o", f"state_database={shared['state_database']}"]):
        done = subprocess.run([*command, *more], cwd=gateway.directory, capture_output=True, text=True,
                              timeout=TIMEOUT, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    assert not (gateway.directory / "state/records").exists()
    (gateway.directory / "state/records").mkdir()
    assert subprocess.run(command, cwd=gateway.directory, timeout=TIMEOUT, check=False).returncode == 0
    assert not list((gateway.directory / "state/records").iterdir())
    assert postgres.sql("SELECT COUNT(*) FROM pg_class WHERE relname LIKE 'rwsd%'") == [["0"]]
