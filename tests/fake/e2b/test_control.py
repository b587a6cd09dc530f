# SPDX-License-Identifier: ISC
"""The control plane: codes and bodies of the sheet's checklist, item 1."""
import datetime
import time
from urllib.parse import quote

import pytest

from .client import KEY


def iso_seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def lifetime(server, box):
    return iso_seconds(server.api("GET", f"/sandboxes/{box.id}").json["endAt"]) - time.time()


def test_create_v2_always_has_a_token_and_lives_300_s(server):
    box = server.create()
    assert box.id.startswith("i") and box.id.isalnum() and box.token
    assert box.shown["envdVersion"] == "0.6.13" and box.shown["domain"] is None
    assert 290 < lifetime(server, box) <= 300
    assert server.api("GET", f"/sandboxes/{box.id}").json["envdAccessToken"] == box.token


def test_create_v1_honours_secure_and_lives_15_s(server):
    for body, has_token in (({}, False), ({"secure": False}, False), ({"secure": True}, True)):
        answer = server.api("POST", "/sandboxes", {"templateID": "base", **body})
        assert answer.status == 201
        assert ("envdAccessToken" in answer.json) is has_token
    left = [box["ttl"] for box in server.fake("GET", "sandboxes")]
    assert all(10 < ttl <= 15 for ttl in left)


@pytest.mark.parametrize("headers, status", [
    ({}, 401), ({"X-API-Key": "nope"}, 401), ({"X-API-Key": "e2b_blocked"}, 403),
    ({"Authorization": "Bearer sk_e2b_x"}, 200)])
def test_authentication(server, headers, status):
    server.fake("POST", "config", {"blocked_keys": ["e2b_blocked"]})
    answer = server.request("GET", "/v2/sandboxes", headers=headers)
    assert answer.status == status
    if status != 200:
        assert answer.json["code"] == status and isinstance(answer.json["message"], str)


@pytest.mark.parametrize("body, status, text", [
    ({}, 400, "validation error: "),
    (b"{", 400, "validation error: "),
    ({"templateID": 5}, 400, "validation error: "),
    ({"templateID": "base", "metadata": {"a": 1}}, 400, "validation error: "),
    ({"templateID": "base", "timeout": 0}, 400, "Timeout must be greater than 0"),
    ({"templateID": "base", "timeout": 90000}, 400, "Timeout cannot be greater than 24 hours"),
    ({"templateID": "base", "autoPauseMemory": False}, 400, "autoPauseMemory=false only applies"),
    ({"templateID": "private"}, 403, "access"),
    ({"templateID": "x"}, 404, "template 'x' not found")])
def test_create_refuses(server, body, status, text):
    server.fake("POST", "config", {"forbidden_templates": ["private"], "templates": ["base", "private"]})
    answer = server.api("POST", "/v2/sandboxes", body)
    assert (answer.status, answer.json["code"]) == (status, status)
    assert text in answer.json["message"]


def test_self_hosted_servers_have_no_create_v2(server):
    server.fake("POST", "config", {"v2_create": False})
    assert server.api("POST", "/v2/sandboxes", {"templateID": "base"}).status == 405
    assert server.api("POST", "/sandboxes", {"templateID": "base"}).status == 201


def test_concurrency_limit_is_429_without_retry_after(server):
    server.fake("POST", "config", {"max_concurrent": 1})
    server.create()
    answer = server.api("POST", "/sandboxes", {"templateID": "base"})
    assert answer.status == 429 and "maximum number of concurrent" in answer.json["message"]
    assert "Retry-After" not in answer.headers


@pytest.mark.parametrize("name, status, code", [
    ("rate_limited", 429, None), ("no_capacity", 503, "sandbox_capacity_unavailable"),
    ("no_node", 503, "sandbox_no_compatible_node"), ("placement_timeout", 504, "sandbox_placement_timeout"),
    ("create_failed", 500, "sandbox_create_failed")])
def test_named_errors(server, name, status, code):
    server.knob("^/sandboxes$", {"error": name})
    answer = server.api("POST", "/sandboxes", {"templateID": "base"})
    assert (answer.status, answer.json["code"], answer.json.get("error_code")) == (status, status, code)
    assert ("Retry-After" in answer.headers) is (name == "rate_limited")
    assert server.api("POST", "/sandboxes", {"templateID": "base"}).status == 201


