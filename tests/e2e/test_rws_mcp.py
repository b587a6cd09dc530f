# SPDX-License-Identifier: ISC
"""MCP clients that are not ours use a sandbox over ssh: the official ones in TypeScript and Python."""

import fcntl
import json
import pathlib
import shutil
import subprocess

import pytest
from clients import TIMEOUT, environment, ssh_command
from gateway import processes_with, wait_until
from rws_client import Rws, encoded

SOURCE = pathlib.Path(__file__).parent.parent / "npm/mcp"
# Beside all variants, as it is the same for each.
PLACE = pathlib.Path("build").resolve()
PYTHON_MCP = "mcp==1.30.0"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


def install(name, stamp, *commands):
    """Runs commands in PLACE/name once for a stamp, whoever of the parallel tests comes first."""
    place = PLACE / name
    place.mkdir(parents=True, exist_ok=True)
    with open(place / ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = place / ".installed"
        if not done.exists() or done.read_text() != stamp:
            for command in commands:
                subprocess.run(command, cwd=place, check=True, timeout=600, capture_output=True)
            done.write_text(stamp)
    return place


@pytest.fixture(scope="module")
def node_client():
    place = PLACE / "npm/mcp"
    place.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc", "client.mjs"):
        shutil.copy(SOURCE / name, place / name)
    stamp = (SOURCE / "package-lock.json").read_text()
    install("npm/mcp", stamp, ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"])
    return place / "client.mjs"


@pytest.fixture(scope="module")
def python_client():
    return install(
        "python-mcp",
        PYTHON_MCP,
        ["/usr/bin/python3", "-m", "venv", "venv"],
        ["venv/bin/pip", "install", "-q", PYTHON_MCP],
    )


@pytest.fixture(scope="module")
def steps(gateway, node_client):
    """What the official TypeScript client saw, by step."""
    done = subprocess.run(
        ["node", str(node_client), *ssh_command(gateway, "-s", "rws")],
        capture_output=True,
        timeout=TIMEOUT,
        env=environment(gateway, PICTURE=encoded(PICTURE)),
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return {step["step"]: step["value"] for step in map(json.loads, done.stdout.splitlines())}


def test_the_official_client_connects(steps):
    assert steps["server"]["info"]["name"] == "rws"
    assert set(steps["server"]["capabilities"]) == {"tools", "logging"}


def test_it_lists_the_tools_with_schemas_and_annotations(steps):
    tools = {tool["name"]: tool for tool in steps["tools"]}
    assert {"exec", "read", "write", "edit", "snapshot_create", "sandbox_stop"} <= set(tools)
    assert "input" not in tools and "snapshot_export" not in tools
    for tool in tools.values():
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert tool["title"] and tool["description"]
    assert tools["read"]["annotations"]["readOnlyHint"] is True
    assert tools["remove"]["annotations"]["destructiveHint"] is True
    assert tools["exec"]["inputSchema"]["properties"]["background"]["enum"] == ["kill", "keep"]


def test_a_tool_gives_structured_content_that_its_schema_allows(steps):
    """The client checks it against the schema itself, and throws when it does not hold."""
    assert steps["exec"]["structuredContent"]["exit_code"] == 3
    assert steps["exec"]["structuredContent"]["stdout"] == "out\n"
    assert "exit code: 3" in steps["exec"]["content"][0]["text"]
    assert steps["list"]["structuredContent"]["entries"][0]["path"] == "f.txt"
    assert steps["read"]["content"][0]["text"] == "text\n"
    assert steps["snapshot"]["structuredContent"]["label"] == "from a client"


def test_a_failure_is_a_result_that_a_model_can_read(steps):
    assert steps["failure"]["isError"] is True
    assert "OUTSIDE_ROOT" in steps["failure"]["content"][0]["text"]


def test_a_picture_is_a_picture(steps):
    (block,) = steps["picture"]["content"]
    assert block == {"type": "image", "mimeType": "image/png", "data": encoded(PICTURE)}


def test_other_bytes_are_an_embedded_resource(steps):
    (block,) = steps["bytes"]["content"]
    assert block["type"] == "resource"
    assert block["resource"]["blob"] == "/wA="


def test_output_comes_as_progress_that_grows(steps):
    values = [step["progress"] for step in steps["progress"]["progress"]]
    assert values == sorted(set(values)) and values
    text = "".join(step["message"] for step in steps["progress"]["progress"])
    assert text == "line 1\nline 2\nline 3\n"
    assert steps["progress"]["streamed"]["structuredContent"]["stdout"] == text


def test_cancellation_aborts_the_command(steps):
    assert "enough" in steps["cancelled"]
    wait_until(lambda: not processes_with("sleep 4721"))


def test_an_unknown_tool_is_an_error_of_the_protocol(steps):
    assert steps["unknown"]["code"] == -32602


PYTHON_SCRIPT = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        version = (await session.initialize()).protocolVersion
        await session.send_ping()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        result = await session.call_tool("exec", {"command": "echo python"})
        print(json.dumps([version, tools, result.structuredContent, result.isError]))

asyncio.run(main())
"""


def test_a_second_client_library_works(gateway, python_client):
    done = subprocess.run(
        [python_client / "venv/bin/python", "-c", PYTHON_SCRIPT, *ssh_command(gateway, "-s", "rws")],
        capture_output=True,
        timeout=TIMEOUT,
        env=environment(gateway),
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    version, tools, result, is_error = json.loads(done.stdout)
    assert version == "2025-11-25"
    assert "exec" in tools
    assert (result["stdout"], is_error) == ("python\n", False)


def test_a_client_of_the_stateless_revision_works_without_a_handshake(gateway):
    """MCP 2026-07-28: every request carries its version, every result its type."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with Rws(gateway) as client:
        found = client.call("server/discover", _meta=meta)
        assert "2026-07-28" in found["supportedVersions"]
        assert found["resultType"] == "complete"
        arguments = {"command": "echo stateless"}
        result = client.call("tools/call", name="exec", arguments=arguments, _meta=meta)
        assert result["resultType"] == "complete"
        assert result["structuredContent"]["stdout"] == "stateless\n"
