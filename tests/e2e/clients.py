# SPDX-License-Identifier: ISC
"""The real clients, each told not to look at the files of whoever runs the tests."""

import os
import pty
import re
import subprocess

import asyncssh
import paramiko

TIMEOUT = 60


def environment(gateway, **more):
    """The environment of a client: a home of its own, no agent."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "TZ") if name in os.environ}
    return {**kept, "HOME": str(gateway.directory), "LC_ALL": "C.UTF-8", **more}


def ssh_options(gateway, key=None):
    """What OpenSSH needs to reach this gateway, as a configuration file; returns its path."""
    key = key or gateway.key
    path = gateway.directory / f"ssh_config.{key.name}.{gateway.port}"
    if not path.exists():
        path.write_text(
            "Host *\n"
            "HostName 127.0.0.1\n"
            f"Port {gateway.port}\n"
            "User sandbox\n"
            f"IdentityFile {key}\n"
            "IdentitiesOnly yes\n"
            "IdentityAgent none\n"
            "BatchMode yes\n"
            "StrictHostKeyChecking accept-new\n"
            f"UserKnownHostsFile {gateway.directory}/known_hosts\n"
            "GlobalKnownHostsFile /dev/null\n"
            "LogLevel ERROR\n"
        )
    return path


def ssh_command(gateway, *arguments, login="sandbox", key=None):
    """The command line of OpenSSH: options first, then what to run."""
    options = [text for text in arguments if text.startswith("-")]
    words = [text for text in arguments if not text.startswith("-")]
    return ["ssh", "-F", str(ssh_options(gateway, key)), *options, f"{login}@gateway", *words]


def ssh(gateway, *arguments, login="sandbox", key=None, stdin=None, timeout=TIMEOUT, **more):
    """Runs OpenSSH to its end. stdin: bytes, None for an empty one."""
    return subprocess.run(
        ssh_command(gateway, *arguments, login=login, key=key),
        input=b"" if stdin is None else stdin,
        capture_output=True,
        timeout=timeout,
        env=environment(gateway, **more),
        check=False,
    )


def ssh_start(gateway, *arguments, login="sandbox", key=None, **more):
    """Starts OpenSSH with pipes."""
    return subprocess.Popen(
        ssh_command(gateway, *arguments, login=login, key=key),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(gateway, **more),
    )


def dbclient(gateway, command, login="sandbox", stdin=b"", options=()):
    """Runs dropbear's client."""
    key = gateway.directory / "client_key.dropbear"
    if not key.exists():
        convert = ["dropbearconvert", "openssh", "dropbear", gateway.key, key]
        subprocess.run(convert, check=True, capture_output=True)
    command_line = ["dbclient", "-y", "-y", "-i", key, "-p", str(gateway.port), *options]
    # With -t it insists on a terminal of its own.
    terminal = pty.openpty() if "-t" in options else None
    try:
        return subprocess.run(
            [*command_line, f"{login}@127.0.0.1", command],
            capture_output=True,
            timeout=TIMEOUT,
            env=environment(gateway),
            check=False,
            **({"stdin": terminal[1]} if terminal else {"input": stdin}),
        )
    finally:
        for fd in terminal or ():
            os.close(fd)


def plink(gateway, command, login="sandbox", stdin=b"", options=()):
    """Runs PuTTY's command line client."""
    key = gateway.directory / "client_key.ppk"
    if not key.exists():
        convert = ["puttygen", gateway.key, "-O", "private", "-o", key]
        subprocess.run(convert, check=True, capture_output=True, env=environment(gateway))
    return subprocess.run(
        ["plink", "-ssh", "-batch", "-noagent", "-i", key, "-P", str(gateway.port)]
        + ["-hostkey", host_key_fingerprint(gateway), *options, f"{login}@127.0.0.1", command],
        input=stdin,
        capture_output=True,
        timeout=TIMEOUT,
        env=environment(gateway),
        check=False,
    )


def host_key_fingerprint(gateway, kind="ed25519"):
    path = gateway.directory / f"host_keys/ssh_host_{kind}_key"
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", path], check=True, capture_output=True, text=True
    )
    return shown.stdout.split()[1]


def paramiko_connect(gateway, login="sandbox", key=None):
    """A connected paramiko client; use it as a context manager."""
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    client.connect(
        "127.0.0.1",
        gateway.port,
        login,
        key_filename=str(key or gateway.key),
        allow_agent=False,
        look_for_keys=False,
        timeout=TIMEOUT,
    )
    return client


def asyncssh_connect(gateway, login="sandbox", key=None, **more):
    """An asyncssh connection; use it with "async with"."""
    return asyncssh.connect(
        "127.0.0.1",
        gateway.port,
        username=login,
        client_keys=[str(key or gateway.key)],
        known_hosts=None,
        agent_path=None,
        config=None,
        **more,
    )


def git(gateway, *arguments, cwd=None):
    """Runs git with this gateway behind ssh; fails the test when git does."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
        env=environment(
            gateway,
            GIT_SSH_COMMAND=f"ssh -F {ssh_options(gateway)}",
            GIT_CONFIG_NOSYSTEM="1",
            GIT_AUTHOR_NAME="T",
            GIT_AUTHOR_EMAIL="t@example.org",
            GIT_COMMITTER_NAME="T",
            GIT_COMMITTER_EMAIL="t@example.org",
        ),
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()


def expect_line(done, pattern):
    """The failure is one line on stderr, and 255 as for everything that is no exit status."""
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 255
    assert len(lines) == 1 and re.match(r"rws: [A-Z_]+: ", lines[0]), lines
    # The fakes' tokens of terminals begin so.
    assert re.search(pattern, lines[0]) and "wstok" not in lines[0], lines[0]
