# SPDX-License-Identifier: ISC
"""The life of a Vercel sandbox: made, found again, resumed, pushed back, given back; and what it all costs."""

import base64
import json
import time
import urllib.request

import pytest
from clients import ssh, ssh_start
from gateway import wait_until

DRIVERS = ("vercel",)

pytestmark = pytest.mark.usefixtures("nothing_left")


def make_token(**claims):
    """An OIDC token, whose signature nobody here verifies."""
    claims = {"owner_id": "team_oidc", "project_id": "prj_oidc", **claims}
    parts = [{"alg": "RS256"}, claims]
    coded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*coded, "c2lnbmF0dXJl"])


# Making and finding


def test_a_sandbox_is_made_as_the_block_says(make_gateway, provider):
    gateway = make_gateway(
        options={"gateway": "gw-1"},
        logins={"sandbox": {"image": "node:24", "vcpus": 4, "ports": "3000 8080", "lifetime": "10m"}},
    )
    assert ssh(gateway, "true").returncode == 0
    (body,) = provider.bodies("POST", "/v3/sandboxes")
    name = body.pop("name")
    assert name.startswith("rws-")
    assert body == {
        "projectId": "prj_test",
        "persistent": False,
        "ports": [3000, 8080],
        "timeout": 600000,
        "image": "node:24",
        "resources": {"vcpus": 4, "memory": 8192},
        "tags": {"rws-managed": "true", "rws-instance": "gw-1/sandbox"},
        "__interactive": True,
    }


def test_a_runtime_is_asked_for_where_runtimes_are(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"runtime": "node24"}})
    assert ssh(gateway, "pwd").stdout == b"/vercel/sandbox\n"
    (body,) = provider.bodies("POST", "/v2/sandboxes")
    assert body["runtime"] == "node24" and "image" not in body


def test_credentials_may_come_from_the_environment(make_gateway, provider, monkeypatch):
    monkeypatch.setattr(provider, "login", lambda: {"driver": "vercel"})
    monkeypatch.setenv("VERCEL_TOKEN", provider.key)
    monkeypatch.setenv("VERCEL_TEAM_ID", "team_env")
    monkeypatch.setenv("VERCEL_PROJECT_ID", "prj_env")
    monkeypatch.setenv("VERCEL_API_URL", f"{provider.url}/api/")
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    assert provider.bodies("POST", "/v3/sandboxes")[0]["projectId"] == "prj_env"
    assert all("teamId" not in request["query"] or "team_env" in str(request["query"]) for request in provider.requests())
    assert provider.key not in gateway.log_text()


def test_an_oidc_token_names_team_and_project(make_gateway, provider, monkeypatch):
    monkeypatch.setattr(provider, "login", lambda: {"driver": "vercel", "api_url": f"{provider.url}/api"})
    token = make_token(exp=int(time.time()) + 600)
    monkeypatch.setenv("VERCEL_OIDC_TOKEN", token)
    gateway = make_gateway()
    assert ssh(gateway, "echo on").stdout == b"on\n"
    assert provider.bodies("POST", "/v3/sandboxes")[0]["projectId"] == "prj_oidc"
    assert "the OIDC token ends at" in gateway.log_text()
    assert token not in gateway.log_text()


def test_an_oidc_token_that_ended_is_told_in_words_and_not_sent(make_gateway, provider, monkeypatch):
    monkeypatch.setattr(provider, "login", lambda: {"driver": "vercel", "api_url": f"{provider.url}/api"})
    monkeypatch.setenv("VERCEL_OIDC_TOKEN", make_token(exp=1700000000))
    gateway = make_gateway()
    done = ssh(gateway, "true")
    assert done.returncode == 255
    assert b"rws: UNAVAILABLE: vercel: the OIDC token ended at 2023-11-14 22:13 UTC: get a new one" in done.stderr
    assert provider.requests() == []


