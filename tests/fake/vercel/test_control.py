# SPDX-License-Identifier: ISC
"""The durable half of the API: sandboxes, sessions, snapshots, who may ask."""
import base64
import json
import time

import pytest

from .client import PROJECT, TEAM, TOKEN, Box

DAY_MS = 24 * 3600 * 1000


def code_of(answer):
    return answer.status, answer.json["error"]["code"]


def create(server, version="v3", **body):
    """The bare answer to a create request."""
    return server.api("POST", f"/{version}/sandboxes", {"projectId": PROJECT, **body})


def names(server, **query):
    answer = server.api("GET", "/v2/sandboxes", project=PROJECT, **query)
    assert answer.status == 200, answer
    return [sandbox["name"] for sandbox in answer.json["sandboxes"]]


def jwt(**claims):
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    return {"Authorization": f"Bearer {part({'alg': 'RS256'})}.{part(claims)}.c2ln"}


# -- who asks ---------------------------------------------------------------------------------------------------------


def test_a_request_without_a_token_or_a_team_is_refused(server):
    path = f"/api/v2/sandboxes?teamId={TEAM}&project={PROJECT}"
    assert code_of(server.request("GET", path)) == (401, "unauthorized")
    assert code_of(server.request("GET", path, headers={"Authorization": "Basic x"})) == (401, "unauthorized")
    assert code_of(server.request("GET", f"/api/v2/sandboxes?project={PROJECT}", headers=TOKEN)) == (403, "forbidden")


def test_tokens_teams_and_projects_can_be_limited(server):
    server.config(tokens=["tok_other"])
    assert code_of(create(server)) == (403, "forbidden")
    server.config(tokens=None, teams=["team_other"])
    assert code_of(create(server)) == (403, "forbidden")
    server.config(teams=None, projects=["prj_other"])
    assert code_of(create(server)) == (404, "not_found")


def test_an_oidc_token_names_team_and_project_and_expires(server):
    good = jwt(owner_id=TEAM, project_id=PROJECT, exp=time.time() + 600)
    assert server.api("POST", "/v3/sandboxes", {"name": "o"}, good).status == 200
    assert names(server) == ["o"]
    assert server.api("POST", "/v3/sandboxes", {}, jwt(owner_id=TEAM, exp=time.time() + 600)).status == 400
    old = jwt(owner_id=TEAM, project_id=PROJECT, exp=time.time() - 1)
    assert code_of(server.api("POST", "/v3/sandboxes", {}, old)) == (403, "forbidden")
    other = jwt(owner_id="team_other", project_id=PROJECT, exp=time.time() + 600)
    assert code_of(server.api("POST", "/v3/sandboxes", {}, other)) == (403, "forbidden")


def test_another_team_or_project_sees_nothing(server, box):
    assert server.api("GET", "/v2/sandboxes", project="prj_other").json["sandboxes"] == []
    assert box.call("GET", teamId="team_other").status == 404
    assert server.api("GET", f"/v2/sandboxes/{box.name}", projectId="prj_other").status == 404