def test_timeout_sets_longer_and_shorter_and_is_clamped(server, box):
    for seconds, expected in ((7200, 7200), (60, 60), (10 ** 6, 24 * 3600)):
        assert server.api("POST", f"/sandboxes/{box.id}/timeout", {"timeout": seconds}).status == 204
        assert expected - 10 < lifetime(server, box) <= expected
    assert server.api("POST", f"/sandboxes/{box.id}/timeout", {"timeout": -1}).status == 400
    assert server.api("POST", f"/sandboxes/{box.id}/timeout").status == 400
    assert server.api("POST", "/sandboxes/inone/timeout", {"timeout": 1}).status == 404
    assert server.api("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 0}).status == 204
    assert server.api("GET", f"/sandboxes/{box.id}").status == 404


def test_refreshes_only_extend(server, box):
    assert server.api("POST", f"/sandboxes/{box.id}/refreshes", {"duration": 20}).status == 204
    assert lifetime(server, box) > 3500
    assert server.api("POST", f"/sandboxes/{box.id}/refreshes", {"duration": 3601}).status == 400


def test_the_ttl_really_ends_and_cuts_streams(server):
    box = server.create(timeout=1)
    stream = box.start("sleep 1000")
    assert stream.event()[0] == "start"
    with pytest.raises(ConnectionError):
        stream.rest()
    assert box.state()["ended"] == "expired"
    assert box.http("GET", "/health").status == 502


def test_connect_never_shortens_and_resumes(server, box):
    path = f"/sandboxes/{box.id}/connect"
    assert server.api("POST", path).status == 400
    answer = server.api("POST", path, {"timeout": 60})
    assert (answer.status, answer.json["envdAccessToken"]) == (200, box.token)
    assert lifetime(server, box) > 3500
    assert server.api("POST", f"/sandboxes/{box.id}/pause", {}).status == 204
    assert server.api("POST", path, {"timeout": 60}).status == 201
    assert lifetime(server, box) <= 60
    assert server.api("POST", "/v2" + path).status == 200
    assert server.api("POST", "/v2/sandboxes/inone/connect").status == 404
    assert server.api("POST", "/v2/sandboxes/i_bad!/connect").status == 400


def test_old_resume(server, box):
    path = f"/sandboxes/{box.id}/resume"
    assert server.api("POST", path, {"timeout": 60}).status == 409
    server.api("POST", f"/sandboxes/{box.id}/pause", {})
    assert server.api("POST", path).status == 400
    assert server.api("POST", path, {"timeout": 60}).status == 201


def test_pause(server, box):
    path = f"/sandboxes/{box.id}/pause"
    assert server.api("POST", path, {}).status == 204
    again = server.api("POST", path, {})
    assert again.status == 409 and "already paused" in again.json["message"]
    assert server.api("POST", "/sandboxes/inone/pause", {}).status == 404
    assert server.api("GET", f"/sandboxes/{box.id}").json["state"] == "paused"
    assert server.api("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 60}).status == 404
    assert box.http("GET", "/health").json == {"sandboxId": box.id, "message": "The sandbox was not found", "code": 502}
    assert server.api("DELETE", f"/sandboxes/{box.id}").status == 204


def test_pause_without_memory_is_a_reboot(server, box):
    box.start("touch kept; sleep 1000 & echo up; wait").until("data")
    server.api("POST", f"/sandboxes/{box.id}/pause", {"memory": False})
    assert server.api("POST", f"/v2/sandboxes/{box.id}/connect", {}).status == 201
    assert box.rpc("process.Process/List", {}).json == {}
    assert box.run("ls")[0] == b"kept\n"


def test_while_it_is_moving(server, box):
    server.fake("POST", "config", {"pause_ms": 500})
    connection = server.connect()
    connection.request("POST", f"/sandboxes/{box.id}/pause", b"{}", {**KEY, "Content-Type": "application/json"})
    while box.state()["moving"] != "pausing":
        pass
    assert server.api("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 60}).status == 409
    assert server.api("POST", f"/sandboxes/{box.id}/pause", {}).status == 409
    answer = box.http("GET", "/health")
    assert answer.status == 409 and "still transitioning" in answer.json["message"]
    assert server.api("POST", f"/v2/sandboxes/{box.id}/connect", {}).status == 201, "connect waits the pause out"
    assert connection.getresponse().status == 204


def test_auto_pause_and_auto_resume(server):
    box = server.create(timeout=60, autoPause=True, autoResume={"enabled": True})
    box.write("f", b"x")
    server.fake("POST", f"sandboxes/{box.id}/expire")
    while box.state()["state"] != "paused" or box.state()["moving"]:
        pass
    denied = box.http("GET", "/files?path=f", X_Access_Token="wrong")
    assert denied.status == 403 and "can't be resumed" in denied.json["message"]
    assert box.read("f").body == b"x"
    assert 290 < lifetime(server, box) <= 300


def test_requests_wait_together_for_an_auto_resume(server):
    box = server.create(autoResume={"enabled": True})
    box.write("f", b"x")
    server.api("POST", f"/sandboxes/{box.id}/pause", {})
    server.fake("POST", "config", {"resume_ms": 300})
    connections = [server.connect() for _ in range(3)]
    for connection in connections:
        connection.request("GET", "/files?path=f", headers=box.headers())
    assert [connection.getresponse().read() for connection in connections] == [b"x"] * 3


def test_delete(server, box):
    assert server.api("DELETE", f"/sandboxes/{box.id}-6532622b").status == 204
    gone = server.api("DELETE", f"/sandboxes/{box.id}")
    assert (gone.status, gone.json["code"]) == (404, 404)
    assert box.state()["ended"] == "killed"


def test_list_pages(server):
    boxes = [server.create(metadata={"n": str(n)}) for n in range(3)]
    first = server.api("GET", "/v2/sandboxes?limit=2")
    assert [box["sandboxID"] for box in first.json] == [boxes[2].id, boxes[1].id]
    assert first.headers["X-Total-Running"] == "3"
    token = quote(first.headers["X-Next-Token"])
    second = server.api("GET", f"/v2/sandboxes?limit=2&nextToken={token}")
    assert [box["sandboxID"] for box in second.json] == [boxes[0].id]
    assert "X-Next-Token" not in second.headers
    assert "envdAccessToken" not in second.json[0] and "domain" not in second.json[0]
    for query in (f"nextToken={token}&order=asc", "nextToken=x", "limit=0", "limit=101", "order=up", "state=dead",
                  "metadata=a%3Db%3Dc"):
        assert server.api("GET", "/v2/sandboxes?" + query).status == 400, query


def test_list_states_and_metadata(server):
    running, paused = server.create(metadata={"k e": "v&1"}), server.create(metadata={"k e": "v&1", "x": "y"})
    server.create(metadata={"k e": "other"})
    server.api("POST", f"/sandboxes/{paused.id}/pause", {})

    def ids(path):
        return {box["sandboxID"] for box in server.api("GET", path).json}
    on_the_wire = "metadata=k%252520e%3Dv%2525261"
    assert ids("/v2/sandboxes?" + on_the_wire) == {running.id, paused.id}
    assert ids("/v2/sandboxes?state=running&" + on_the_wire) == {running.id}
    assert ids("/v2/sandboxes?state=running,paused&" + on_the_wire + "%26x%3Dy") == {paused.id}
    assert ids("/sandboxes?" + on_the_wire) == {running.id}


def test_old_daemons_have_no_token(server):
    server.fake("POST", "config", {"envd_version": "0.1.5"})
    assert server.api("POST", "/sandboxes", {"templateID": "base", "secure": True}).status == 400
    assert server.api("POST", "/sandboxes", {"templateID": "base"}).json["envdVersion"] == "0.1.5"


def test_idempotency_key_behind_its_flag(server):
    def create(**body):
        return server.api("POST", "/v2/sandboxes", {"templateID": "base", **body}, **{"Idempotency-Key": "k1"})
    assert create().json["sandboxID"] != create().json["sandboxID"], "old servers ignore it"
    server.fake("POST", "config", {"idempotency": True})
    server.knob("^/v2/sandboxes$", {"drop": "after"})
    with pytest.raises(ConnectionError):
        create()
    again = create()
    assert again.status == 201 and again.json == create().json
    assert len(server.fake("GET", "sandboxes")) == 3
    other = create(timeout=5)
    assert (other.status, other.json["error_code"]) == (409, "idempotency_request_mismatch")
