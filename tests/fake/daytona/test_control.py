# SPDX-License-Identifier: ISC
"""The control plane: objects, the state machine, its refusals, lists, idle time."""
import json
import time
from urllib.parse import quote

import pytest

from .client import KEY

NO_ADDRESS = ("bad request: failed to resolve container IP after 3 attempts: no IP address found. Is the Sandbox "
              "started?")


def message(answer):
    """The message of an error, after a look at the rest of it."""
    body = answer.json
    assert body["statusCode"] == answer.status and body["path"].startswith("/api/") and body["error"]
    assert body["timestamp"].endswith("Z")
    return body["message"]


def test_create_answers_the_object_from_before_its_wait(server):
    box = server.create(name="box1", labels={"team": "x"}, env={"A": "1"}, target="eu", autoStopInterval=30)
    assert box.shown["state"] == "creating" and box.shown["desiredState"] == "started"
    assert box.shown["toolboxProxyUrl"] == f"http://127.0.0.1:{server.port}/toolbox"
    by_id, by_name = (server.api("GET", f"/sandbox/{name}").json for name in (box.id, "box1"))
    assert by_id["state"] == "started" and by_id == by_name
    assert (by_id["labels"], by_id["env"], by_id["target"], by_id["autoStopInterval"]) == (
        {"team": "x"}, {"A": "1"}, "eu", 30)
    assert box.execute("echo $A $DAYTONA_SANDBOX_ID; id -un") == (0, f"1 {box.id}\ndaytona\n")
    assert "X-Daytona-Api-Version" in server.api("GET", f"/sandbox/{box.id}").headers


def test_create_from_an_image_builds_first(server):
    server.fake("POST", "config", {"build_ms": 300})
    box = server.create(buildInfo={"dockerfileContent": "FROM debian:12\n"}, cpu=2, memory=4, disk=8)
    assert box.shown["state"] == "pending_build" and (box.shown["cpu"], box.shown["memory"]) == (2, 4)
    assert box.http("GET", "/version").status == 404
    url = server.api("GET", f"/sandbox/{box.id}/build-logs-url").json["url"]
    log = server.request("GET", url.partition("/build")[1] + url.partition("/build")[2] + "?follow=true", headers=KEY)
    assert b"completed" in log.body
    assert "snapshot" not in server.wait(box.id, "started")


@pytest.mark.parametrize("body, status, text", [
    ({"snapshot": "x"}, 400, "Snapshot x not found. Did you add it through the Daytona Dashboard?"),
    ({"cpu": 2}, 400, "Cannot specify Sandbox resources when using a snapshot"),
    ({"snapshot": "daytona-small", "buildInfo": {}}, 400, "Cannot specify a snapshot when using a build info entry"),
    ({"autoStopInterval": -1}, 400, "Auto-stop interval must be non-negative"),
    ({"autoStopInterval": "5"}, 400, "autoStopInterval must be a number"),
    ({"name": "taken"}, 409, "Sandbox with name taken already exists"),
    (b"{", 400, "")])
def test_create_refuses(server, body, status, text):
    server.create(name="taken")
    answer = server.api("POST", "/sandbox", body)
    assert answer.status == status and text in message(answer)


def test_quotas_are_400s(server):
    server.fake("POST", "config", {"quota": {"cpu": 2}, "max_per_sandbox": {"memory": 4}})
    image = {"buildInfo": {"dockerfileContent": "FROM x"}}
    assert message(server.api("POST", "/sandbox", {**image, "memory": 5})).startswith(
        "Memory request 5GB exceeds maximum allowed per sandbox (4GB).")
    first, _ = server.create(), server.create()
    answer = server.api("POST", "/sandbox", {})
    assert answer.status == 400 and message(answer).startswith("Total CPU limit exceeded. Maximum allowed: 2.")
    server.api("POST", f"/sandbox/{first.id}/stop")
    server.wait(first.id, "stopped")
    server.create()
    assert server.api("POST", f"/sandbox/{first.id}/start").status == 400, "a start needs room too"


def test_a_sandbox_that_cannot_start(server):
    server.fake("POST", "config", {"start_fails": "no runner"})
    answer = server.api("POST", "/sandbox", {"name": "lame"})
    assert answer.status == 400 and message(answer) == "Sandbox failed to start: no runner"
    shown = server.api("GET", "/sandbox/lame").json
    assert (shown["state"], shown["errorReason"], shown["recoverable"]) == ("error", "no runner", False)
    for call in ("start", "stop"):
        assert message(server.api("POST", f"/sandbox/lame/{call}")) == "Sandbox is in an errored state"
    assert server.api("DELETE", "/sandbox/lame").status == 200


def test_create_without_the_wait_and_held_polls(server):
    server.fake("POST", "config", {"create_waits": False, "create_ms": 50, "held_polls": 3})
    box = server.create()
    seen = []
    while "started" not in seen:
        seen.append(server.api("GET", f"/sandbox/{box.id}").json["state"])
    assert seen.count("creating") >= 3 and seen[-1] == "started"