def test_a_named_sandbox_is_stopped_at_the_end_and_resumed_later(make_gateway, provider):
    options = {"sandbox": {"name": "mine", "idle_timeout": "100ms"}}
    first = make_gateway(logins=options)
    assert ssh(first, "echo here >file").returncode == 0
    wait_until(lambda: provider.only_sandbox()["status"] == "stopped", what="a stop")
    first.stop()
    (session,) = provider.only_sandbox()["sessions"]
    second = make_gateway(options={"gateway": "another"}, logins=options)
    assert ssh(second, "cat file").stdout == b"here\n"
    assert provider.only_sandbox()["name"] == "mine"
    assert len(provider.only_sandbox()["sessions"]) == 2
    assert provider.only_sandbox()["currentSessionId"] != session["id"]


def test_instances_of_a_named_login_are_sandboxes_of_their_own(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"name": "mine", "max_instances": 10}})
    assert ssh(gateway, "echo one >file").returncode == 0
    assert ssh(gateway, "cat file", login="sandbox+two").returncode == 1
    assert sorted(sandbox["name"] for sandbox in provider.sandboxes()) == ["mine", "mine--two"]


def test_a_name_that_is_taken_meanwhile_is_used(make_gateway, provider):
    """eve#394: of two creates of one name the slower is refused; then the sandbox is there all the same."""
    first = make_gateway(logins={"sandbox": {"name": "mine", "on_dispose": "keep"}})
    assert ssh(first, "echo here >file").returncode == 0
    first.stop()
    provider.fault("/sandboxes/mine$", {"error": "not_found"}, method="GET")
    second = make_gateway(logins={"sandbox": {"name": "mine"}})
    assert ssh(second, "cat file").stdout == b"here\n"
    assert provider.struck() == 1
    assert provider.only_sandbox()["name"] == "mine"


def test_a_sandbox_is_found_again_by_its_tag(make_gateway, provider):
    first = make_gateway(options={"gateway": "gw-1"}, logins={"sandbox": {"on_dispose": "keep"}})
    assert ssh(first, "echo here >file").returncode == 0
    first.stop()
    second = make_gateway(options={"gateway": "gw-1"})
    assert ssh(second, "cat file").stdout == b"here\n"
    other = make_gateway(options={"gateway": "gw-2"})
    assert ssh(other, "cat file").returncode == 1


def test_a_sandbox_is_attached_to_by_its_name_and_kept(make_gateway, provider):
    first = make_gateway(logins={"sandbox": {"name": "mine", "on_dispose": "keep"}})
    assert ssh(first, "echo here >file").returncode == 0
    first.stop()
    second = make_gateway(logins={"sandbox": {"instances": "attach", "idle_timeout": "100ms"}})
    assert ssh(second, "cat file", login="sandbox=mine").stdout == b"here\n"
    second.stop()
    assert provider.only_sandbox()["status"] == "running"


def test_a_sandbox_of_others_without_terminals_is_told_as_such(make_gateway, provider):
    """Vercel's own command line asks for them too, when it makes a sandbox; its SDK does not."""
    request = urllib.request.Request(
        f"{provider.url}/api/v3/sandboxes?teamId=team_test",
        headers={"Authorization": f"Bearer {provider.key}", "Content-Type": "application/json"},
        data=json.dumps({"projectId": "prj_test", "name": "theirs", "ports": []}).encode(),
    )
    urllib.request.urlopen(request, timeout=30).close()
    gateway = make_gateway(logins={"sandbox": {"instances": "attach"}})
    done = ssh(gateway, "true", login="sandbox=theirs")
    assert done.returncode == 255
    assert b"rws: UNSUPPORTED: sandbox theirs was not made to have terminals" in done.stderr
    assert provider.only_sandbox()["status"] == "running"


