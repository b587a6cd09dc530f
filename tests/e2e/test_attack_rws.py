# SPDX-License-Identifier: ISC
"""Requests that are too many, too large or too clever are answered, and leave the workspace as it was."""

import contextlib
import json

import pytest
from attacker import memory_peak
from clients import TIMEOUT, paramiko_connect, ssh
from gateway import processes_with, wait_until

MARK = "sleep 86398"
# KiB; one line of the greatest length in two stages of its way, and what a worker takes anyhow.
MEMORY_MAX = 64 * 1024


class Requests:
    """A channel of the rws subsystem, line by line."""

    def __init__(self, client):
        self.channel = client.get_transport().open_session()
        self.channel.settimeout(TIMEOUT)
        self.channel.invoke_subsystem("rws")
        self.lines = self.channel.makefile("rb")

    def send(self, *requests):
        self.channel.sendall(b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in requests))

    def answer(self):
        return json.loads(self.lines.readline())


@contextlib.contextmanager
def attack(gateway):
    client = paramiko_connect(gateway)
    try:
        yield Requests(client)
    finally:
        client.close()
    assert ssh(gateway, "echo well").stdout == b"well\n"


def execute(number, command=MARK):
    return {"id": number, "method": "exec", "params": {"command": command}}


@pytest.mark.core
def test_a_sandbox_destroyed_among_commands_takes_only_those_before_it(gateway):
    """Those that waited were told that they had ended, and were started all the same."""
    after = "echo in the next"
    with attack(gateway) as requests:
        destroy = {"id": 1, "method": "sandbox.destroy"}
        requests.send(execute(0), destroy, execute(2, after), execute(3, after))
        answers = {answer["id"]: answer for answer in (requests.answer() for _ in range(4))}
        assert answers[1]["result"]["state"] == "destroyed"
        assert answers[0].get("error") or answers[0]["result"]["exit_code"] != 0
        for number in (2, 3):
            assert answers[number]["result"]["stdout"] == "in the next\n"
        wait_until(lambda: not processes_with(MARK), what="the end of the first command")


@pytest.mark.parametrize("value", ["{}", "[]", '""', "0"])
def test_a_line_of_many_values_takes_no_more_than_its_size(gateway, value):
    """json-c made 4 GB of 16 MiB."""
    with attack(gateway) as requests:
        requests.channel.sendall(b"[" + (value + ",").encode() * 4_000_000 + b"0]\n")
        assert requests.answer()["error"]["data"]["code"] == "TOO_LARGE"
        (worker,) = gateway.pids("worker")
        assert memory_peak(worker) < MEMORY_MAX


def test_requests_without_an_id_are_limited_like_others(gateway):
    with attack(gateway) as requests:
        requests.send(*[{key: value for key, value in execute(0).items() if key != "id"}] * 500)
        requests.send({"id": 1, "method": "info"})
        assert requests.answer()["error"]["data"]["code"] == "BUSY"
        assert len(processes_with(f"sh -c {MARK}")) <= 64
    wait_until(lambda: not processes_with(MARK), what="the end of the commands")


def test_an_id_is_not_echoed_at_any_length(gateway):
    with attack(gateway) as requests:
        for number in ("i" * 100_000, "0." + "1" * 100_000):
            line = json.dumps({"jsonrpc": "2.0", "id": "ID", "method": "nosuch"})
            text = json.dumps(number) if number[0] == "i" else number
            requests.channel.sendall(line.replace('"ID"', text).encode() + b"\n")
            answer = requests.answer()
            assert answer["id"] is None and "id must be" in answer["error"]["message"]


@pytest.mark.core
def test_a_race_of_requests_and_their_cancellations_answers_each_once(gateway):
    with attack(gateway) as requests:
        count = 300
        for number in range(count):
            requests.send(execute(number), {"method": "$/cancelRequest", "params": {"id": number}})
        seen = sorted(requests.answer()["id"] for _ in range(count))
        assert seen == list(range(count))
    wait_until(lambda: not processes_with(MARK), what="the end of the commands")


@pytest.mark.core
@pytest.mark.parametrize(
    "line",
    [
        b"{" * 100_000,
        b"[" * 100_000,
        b"\xff\xfe\x00",
        b"nul",
        b'"',
        b"{}{}",
        b'{"jsonrpc":"2.0","id":{},"method":"info"}',
        b'{"jsonrpc":"2.0","id":1,"method":"exec","params":{"command":"echo \\u0000"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"exec","params":{"command":"true","timeout":1e300}}',
        b'{"jsonrpc":"2.0","id":1,"method":"exec","params":{"command":"true","env":{"A=B":"c"}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"read","params":{"path":{"base64":"%%%"}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"read","params":{"path":"../../../etc/passwd"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"snapshot.restore","params":{"id":"../../../etc"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"snapshot.delete","params":{"id":".."}}',
    ],
    ids=range(14),
)
def test_a_malformed_request_gets_an_error(gateway, line):
    with attack(gateway) as requests:
        requests.channel.sendall(line + b"\n")
        assert "error" in requests.answer()