def test_stop_ends_processes_and_keeps_files(server, box):
    box.write("/home/daytona/kept", b"x")
    socket = box.pty()
    box.session()
    server.fake("POST", "config", {"stop_ms": 200, "start_ms": 200})
    answer = server.api("POST", f"/sandbox/{box.id}/stop")
    assert (answer.status, answer.json["state"], answer.json["desiredState"]) == (200, "stopping", "stopped")
    gone = box.http("GET", "/version")
    assert (gone.status, gone.body) == (502, b"")
    for method, call in (("POST", "/stop"), ("POST", "/start"), ("DELETE", "")):
        again = server.api(method, f"/sandbox/{box.id}{call}")
        assert (again.status, message(again)) == (409, "Sandbox state change in progress")
    socket.rest()
    assert socket.code == 1006
    server.wait(box.id, "stopped")
    stopped = box.http("GET", "/version")
    assert (stopped.status, stopped.json["message"]) == (400, NO_ADDRESS)
    assert message(server.api("POST", f"/sandbox/{box.id}/stop")) == "Sandbox is not in a stoppable state"
    assert server.api("POST", f"/sandbox/{box.id}/start").json["state"] == "starting"
    server.wait(box.id, "started")
    assert box.read("/home/daytona/kept").body == b"x"
    assert box.http("GET", "/process/pty").json == {"sessions": []} and box.http("GET", "/process/session").json == []


def test_a_request_under_way_is_a_502_when_the_sandbox_stops(server, box):
    connection = server.connect()
    connection.request("POST", box.prefix + "/process/execute", json.dumps({"command": "touch up; sleep 1000"}), KEY)
    while box.read("/home/daytona/up").status != 200:
        pass
    server.api("POST", f"/sandbox/{box.id}/stop")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (502, b"")


def test_delete_frees_the_name_at_once(server):
    server.fake("POST", "config", {"destroy_ms": 300})
    box = server.create(name="again")
    assert server.api("DELETE", "/sandbox/again").json["state"] == "destroying"
    assert server.api("GET", "/sandbox/again").status == 404
    assert server.api("GET", f"/sandbox/{box.id}").json["state"] == "destroying"
    other = server.create(name="again")
    while server.api("GET", f"/sandbox/{box.id}").status != 404:
        pass
    assert message(server.api("GET", f"/sandbox/{box.id}")) == f"Sandbox with ID or name {box.id} not found"
    answer = box.http("GET", "/version")
    assert answer.status == 404 and "sandbox container not found" in answer.json["message"]
    assert other.execute("true")[0] == 0


def test_an_ephemeral_sandbox_is_destroyed_by_its_stop(server):
    box = server.create(autoDeleteInterval=0)
    assert server.api("POST", f"/sandbox/{box.id}/stop").json["desiredState"] == "destroyed"
    while server.api("GET", f"/sandbox/{box.id}").status != 404:
        pass


def test_archive_and_restore(server, box):
    box.write("/home/daytona/kept", b"x")
    assert message(server.api("POST", f"/sandbox/{box.id}/archive")) == "Sandbox is not stopped"
    server.api("POST", f"/sandbox/{box.id}/stop")
    server.wait(box.id, "stopped")
    server.api("POST", f"/sandbox/{box.id}/archive")
    server.wait(box.id, "archived")
    assert box.http("GET", "/version").status == 404
    assert server.api("POST", f"/sandbox/{box.id}/start").json["state"] == "restoring"
    server.wait(box.id, "started")
    assert box.read("/home/daytona/kept").body == b"x"


def test_auto_stop_spares_open_sockets_but_not_processes(server):
    server.fake("POST", "config", {"minute_s": 0.4})
    watched, alone = server.create(autoStopInterval=1), server.create(autoStopInterval=1)
    socket = watched.pty()
    alone.execute("setsid sleep 1000 >/dev/null 2>&1 </dev/null &")
    server.wait(alone.id, "stopped")
    assert alone.state()["ended"] == "auto-stop"
    time.sleep(0.5)
    assert server.api("GET", f"/sandbox/{watched.id}").json["state"] == "started"
    socket.close()
    server.wait(watched.id, "stopped")


def test_activity_postpones_the_auto_stop(server):
    server.fake("POST", "config", {"minute_s": 1.0})
    touched, skipped = server.create(autoStopInterval=1), server.create(autoStopInterval=1)
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        assert server.api("POST", f"/sandbox/{touched.id}/last-activity", {}).status == 201
        skipped.http("GET", "/version", **{"X-Daytona-Skip-Last-Activity-Update": "true"})
        time.sleep(0.05)
    assert server.api("GET", f"/sandbox/{touched.id}").json["state"] == "started"
    assert server.api("GET", f"/sandbox/{skipped.id}").json["state"] == "stopped"


def test_intervals_can_be_changed(server, box):
    for call, field, minutes in (("autostop", "autoStopInterval", 0), ("autodelete", "autoDeleteInterval", -1),
                                 ("autoarchive", "autoArchiveInterval", 60)):
        assert server.api("POST", f"/sandbox/{box.id}/{call}/{minutes}").json[field] == minutes
    assert server.api("POST", f"/sandbox/{box.id}/autostop/-1").status == 400
    assert server.api("POST", f"/sandbox/{box.id}/autostop/x").status == 400


