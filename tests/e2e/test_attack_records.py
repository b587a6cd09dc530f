# SPDX-License-Identifier: ISC
"""Workers that are not themselves any more, and databases that fail: what one login may do to the others' records."""

import contextlib
import os
import random
import sqlite3

import pytest
from clients import ssh
from gateway import wait_until
from records import Postgres
from records_talk import CLAIMED, READY, RecordsProcess, frame, text

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(name="postgres", scope="module")
def postgres_fixture():
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(name="records", params=DATABASES)
def records_fixture(request, postgres):
    if request.param == "postgresql":
        postgres.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    process = RecordsProcess(postgres.url if request.param == "postgresql" else None)
    yield process
    process.stop()


@pytest.fixture(name="shared")
def shared_fixture(postgres):
    postgres.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    process = RecordsProcess(postgres.url)
    yield process
    process.stop()


BAD = {
    "an id longer than an answer can be": frame(READY, text(b"x" * 1048570) + b"\1"),
    "an id that is not UTF-8": frame(READY, text(b"\xff\xfe") + b"\1"),
    "an id of another path": frame(READY, text(b"../../i1") + b"\1"),
    "no id": frame(READY, text(None) + b"\1"),
    "an answer": frame(CLAIMED, b"\0" * 17),
    "another version": frame(READY, text(b"i9") + b"\1", version=2),
    "a promised descriptor": frame(READY, text(b"i9") + b"\1", descriptor=1),
    "a length past the limit": b"\xff\xff\xff\xff" + bytes([READY, 1, 0]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_no_worker_says_ends_its_socket_and_changes_nothing(records, name):
    good, bad = records.attach("good"), records.attach("bad")
    assert good.claim() is None
    good.ready("i1")
    assert bad.claim() is None
    bad.ready("i2")
    bad.sock.sendall(BAD[name])
    assert bad.is_closed()
    assert good.claim() == "i1"
    assert records.attach("bad").claim() == "i2"
    assert records.process.poll() is None


def test_garbage_from_many_workers_harms_nobody(records):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    good = records.attach("good")
    assert good.claim() is None
    good.ready("i1")
    payloads = [b"", b"\0", b"\1", b"\2", b"\4", text(b"i9") + b"\1", text(None) + b"\0"]
    for number in range(300):
        bad = records.attach(f"bad{number % 20}")
        for _ in range(chance.randrange(1, 5)):
            payload = chance.choice([*payloads, chance.randbytes(chance.randrange(20))])
            try:
                bad.sock.sendall(frame(chance.randrange(138, 156), payload, descriptor=chance.random() < 0.05))
            except OSError:
                break
        bad.close()
    assert good.claim() == "i1"
    descriptors = f"/proc/{records.process.pid}/fd"
    wait_until(lambda: len(os.listdir(descriptors)) < 20, what="the end of the workers' sockets")


def plant(gateway, instance):
    """A row of somebody else's hand, about a sandbox of this gateway's that is idle."""
    directory = gateway.directory / "state/records"
    names = "login, instance, place, driver, sandbox, created, state, made, used, idle, holder, until"
    row = ("sandbox", instance, (directory / "place").read_text(), "local", "x", 1, "ready", 1, 1, 1, "", 0)
    with contextlib.closing(sqlite3.connect(directory / "records.db", timeout=30)) as database, database:
        database.execute(f"INSERT INTO rwsd_workspaces ({names}) VALUES ({', '.join('?' * len(row))})", row)


def test_a_workspace_whose_name_is_a_path_is_none_whoever_names_it(make_gateway):
    """Its directory would be handed over to the user that workers become: any directory, by root."""
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    target = gateway.directory / "target"
    target.mkdir()
    owner = target.stat().st_uid
    (gateway.directory / "state/workspaces/sandbox=").mkdir()
    plant(gateway, "=/../../../target")
    found = gateway.wait_log("workspace sandbox=/../../../target: (.*)", timeout=60)
    assert found.group(1) == "login sandbox has no workspace of that name"
    assert target.stat().st_uid == owner
    assert len(gateway.pids("worker")) == 1


def test_what_a_database_remarks_is_no_line_of_the_log(shared, postgres):
    assert shared.attach("agent").claim() is None
    postgres.sql(
        "CREATE FUNCTION remark() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE WARNING E'\\n2026-01-01 error listener[1] forged'; RETURN NEW; END $$; "
        "CREATE TRIGGER remark BEFORE INSERT ON rwsd_workspaces FOR EACH ROW EXECUTE FUNCTION remark()"
    )
    assert shared.attach("other").claim() is None
    assert "\n2026-01-01" not in shared.log() and "WARNING" not in shared.log()


def test_nothing_is_released_while_the_database_is_away(shared, postgres):
    worker = shared.attach("agent", idle=0)
    assert worker.claim() is None
    worker.ready("i1")
    # Asked for by somebody, and merely idle.
    assert worker.release(True)
    postgres.halt()
    try:
        assert not worker.release(True)
        assert not worker.release(False)
    finally:
        postgres.start()
    wait_until(lambda: worker.release(True), what="the database")
