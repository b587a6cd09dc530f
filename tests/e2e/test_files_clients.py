# SPDX-License-Identifier: ISC
"""Files with the other clients that people use."""

import asyncio
import os
import pathlib
import shutil
import subprocess

import pytest
from clients import TIMEOUT, asyncssh_connect, host_key_fingerprint, ssh_options
from files import contents, describe, files_gateway_fixture, fresh, make_tree, open_sftp, remote, run

gateway = files_gateway_fixture()

NODE_SSH2 = "ssh2@1.16.0"
NODE_SCRIPT = """
const { Client } = require('ssh2'), fs = require('fs');
const [port, key, from, to, back] = process.argv.slice(1);
const connection = new Client();
connection.on('ready', () => connection.sftp((failure, sftp) => {
  if (failure) throw failure;
  sftp.fastPut(from, to, (failure) => {
    if (failure) throw failure;
    sftp.fastGet(to, back, (failure) => {
      if (failure) throw failure;
      sftp.readdir('.', (failure, list) => {
        if (failure) throw failure;
        console.log(list.map((entry) => entry.filename).includes(to));
        connection.end();
      });
    });
  });
})).connect({ host: '127.0.0.1', port, username: 'sandbox', privateKey: fs.readFileSync(key) });
"""


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", links=False)


def test_lftp_mirrors_both_ways(gateway, tree, tmp_path):
    fresh(gateway, "lftp")
    connect = f"ssh -a -x -F {ssh_options(gateway)}"
    script = (
        "set net:max-retries 1; set cmd:fail-exit true; set sftp:auto-confirm yes; "
        f"set sftp:connect-program '{connect}'; open sftp://sandbox:@gateway; "
        f"mirror -R --parallel=3 {tree} lftp/tree; mirror --parallel=3 lftp/tree {tmp_path}/back; "
        f"mirror -R --delete {tree} lftp/tree"
    )
    done = run(gateway, ["lftp", "-c", script])
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "back") == contents(tree) or describe(tmp_path / "back") == describe(tree)


def test_rclone_copies_and_checks(gateway, tree, tmp_path):
    """rclone#8950, #7241, #6351: sums come from md5sum in the sandbox."""
    fresh(gateway, "rclone")
    remote_name = (
        f":sftp,host=127.0.0.1,port={gateway.port},user=sandbox,key_file='{gateway.key}',"
        "known_hosts_file='',shell_type=unix:rclone"
    )
    base = ["rclone", "--config", "", "--checksum", "--retries", "1", "-q"]
    for source, target in [(tree, remote_name), (remote_name, tmp_path / "back")]:
        done = run(gateway, [*base, "copy", "--create-empty-src-dirs", source, target])
        assert done.returncode == 0, done.stderr
    done = run(gateway, [*base, "check", tree, remote_name])
    assert done.returncode == 0, done.stderr
    names = {name: value[-1] for name, value in describe(tree).items() if value[0] == "file"}
    back = {n: value[-1] for n, value in describe(tmp_path / "back").items() if value[0] == "file"}
    assert back == names


def test_curl_up_and_down(gateway, tmp_path):
    fresh(gateway, "curl")
    data = os.urandom(3_000_000)
    (tmp_path / "f").write_bytes(data)
    url = f"sftp://127.0.0.1:{gateway.port}{gateway.provider.home}/curl/f"
    base = ["curl", "-sS", "-k", "--user", "sandbox:", "--key", gateway.key]
    base += ["--pubkey", f"{gateway.key}.pub"]
    done = run(gateway, [*base, "-T", tmp_path / "f", url])
    if b"not supported" in done.stderr or b"Unsupported protocol" in done.stderr:
        pytest.fail("this curl has no sftp: install one that has")
    assert done.returncode == 0, done.stderr
    done = run(gateway, [*base, "-o", tmp_path / "back", url])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "back").read_bytes() == data
    done = run(gateway, [*base, "-r", "1000-1999", url])
    assert done.stdout == data[1000:2000]


def test_psftp(gateway, tree, tmp_path):
    key = gateway.directory / "client_key.ppk"
    if not key.exists():
        run(gateway, ["puttygen", gateway.key, "-O", "private", "-o", key])
    (tree / "a b" / "back\\slash").unlink()  # which PuTTY takes for a separator
    fresh(gateway, "psftp")
    batch = tmp_path / "batch"
    batch.write_text(f"cd psftp\nput -r {tree} tree\nget -r tree {tmp_path}/back\nren tree other\nls\n")
    command = ["psftp", "-batch", "-noagent", "-i", key, "-P", gateway.port, "-b", batch, "-be"]
    command += ["-hostkey", host_key_fingerprint(gateway), "sandbox@127.0.0.1"]
    done = run(gateway, command)
    assert done.returncode == 0, done.stderr
    sums = [{n: v[-1] for n, v in describe(p).items()} for p in (tree, tmp_path / "back")]
    assert {n for n in sums[0]} == {n for n in sums[1]}
    assert remote(gateway, "ls psftp") == "other\n"