def test_an_unknown_sandbox_is_one_line(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"instances": "attach"}})
    done = ssh(gateway, "true", login="sandbox=nosuch")
    assert done.returncode == 255
    assert b"rws: NOT_FOUND: vercel: sandbox nosuch: 404" in done.stderr
    assert provider.sandboxes() == []


def test_what_has_no_snapshot_is_made_anew_when_it_is_ours(make_gateway, provider):
    """eve#2373: it holds nothing any more, only the name."""
    gateway = make_gateway(logins={"sandbox": {"name": "mine"}})
    assert ssh(gateway, "true").returncode == 0
    provider.end_sandbox("kill")
    wait_until(lambda: ssh(gateway, "true").returncode == 0, what="another one")
    assert provider.only_sandbox()["name"] == "mine"


def test_what_has_no_snapshot_is_not_deleted_when_it_is_not_ours(make_gateway, provider):
    first = make_gateway(options={"gateway": "gw-1"}, logins={"sandbox": {"name": "mine", "on_dispose": "keep"}})
    assert ssh(first, "true").returncode == 0
    first.stop()
    provider.end_sandbox("kill")
    second = make_gateway(options={"gateway": "gw-2"}, logins={"sandbox": {"name": "mine"}})
    done = ssh(second, "true")
    assert done.returncode == 255
    assert b"mine cannot be resumed, as it has no snapshot, and is not ours" in done.stderr
    assert provider.only_sandbox()["name"] == "mine"


@pytest.mark.parametrize("error", ["snapshot_not_found", "sandbox_stopped"])
def test_one_wrong_word_does_not_cost_a_sandbox_its_files(make_gateway, provider, error):
    first = make_gateway(options={"gateway": "gw-1"}, logins={"sandbox": {"name": "mine", "on_dispose": "keep"}})
    assert ssh(first, "echo here >file").returncode == 0
    first.stop()
    provider.fault("/sandboxes/mine$", {"error": error}, method="GET")
    second = make_gateway(options={"gateway": "gw-1"}, logins={"sandbox": {"name": "mine"}})
    assert ssh(second, "cat file").stdout == b"here\n"
    assert provider.struck() == 1
    assert not [one for one in provider.requests() if one["method"] == "DELETE"]


def test_a_slow_start_is_waited_for_and_told(make_gateway, provider):
    provider.config(boot_ms=1500, create_waits=False)
    gateway = make_gateway()
    done = ssh(gateway, "-tt", "echo on")
    said = done.stdout + done.stderr
    assert b"starting sandbox..." in said and b"sandbox-id: rws-" in said and b"on" in done.stdout


# The end


@pytest.mark.parametrize(
    ("dispose", "status"), [("destroy", None), (None, None), ("stop", "stopped"), ("keep", "running")]
)
def test_a_sandbox_is_given_back_as_asked(make_gateway, provider, dispose, status):
    options = {"idle_timeout": "100ms", **({"on_dispose": dispose} if dispose else {})}
    gateway = make_gateway(logins={"sandbox": options})
    assert ssh(gateway, "true").returncode == 0
    wait_until(
        lambda: [sandbox["status"] for sandbox in provider.sandboxes()] == ([status] if status else []),
        what=f"{dispose}",
    )
    if status == "stopped":
        assert provider.only_sandbox()["persistent"] and provider.only_sandbox()["currentSnapshotId"]


def test_destroy_takes_the_snapshots_along(make_gateway, provider):
    first = make_gateway(logins={"sandbox": {"name": "mine", "idle_timeout": "100ms"}})
    assert ssh(first, "true").returncode == 0
    wait_until(lambda: provider.only_sandbox()["status"] == "stopped", what="a stop")
    first.stop()
    second = make_gateway(logins={"sandbox": {"name": "mine", "idle_timeout": "100ms", "on_dispose": "destroy"}})
    assert ssh(second, "true").returncode == 0
    wait_until(lambda: provider.sandboxes() == [], what="destruction")
    (request,) = [one for one in provider.requests() if one["method"] == "DELETE"]
    assert "deleteOrphanSnapshots" in str(request["query"])