def test_list_filters_and_pages(server):
    boxes = [server.create(name=f"n{n}", labels={"team": "x", "n": str(n)}) for n in range(3)]
    server.create(labels={"team": "y"})

    def names(query):
        page = server.api("GET", "/sandbox?" + query).json
        return [box["name"] for box in page["items"]], page["nextCursor"]
    labels = "labels=" + quote(json.dumps({"team": "x"}))
    assert names(labels) == (["n2", "n1", "n0"], None)
    first, cursor = names(labels + "&limit=2")
    assert (first, names(f"{labels}&limit=2&cursor={cursor}")) == (["n2", "n1"], (["n0"], None))
    assert names("name=n1") == (["n1"], None)
    server.api("POST", f"/sandbox/{boxes[0].id}/stop")
    server.wait("n0", "stopped")
    assert names(labels + "&states=stopped") == (["n0"], None)
    assert message(server.api("GET", "/sandbox?labels=%7B")) == "Invalid labels JSON format"
    assert server.api("GET", "/sandbox?limit=201").status == 400
    item = server.api("GET", "/sandbox").json["items"][0]
    assert "env" not in item and "toolboxProxyUrl" not in item
    assert server.api("GET", "/sandbox/paginated?page=2&limit=3").json["total"] == 4


def test_lists_trail_and_lookups_are_cached(server):
    server.fake("POST", "config", {"list_lag_ms": 60000, "lookup_cache_ms": 60000})
    box = server.create()
    assert server.api("GET", "/sandbox").json["items"] == []
    assert server.api("GET", f"/sandbox/{box.id}").json["state"] == "started"
    server.api("DELETE", f"/sandbox/{box.id}")
    assert server.api("GET", f"/sandbox/{box.id}").json["state"] == "started"


def test_labels_are_replaced(server, box):
    assert server.api("PUT", f"/sandbox/{box.id}/labels", {"labels": {"a": "b"}}).json == {"labels": {"a": "b"}}
    assert server.api("GET", f"/sandbox/{box.id}").json["labels"] == {"a": "b"}
    assert server.api("PUT", f"/sandbox/{box.id}/labels", {}).status == 400


def test_names_are_decoded_from_the_path(server):
    box = server.create(name="a/b c")
    assert server.api("GET", "/sandbox/a%2Fb%20c").json["id"] == box.id


def test_the_toolbox_url_may_have_to_be_asked_for(server):
    server.fake("POST", "config", {"toolbox_url_in_object": False})
    box = server.create()
    assert "toolboxProxyUrl" not in box.shown
    assert server.api("GET", f"/sandbox/{box.id}/toolbox-proxy-url").json["url"].endswith("/toolbox")


@pytest.mark.parametrize("headers, status", [
    ({}, 401), ({"Authorization": "Bearer nope"}, 401), (KEY, 200),
    ({"Authorization": "Bearer jwt", "X-Daytona-Organization-ID": "org"}, 200)])
def test_authentication(server, headers, status):
    answer = server.request("GET", "/api/sandbox", headers=headers)
    assert answer.status == status
    if status == 401:
        assert message(answer) == "Invalid credentials"


def test_the_proxy_remembers_its_verdicts(server, box):
    assert box.http("GET", "/version").status == 200
    wrong = box.http("GET", "/version", Authorization="Bearer dtn_other_key")
    assert wrong.status == 200, "any key of the right form is good"
    server.fake("POST", "config", {"api_keys": ["dtn_new"]})
    assert box.http("GET", "/version").status == 200, "the old verdict holds"
    denied = box.http("GET", "/version", Authorization="Bearer bad")
    assert denied.status == 401
    assert denied.json["message"] == "unauthorized: authentication failed: Bearer token is invalid"
    missing = server.request("GET", box.prefix + "/version")
    assert missing.status == 401 and missing.json["message"].startswith("unauthorized: missing authentication: ")


def test_wrong_addresses(server):
    page = server.request("GET", "/sandbox", headers=KEY)
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert message(server.api("GET", "/nothing")) == "Cannot GET /api/nothing"
    assert server.api("GET", "/socket.io/?EIO=4").status == 404
    unknown = server.request("GET", "/toolbox/00000000-0000-4000-8000-000000000000/version", headers=KEY)
    assert unknown.status == 401, "the access check comes first"


def test_a_new_ssh_token_revokes_the_others(server, box):
    first, second = (server.api("POST", f"/sandbox/{box.id}/ssh-access?expiresInMinutes=10").json for _ in range(2))
    assert len(first["token"]) == 32
    valid = [server.api("GET", f"/sandbox/ssh-access/validate?token={grant['token']}").json
             for grant in (first, second)]
    assert valid == [{"valid": False, "sandboxId": None}, {"valid": True, "sandboxId": box.id}]