def test_paramiko_prefetches_and_pipelines(gateway, tmp_path):
    fresh(gateway, "paramiko")
    data = os.urandom(2_500_000)
    (tmp_path / "f").write_bytes(data)
    with open_sftp(gateway) as session:
        session.put(str(tmp_path / "f"), "paramiko/f")
        session.get("paramiko/f", str(tmp_path / "back"))
        with session.open("paramiko/f") as file:
            chunks = list(file.readv([(10, 100), (1_000_000, 50_000), (2_499_990, 10)]))
    assert (tmp_path / "back").read_bytes() == data
    assert chunks == [data[10:110], data[1_000_000:1_050_000], data[2_499_990:]]


def test_asyncssh(gateway, tree, tmp_path):
    fresh(gateway, "asyncssh")

    async def copy():
        async with asyncssh_connect(gateway) as connection:
            async with connection.start_sftp_client() as session:
                await session.put(str(tree), "asyncssh/tree", recurse=True, preserve=True)
                await session.get("asyncssh/tree", str(tmp_path / "back"), recurse=True, preserve=True)
                assert await session.exists("asyncssh/tree/run")
                volume = await session.statvfs("asyncssh")
                assert volume.blocks > 0
                await session.posix_rename("asyncssh/tree/run", "asyncssh/tree/empty")
                many = [session.stat("asyncssh/tree") for _ in range(100)]
                assert len(await asyncio.gather(*many)) == 100

    asyncio.run(asyncio.wait_for(copy(), TIMEOUT))
    assert describe(tmp_path / "back") == describe(tree)


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory):
    """The ssh2 package, fetched once through npm."""
    directory = pathlib.Path(os.environ.get("NODE_CACHE", tmp_path_factory.mktemp("node")))
    if not (directory / "node_modules/ssh2").exists():
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", NODE_SSH2],
            cwd=directory,
            check=True,
            capture_output=True,
            timeout=TIMEOUT,
        )
    return directory


def test_node_ssh2(gateway, node_modules, tmp_path):
    data = os.urandom(2_000_000)
    (tmp_path / "f").write_bytes(data)
    done = subprocess.run(
        ["node", "-e", NODE_SCRIPT, str(gateway.port), gateway.key, tmp_path / "f", "from-node"]
        + [tmp_path / "back"],
        cwd=node_modules,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"true\n"), done.stderr
    assert (tmp_path / "back").read_bytes() == data
    remote(gateway, "rm from-node")


def test_rsync_of_odd_names_links_and_modes(gateway, tmp_path):
    tree = make_tree(tmp_path / "tree")
    (tmp_path / "tree" / "new\nline").write_text("x")
    pathlib.Path(os.fsdecode(bytes(tmp_path / "tree") + b"/\xff\xfe")).write_text("x")
    fresh(gateway, "rsync")
    shell = f"ssh -F {ssh_options(gateway)}"
    for source, target in [(f"{tree}/", "gateway:rsync/"), ("gateway:rsync/", f"{tmp_path}/back")]:
        done = run(gateway, ["rsync", "-a", "--delete", "-e", shell, source, target])
        assert done.returncode == 0, done.stderr
    assert describe(tmp_path / "back") == describe(tree)
    shutil.rmtree(tmp_path / "tree" / "sub")
    done = run(gateway, ["rsync", "-a", "--delete", "-e", shell, f"{tree}/", "gateway:rsync/"])
    assert done.returncode == 0 and remote(gateway, "ls -d rsync/sub 2>&1; true").endswith("directory\n")


def test_two_gigabytes_by_both_protocols(gateway, tmp_path):
    """warpgate#479, at a size that a test run can bear; make stress has the rest."""
    size = 300_000_000
    with open(tmp_path / "big", "wb") as file:
        for _ in range(size // 1_000_000):
            file.write(os.urandom(1_000_000))
    for protocol in ["-O", "-s"]:
        base = ["scp", "-q", protocol, "-F", ssh_options(gateway)]
        assert run(gateway, [*base, tmp_path / "big", "gateway:big"]).returncode == 0
        assert run(gateway, [*base, "gateway:big", tmp_path / "back"]).returncode == 0
        assert run(gateway, ["cmp", tmp_path / "big", tmp_path / "back"]).returncode == 0
    remote(gateway, "rm big")