def test_never_delete_stops_and_keeps_the_files(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"never_delete": "on", "idle_timeout": "100ms"}})
    assert ssh(gateway, "echo here >file").returncode == 0
    wait_until(lambda: provider.only_sandbox()["status"] == "stopped", what="a stop")
    assert ssh(gateway, "cat file").stdout == b"here\n"
    assert not [one for one in provider.requests() if one["method"] == "DELETE"]


# Its lifetime


def test_the_end_is_pushed_back_while_it_is_used(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"lifetime": "15s"}})
    client = ssh_start(gateway, "echo on; cat")
    assert client.stdout.readline() == b"on\n"
    wait_until(lambda: provider.bodies("POST", "/extend-timeout"), timeout=30, what="an extension")
    assert all(1000 <= body["duration"] <= 15000 for body in provider.bodies("POST", "/extend-timeout"))
    client.stdin.close()
    assert client.wait(60) == 0


def test_the_cap_of_the_plan_is_said_once(make_gateway, provider):
    provider.config(max_timeout_ms=16000)
    gateway = make_gateway(logins={"sandbox": {"lifetime": "15s"}})
    client = ssh_start(gateway, "echo on; cat")
    assert client.stdout.readline() == b"on\n"
    assert gateway.wait_log("cannot live longer on this plan", 30)
    done = client.wait(60)
    assert done == 255  # its sandbox ended
    assert gateway.log_text().count("cannot live longer on this plan") == 1


def test_a_sandbox_that_ended_is_noticed_and_resumed(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"name": "mine"}})
    client = ssh_start(gateway, "echo here >file; echo on; cat")
    assert client.stdout.readline() == b"on\n"
    provider.end_sandbox("expire")
    assert client.wait(60) == 255
    gateway.wait_log("is lost: ")
    assert ssh(gateway, "cat file").stdout == b"here\n"
    assert len(provider.only_sandbox()["sessions"]) == 2


# Secrets


def test_nothing_of_a_command_is_in_a_request(make_gateway, provider):
    gateway = make_gateway(logins={"sandbox": {"env": ["SECRET=hidden-value-1"]}})
    done = ssh(gateway, "echo $SECRET; echo hidden-value-2")
    assert done.stdout == b"hidden-value-1\nhidden-value-2\n"
    commands = [command for sandbox in provider.sandboxes() for session in sandbox["sessions"]
                for command in session["commands"]]
    assert commands and "hidden-value" not in json.dumps(commands)
    for request in provider.requests():
        if request["path"] != "/ws/interactive":
            assert "hidden-value" not in request["body"] + request["path"] + str(request["query"])


# What it costs, in trips: requests to the provider


def test_a_warm_command_waits_for_no_request(make_gateway, provider):
    """Its terminals are there already: it is told to them. What is asked for is the next command's."""
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    wait_until(
        lambda: sum(one["path"] == "/ws/interactive" and one["bytes_out"] > 0 for one in provider.requests()) >= 4,
        what="terminals for the next command",
    )
    assert ssh(gateway, "true").returncode == 0
    wait_until(
        lambda: sum(one["path"] == "/ws/interactive" and one["bytes_out"] > 0 for one in provider.requests()) >= 6,
        what="terminals for the next command",
    )
    provider.call("POST", "delay", {"ms": 20000})
    assert ssh(gateway, "echo quick", timeout=15).stdout == b"quick\n"
    provider.call("POST", "delay", {"ms": 0})


def test_input_takes_no_request_a_chunk(make_gateway, provider):
    gateway = make_gateway()
    assert ssh(gateway, "true").returncode == 0
    data = b"0123456789abcdef" * 65536
    provider.forget_requests()
    client = ssh_start(gateway, "cat")
    output, _ = client.communicate(data, timeout=60)
    assert output == data
    assert sum(provider.counts().values()) <= 8