def test_both_base_urls_serve_and_what_is_no_call_is_a_page(server, box):
    answer = server.request("GET", f"/v2/sandboxes/{box.name}?teamId={TEAM}&projectId={PROJECT}", headers=TOKEN)
    assert answer.json["sandbox"]["name"] == box.name
    page = server.request("GET", "/api/v9/sandboxes", headers=TOKEN)
    assert (page.status, page.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert code_of(box.call("GET", "/nothing")) == (404, "not_found")


# -- create -----------------------------------------------------------------------------------------------------------


def test_create_answers_with_sandbox_session_and_routes(server):
    box = server.create(name="b", ports=[3000], env={"A": "1"}, tags={"t": "v"})
    assert box.sandbox["currentSessionId"] == box.id and box.id.startswith("sbx_")
    assert box.session["status"] == box.sandbox["status"] == "running"
    assert box.session["cwd"] == "/vercel" and box.session["timeout"] == 300000
    assert [route["port"] for route in box.routes] == [3000]
    assert box.routes[0]["url"] == f"https://{box.routes[0]['subdomain']}.vercel.run"
    assert abs(box.session["createdAt"] / 1000 - time.time()) < 60
    assert None not in box.sandbox.values() and None not in box.session.values(), "the SDK throws on a null"
    assert server.create().routes == [], "always there"


def test_the_system_route_is_shown_when_asked_for(server):
    box = server.create(ports=[3000])
    shown = server.named("GET", box.name, __includeSystemRoutes="true").json
    assert [(route["port"], route.get("system")) for route in shown["routes"]] == [
        (3000, None), (box.session["interactivePort"], True)]
    assert "interactivePort" not in server.create(__interactive=False).session


@pytest.mark.parametrize("wrong", [
    {"name": "a b"}, {"name": "x" * 129}, {"ports": list(range(2000, 2016))}, {"ports": [80]}, {"ports": ["x"]},
    {"timeout": 999}, {"timeout": True}, {"resources": {"vcpus": 3}}, {"resources": {"vcpus": 64}},
    {"tags": {str(n): "" for n in range(6)}}, {"tags": {"a": "x" * 257}}, {"tags": {"a": 1}}, {"env": ["A=1"]},
    {"runtime": "node24"}, {"image": "x" * 256}, {"source": {"type": "zip"}}, {"persistent": "yes"},
    {"snapshotExpiration": DAY_MS - 1}, {"keepLastSnapshots": {"count": 11}}, {"image": 1}])
def test_create_refuses_what_the_api_does_not_allow(server, wrong):
    assert code_of(create(server, **wrong)) == (400, "bad_request")
    assert names(server) == []


def test_the_second_version_takes_runtimes_and_no_images(server):
    assert code_of(create(server, "v2", runtime="node20")) == (400, "bad_request")
    assert code_of(create(server, "v2", image="ubuntu")) == (400, "bad_request")
    assert create(server, "v2").json["sandbox"]["runtime"] == "node24"
    snapshot = server.create().call("POST", "/snapshot").json["snapshot"]["id"]
    source = {"type": "snapshot", "snapshotId": snapshot}
    assert code_of(create(server, "v2", runtime="node24", source=source)) == (400, "bad_request")


def test_unknown_members_are_passed_over_and_an_image_may_be_unknown(server):
    assert create(server, futureOption=1).status == 200
    server.config(images=["ubuntu"])
    assert code_of(create(server, image="debian")) == (400, "not_found")
    assert create(server, image="ubuntu").json["sandbox"]["image"] == "ubuntu"


def test_a_name_is_taken_until_its_sandbox_is_deleted(server):
    server.create(name="one")
    again = create(server, name="one")
    assert code_of(again) == (400, "bad_request")
    assert again.json["error"]["message"] == "A sandbox with the name 'one' already exists for this project."
    assert server.named("DELETE", "one").status == 200
    assert server.create(name="one").name == "one"
    assert create(server, name="one").status == 400


def test_an_image_may_have_another_user_and_directory(server):
    server.config(user="app", home="/srv/app", work_dir="/work/dir")
    box = server.create()
    assert box.session["cwd"] == "/work/dir"
    assert box.run("id -un; echo $HOME; pwd") == (0, "app\n/srv/app\n/work/dir\n", "")


def test_a_sandbox_may_be_pending_for_a_while(server):
    server.config(create_waits=False, boot_ms=200)
    box = server.create()
    assert box.session["status"] == "pending" and "startedAt" not in box.session
    assert box.wait("running")["startedAt"] >= box.session["createdAt"]
    assert box.run("echo up")[1] == "up\n"


# -- lists ------------------------------------------------------------------------------------------------------------


def test_a_list_comes_in_pages_and_orders(server):
    server.config(create_waits=False)
    for name in ("b1", "a1", "b2"):
        server.create(name=name)
    assert names(server) == ["b2", "a1", "b1"]
    assert names(server, sortOrder="asc") == ["b1", "a1", "b2"]
    assert names(server, sortBy="name", sortOrder="asc", namePrefix="b") == ["b1", "b2"]
    first = server.api("GET", "/v2/sandboxes", project=PROJECT, limit="2").json
    assert first["pagination"]["count"] == 2
    rest = server.api("GET", "/v2/sandboxes", project=PROJECT, limit="2", cursor=first["pagination"]["next"]).json
    assert [sandbox["name"] for sandbox in rest["sandboxes"]] == ["b1"]
    assert rest["pagination"] == {"count": 1, "next": None}


@pytest.mark.parametrize("query", [
    {"limit": "0"}, {"limit": "51"}, {"limit": "x"}, {"cursor": "???"}, {"sortBy": "age"}, {"sortOrder": "up"},
    {"namePrefix": "b"}])
def test_a_list_refuses_a_query_that_makes_no_sense(server, query):
    assert code_of(server.api("GET", "/v2/sandboxes", project=PROJECT, **query)) == (400, "bad_request")


def test_lists_are_asked_for_with_project_and_all_else_with_project_id(server, box):
    assert server.api("GET", "/v2/sandboxes", projectId=PROJECT).status == 400
    assert server.api("GET", f"/v2/sandboxes/{box.name}", project=PROJECT).status == 400


def test_a_list_can_be_narrowed_by_tag_and_state(server):
    server.create(name="a", tags={"k": "1:2"})
    server.create(name="b", tags={"k": "2"}).call("POST", "/stop")
    assert names(server, tags="k:1:2") == ["a"]
    assert names(server, tags="k:1") == []
    assert names(server, status="stopped") == ["b"]
    both = server.request("GET", f"/api/v2/sandboxes?teamId={TEAM}&project={PROJECT}&tags=a:1&tags=b:1", headers=TOKEN)
    assert both.status == 400


# -- update and delete ------------------------------------------------------------------------------------------------


def test_an_update_is_for_the_next_session_but_ports_are_at_once(server):
    box = server.create(ports=[3000])
    answer = server.named("PATCH", box.name, {
        "resources": {"vcpus": 4}, "timeout": 900000, "tags": {"a": "b"}, "ports": [3000, 4000], "env": {"A": "new"},
        "networkPolicy": {"allow": {"x.org": [{"transform": [{"headers": {"K": "v"}}]}]},
                          "subnets": {"deny": ["10.0.0.0/8"]}}}).json
    assert (answer["sandbox"]["vcpus"], answer["sandbox"]["timeout"]) == (4, 900000)
    assert [route["port"] for route in answer["routes"]] == [3000, 4000]
    assert answer["routes"][0] == box.routes[0], "a port keeps its host"
    assert answer["sandbox"]["networkPolicy"] == {
        "mode": "custom", "allowedDomains": ["x.org"], "allowedCIDRs": [], "deniedCIDRs": ["10.0.0.0/8"],
        "injectionRules": [{"domain": "x.org", "headerNames": ["K"]}]}
    running = box.call("GET").json["session"]
    assert (running["vcpus"], running["timeout"]) == (2, 300000)
    box.call("POST", "/stop")
    resumed = box.resume()
    assert (resumed.session["vcpus"], resumed.session["timeout"]) == (4, 900000)
    assert resumed.run("echo $A")[1] == "new\n"
    assert code_of(server.named("PATCH", box.name, {"ports": [1]})) == (400, "bad_request")


def test_a_network_policy_can_be_set_on_the_live_session(server, box):
    shown = box.call("POST", "/network-policy", {"mode": "deny-all"}).json["session"]
    assert shown["networkPolicy"] == {"mode": "deny-all"}
    assert server.named("GET", box.name).json["sandbox"]["networkPolicy"] == {"mode": "deny-all"}


def test_delete_stops_a_running_sandbox_and_keeps_its_snapshots(server):
    box = server.create(name="gone")
    box.call("POST", "/stop")
    box = box.resume()
    number = box.start("sleep", "1000")
    assert server.named("DELETE", "gone").status == 200
    assert server.named("GET", "gone").status == server.named("DELETE", "gone").status == 404
    assert code_of(box.get(number)) == (410, "sandbox_stopped")
    snapshots = server.api("GET", "/v2/sandboxes/snapshots", project=PROJECT).json["snapshots"]
    assert len(snapshots) == 1, "that of the stop; a deletion makes none"


def test_orphan_snapshots_can_be_deleted_with_their_sandbox(server):
    box = server.create(name="base")
    used = box.call("POST", "/snapshot").json["snapshot"]["id"]
    server.create(name="user", source={"type": "snapshot", "snapshotId": used})
    box = box.resume()
    unused = box.call("POST", "/snapshot").json["snapshot"]["id"]
    server.named("DELETE", "base", deleteOrphanSnapshots="true")

    def status(number):
        return server.api("GET", f"/v2/sandboxes/snapshots/{number}").json["snapshot"]["status"]
    assert (status(used), status(unused)) == ("created", "deleted")


# -- sessions ---------------------------------------------------------------------------------------------------------


def test_a_stop_keeps_the_files_of_a_persistent_sandbox_and_nothing_else(server, box):
    box.write({"vercel/kept": b"1", "tmp/too": b"2"})
    number = box.start("sleep", "1000")
    answer = box.call("POST", "/stop").json
    assert answer["session"]["status"] == answer["sandbox"]["status"] == "stopped"
    assert answer["sandbox"]["currentSnapshotId"] == answer["snapshot"]["id"]
    assert answer["session"]["stoppedAt"] >= answer["session"]["requestedStopAt"]
    assert "expiresAt" not in answer["sandbox"]
    assert box.call("POST", "/stop").json["snapshot"] == answer["snapshot"], "a second stop says the same"
    assert box.status() == "stopped", "and wakes nobody"
    again = box.resume()
    assert again.id != box.id and again.session["sourceSnapshotId"] == answer["snapshot"]["id"]
    assert again.run("cat kept /tmp/too; pgrep sleep")[1] == "12"
    assert code_of(box.get(number)) == (410, "sandbox_stopped")
    assert again.get(number).status == 404


def test_resume_makes_one_session_whoever_asks_and_nothing_of_a_running_one(server, box):
    assert server.named("GET", box.name, resume="true").json["resumed"] is False
    box.call("POST", "/stop")
    assert server.named("GET", box.name).json["session"]["id"] == box.id, "not unless it is asked for"
    first = server.named("GET", box.name, resume="true").json
    second = server.named("GET", box.name, resume="true").json
    assert (first["resumed"], second["resumed"]) == (True, False)
    assert first["session"]["id"] == second["session"]["id"] != box.id
    listed = server.api("GET", "/v2/sandboxes/sessions", project=PROJECT, name=box.name).json["sessions"]
    assert [session["id"] for session in listed] == [first["session"]["id"], box.id]


def test_a_sandbox_without_a_snapshot_cannot_be_resumed(server):
    box = server.create(persistent=False)
    assert "snapshot" not in box.call("POST", "/stop").json
    answer = server.named("GET", box.name, resume="true")
    assert code_of(answer) == (410, "snapshot_not_found")
    assert answer.json["error"]["message"] == "Cannot resume sandbox: no snapshot available."
    assert server.named("GET", box.name).status == 200


@pytest.mark.parametrize("path, code, status, setting", [
    ("/stop", "sandbox_stopping", "stopping", "stop_ms"),
    ("/snapshot", "sandbox_snapshotting", "snapshotting", "snapshot_ms")])
def test_while_a_session_ends_its_calls_are_refused(server, box, path, code, status, setting):
    server.config(**{setting: 2000})
    connection, answer_later = box.open_later("POST", path)
    box.wait(status)
    assert code_of(box.call("POST", "/cmd", {"command": "true"})) == (422, code)
    resumed = server.named("GET", box.name, resume="true").json
    assert resumed["resumed"] and resumed["session"]["status"] == "running", "it waits for the end"
    assert answer_later().status == 200
    connection.close()


def test_a_timeout_ends_a_session_for_good(server):
    box = server.create(timeout=1000)
    number = box.start("sleep", "1000")
    box.write({"vercel/kept": b"1"})
    assert box.get(number, wait="true").status == 410
    shown = box.wait("stopped")
    assert shown["stoppedAt"] >= shown["startedAt"] + 1000
    for method, path in (("POST", "/cmd"), ("GET", f"/cmd/{number}"), ("GET", f"/cmd/{number}/logs"),
                         ("POST", "/fs/read"), ("POST", "/extend-timeout"), ("POST", "/interactive")):
        assert code_of(box.call(method, path, {} if method == "POST" else None)) == (410, "sandbox_stopped"), path
    assert server.report(box.name)["sessions"][0]["reason"] == "timeout"
    assert box.resume().read("kept").body == b"1"


def test_an_extension_adds_up_to_the_plans_limit(server):
    server.config(max_timeout_ms=10000)
    box = server.create(timeout=1000)
    assert box.call("POST", "/extend-timeout", {"duration": 4000}).json["session"]["timeout"] == 5000
    assert server.named("GET", box.name).json["sandbox"]["expiresAt"] >= box.session["createdAt"] + 5000
    assert code_of(box.call("POST", "/extend-timeout", {"duration": 6000})) == (400, "sandbox_timeout_invalid")
    assert code_of(box.call("POST", "/extend-timeout", {"duration": 999})) == (400, "bad_request")
    assert code_of(create(server, timeout=10001)) == (400, "sandbox_timeout_invalid")
    assert box.run("sleep 1.2; echo alive")[1] == "alive\n", "beyond its first timeout"


# -- snapshots --------------------------------------------------------------------------------------------------------


def test_a_snapshot_ends_the_session_and_can_be_started_from(server, box):
    box.write({"vercel/f": b"here"})
    answer = box.call("POST", "/snapshot", {"expiration": 0})
    assert answer.status == 200 and answer.json["session"]["status"] == "stopped"
    snapshot = answer.json["snapshot"]
    assert snapshot["sourceSessionId"] == box.id and "expiresAt" not in snapshot and snapshot["sizeBytes"] > 0
    other = server.create(source={"type": "snapshot", "snapshotId": snapshot["id"]})
    assert other.read("f").body == b"here"
    other.write({"vercel/f": b"changed"})
    assert box.resume().read("f").body == b"here"


def test_a_snapshot_expires_as_it_was_told_or_after_thirty_days(server, box):
    snapshot = box.call("POST", "/snapshot").json["snapshot"]
    assert snapshot["expiresAt"] == snapshot["createdAt"] + 30 * DAY_MS
    box = box.resume()
    brief = box.call("POST", "/snapshot", {"expiration": 1}).json["snapshot"]
    assert code_of(server.named("GET", box.name, resume="true")) == (410, "snapshot_not_found")
    assert code_of(create(server, source={"type": "snapshot", "snapshotId": brief["id"]})) == (
        410, "snapshot_not_found")
    server.named("PATCH", box.name, {"currentSnapshotId": snapshot["id"]})
    assert server.named("GET", box.name, resume="true").status == 200


def test_a_deleted_snapshot_breaks_what_stands_on_it(server, box):
    number = box.call("POST", "/stop").json["snapshot"]["id"]
    assert server.api("DELETE", f"/v2/sandboxes/snapshots/{number}").json["snapshot"]["status"] == "deleted"
    assert server.api("GET", f"/v2/sandboxes/snapshots/{number}").json["snapshot"]["status"] == "deleted"
    assert code_of(server.named("GET", box.name, resume="true")) == (410, "snapshot_not_found")
    assert server.api("GET", "/v2/sandboxes/snapshots/snap_none").status == 404
    assert server.api("GET", "/v2/sandboxes/snapshots", project=PROJECT).json["snapshots"] == []


@pytest.mark.parametrize("keep, left", [({"count": 1}, 1), ({"count": 2}, 2),
                                        ({"count": 1, "deleteEvicted": False, "expiration": 5 * DAY_MS}, 3)])
def test_only_the_last_snapshots_are_kept_if_that_is_wanted(server, keep, left):
    box = server.create(keepLastSnapshots=keep, snapshotExpiration=0)
    for _ in range(3):
        box.call("POST", "/stop")
        box = box.resume()
    listed = server.api("GET", "/v2/sandboxes/snapshots", project=PROJECT).json["snapshots"]
    assert len(listed) == left
    assert "expiresAt" not in listed[0]
    if left == 3:
        assert listed[2]["expiresAt"] == listed[2]["lastUsedAt"] + 5 * DAY_MS


def test_a_fork_begins_at_the_last_snapshot(server, box):
    assert server.named("POST", box.name + "/fork", {}).status == 404, "the name is one word"
    fork = f"/v2/sandboxes/{box.name}/fork"
    assert code_of(server.api("POST", fork, {}, projectId=PROJECT)) == (410, "snapshot_not_found")
    box.write({"vercel/f": b"1"})
    box.call("POST", "/stop")
    box.resume().write({"vercel/f": b"2"})
    forked = Box(server, server.api("POST", fork, {"name": "twin", "resources": {"vcpus": 4}}, projectId=PROJECT).json)
    assert (forked.name, forked.sandbox["vcpus"], forked.read("f").body) == ("twin", 4, b"1")


def test_the_tree_of_snapshots_knows_ancestors_and_descendants(server, box):
    first = box.call("POST", "/stop").json["snapshot"]["id"]
    second = box.resume().call("POST", "/stop").json["snapshot"]["id"]

    def tree(number, order):
        answer = server.api("GET", "/v2/sandboxes/snapshots/tree", project=PROJECT, snapshotId=number, sortOrder=order)
        assert answer.json["anchor"]["snapshot"]["id"] == number
        return [node["snapshot"]["id"] for node in answer.json["snapshots"]]
    assert tree(second, "desc") == [first] and tree(first, "asc") == [second] and tree(first, "desc") == []


# -- what tests ask of the fake ---------------------------------------------------------------------------------------


def test_requests_are_counted_by_route_and_sandbox(server, box):
    box.run("true")
    server.named("GET", box.name)
    report = server.fake("GET", "requests")
    assert report["counts"]["POST /api/v2/sandboxes/sessions/{id}/cmd"] == 1
    assert report["by_sandbox"][box.name]["GET /api/v2/sandboxes/{id}"] == 1
    assert report["by_sandbox"][box.name]["POST /api/v2/sandboxes/sessions/{id}/cmd"] == 1
    assert json.loads(report["requests"][1]["body"])["command"] == "sh"


def test_a_session_can_be_ended_from_outside(server, box):
    server.fake("POST", f"sandboxes/{box.id}/expire")
    assert box.wait("stopped")["status"] == "stopped"
    again = box.resume()
    server.fake("POST", f"sandboxes/{box.name}/kill")
    shown = again.call("GET").json["session"]
    assert shown["status"] == "aborted" and shown["abortedAt"]
    assert code_of(again.call("POST", "/cmd", {"command": "true"})) == (410, "sandbox_stopped")
