# SPDX-License-Identifier: ISC
"""Who may log in, and what a key's options do."""

import datetime
import socket
import subprocess
import time

import paramiko
import pytest
from clients import TIMEOUT, environment, host_key_fingerprint, paramiko_connect, ssh, ssh_options
from gateway import Gateway, make_key, public_key, wait_until

# RFC 4252 section 6 and RFC 4253 section 12
MSG_SERVICE_REQUEST, MSG_SERVICE_ACCEPT = 5, 6
MSG_USERAUTH_REQUEST, MSG_USERAUTH_FAILURE, MSG_USERAUTH_SUCCESS, MSG_USERAUTH_BANNER = 50, 51, 52, 53


def set_keys(gateway, *lines):
    """Writes authorized_keys; KEY stands for the client's key."""
    path = gateway.directory / "keys"
    text = "".join(line.replace("KEY", public_key(gateway.key)) + "\n" for line in lines)
    path.write_text(text)
    path.chmod(0o644)


@pytest.fixture
def keyed(make_gateway, monkeypatch):
    """Makes a gateway with a file of keys, which has to exist before it starts."""
    def make(*lines, **login):
        original = Gateway.write_configuration

        def write(self):
            original(self)
            set_keys(self, *lines)

        monkeypatch.setattr(Gateway, "write_configuration", write)
        return make_gateway(logins={"sandbox": {"authorized_keys": "keys", **login}})

    return make


@pytest.mark.core
def test_the_right_key_logs_in_and_a_wrong_one_does_not(gateway, tmp_path):
    wrong = make_key(tmp_path / "wrong")
    assert ssh(gateway, "echo in").stdout == b"in\n"
    done = ssh(gateway, "echo in", key=wrong)
    assert done.returncode == 255
    assert b"Permission denied" in done.stderr
    assert done.stdout == b""


@pytest.mark.core
def test_unknown_login_and_wrong_key_look_alike(gateway, tmp_path):
    wrong = make_key(tmp_path / "wrong")
    known = ssh(gateway, "true", key=wrong)
    unknown = ssh(gateway, "true", key=gateway.key, login="nobody-of-this-name")
    assert known.returncode == unknown.returncode == 255
    assert known.stderr.replace(b"sandbox", b"X") == unknown.stderr.replace(b"nobody-of-this-name", b"X")


@pytest.mark.parametrize(
    "kind,bits", [("ed25519", None), ("ecdsa", 256), ("ecdsa", 384), ("ecdsa", 521), ("rsa", 3072)]
)
def test_every_kind_of_key_logs_in(keyed, tmp_path, kind, bits):
    key = make_key(tmp_path / "key", kind, bits)
    gateway = keyed(public_key(key))
    done = ssh(gateway, "echo in", key=key)
    assert (done.stdout, done.returncode) == (b"in\n", 0)


def test_a_short_rsa_key_does_not_log_in(keyed, tmp_path):
    key = make_key(tmp_path / "key", "rsa", 1024)
    gateway = keyed(public_key(key), "KEY")
    assert ssh(gateway, "true", "-oRequiredRSASize=1024", key=key).returncode == 255


def test_rsa_with_sha1_is_refused(keyed, tmp_path):
    key = make_key(tmp_path / "key", "rsa", 3072)
    gateway = keyed(public_key(key))
    done = ssh(gateway, "-oPubkeyAcceptedAlgorithms=ssh-rsa", "true", key=key)
    assert done.returncode == 255


def test_the_second_of_two_offered_keys_logs_in(gateway, tmp_path):
    wrong = make_key(tmp_path / "wrong")
    done = ssh(gateway, f"-oIdentityFile={wrong}", "echo in")
    assert done.stdout == b"in\n"


@pytest.mark.core
def test_tries_are_counted(make_gateway, tmp_path):
    gateway = make_gateway(options={"max_auth_tries": 3})
    wrong = [make_key(tmp_path / f"wrong{number}") for number in range(5)]
    options = [f"-oIdentityFile={key}" for key in wrong]
    done = ssh(gateway, *options, "true", key=wrong[0])
    assert done.returncode == 255
    # The right key comes after three wrong ones: too late.
    path = ssh_options(gateway, wrong[0])
    late = ["ssh", "-F", path, *options, f"-oIdentityFile={gateway.key}", "sandbox@gateway", "true"]
    done = subprocess.run(late, capture_output=True, timeout=TIMEOUT, env=environment(gateway), check=False)
    assert done.returncode == 255
    gateway.wait_log("too many authentication failures")


def transport(gateway):
    """A paramiko transport after the key exchange, before any authentication."""
    connected = paramiko.Transport(socket.create_connection(("127.0.0.1", gateway.port), TIMEOUT))
    connected.start_client(timeout=TIMEOUT)
    return connected


@pytest.mark.core
def test_the_user_name_cannot_change_during_authentication(gateway, tmp_path):
    wrong = paramiko.Ed25519Key.from_private_key_file(str(make_key(tmp_path / "wrong")))
    right = paramiko.Ed25519Key.from_private_key_file(str(gateway.key))
    connected = transport(gateway)
    try:
        with pytest.raises(paramiko.AuthenticationException):
            connected.auth_publickey("somebody", wrong)
        with pytest.raises((paramiko.SSHException, EOFError)):
            connected.auth_publickey("sandbox", right)
        assert not connected.is_authenticated()
    finally:
        connected.close()


@pytest.mark.core
@pytest.mark.parametrize("number", [MSG_USERAUTH_SUCCESS, MSG_USERAUTH_FAILURE, MSG_USERAUTH_BANNER])
def test_a_client_cannot_declare_itself_authenticated(gateway, number):
    """CVE-2018-10933: a server that took the client's USERAUTH_SUCCESS for its own."""
    connected = transport(gateway)
    try:
        message = paramiko.Message()
        message.add_byte(bytes([number]))
        if number == MSG_USERAUTH_FAILURE:
            message.add_string("publickey")
            message.add_boolean(True)
        if number == MSG_USERAUTH_BANNER:
            message.add_string("hello")
            message.add_string("")
        connected._send_message(message)
        with pytest.raises((paramiko.SSHException, EOFError, OSError)):
            connected.open_session(timeout=10).exec_command("echo in")
    finally:
        connected.close()
    assert ssh(gateway, "echo on").stdout == b"on\n"


def test_a_session_before_authentication_is_refused(gateway):
    connected = transport(gateway)
    try:
        with pytest.raises((paramiko.SSHException, EOFError)):
            connected.open_session(timeout=10)
    finally:
        connected.close()


@pytest.mark.core
def test_passwords_are_refused(gateway):
    connected = transport(gateway)
    try:
        with pytest.raises(paramiko.BadAuthenticationType) as refused:
            connected.auth_password("sandbox", "secret", fallback=False)
        assert refused.value.allowed_types == ["publickey"]
    finally:
        connected.close()


class RawAuth(paramiko.auth_handler.AuthHandler):
    """Sends userauth requests by hand and notes the answers."""

    def __init__(self, connected):
        super().__init__(connected)
        self.answers = []
        connected.auth_handler = self

    @property
    def _client_handler_table(self):
        """How a handler is called differs between releases of paramiko."""
        return {
            number: lambda *_, number=number: self.answers.append(number)
            for number in (MSG_SERVICE_ACCEPT, MSG_USERAUTH_FAILURE)
        }

    def send(self, number, *fields):
        message = paramiko.Message()
        message.add_byte(bytes([number]))
        for field in fields:
            if isinstance(field, bool):
                message.add_boolean(field)
            else:
                message.add_string(field)
        self.transport._send_message(message)

    def request(self, method, *fields):
        """Sends a request (RFC 4252 section 5) and waits for its refusal or the end."""
        before = len(self.answers)
        self.send(MSG_USERAUTH_REQUEST, "sandbox", "ssh-connection", method, *fields)
        wait_until(
            lambda: len(self.answers) > before or not self.transport.is_active(),
            timeout=10,
            what="an answer to the request",
        )


@pytest.mark.core
@pytest.mark.parametrize("signature", [None, b"garbage"])
@pytest.mark.parametrize(
    "algorithm,blob",
    [
        ("ssh-unknown", b"\0\0\0\x0bssh-unknown\0\0\0\x01x"),
        ("ssh-ed25519", b"\0\0\0\x0bssh-ed25519\0\0\0\x01x"),
        ("ssh-ed25519", b"garbage"),
    ],
    ids=["unknown", "short", "garbage"],
)
def test_a_key_that_cannot_be_parsed_gets_an_answer(gateway, algorithm, blob, signature):
    """field/libssh.md L1: libssh drops such a request, and the client waits for ever."""
    connected = transport(gateway)
    try:
        handler = RawAuth(connected)
        handler.send(MSG_SERVICE_REQUEST, "ssh-userauth")
        wait_until(lambda: handler.answers == [MSG_SERVICE_ACCEPT], what="the service")
        # As every client that learns the methods first.
        handler.request("none")
        signed = [] if signature is None else [signature]
        handler.request("publickey", bool(signed), algorithm, blob, *signed)
        assert not connected.is_authenticated()
    finally:
        connected.close()


@pytest.mark.core
def test_a_forced_command_replaces_the_clients(keyed):
    gateway = keyed('command="echo forced: $SSH_ORIGINAL_COMMAND" KEY')
    assert ssh(gateway, "echo mine").stdout == b"forced: echo mine\n"
    assert ssh(gateway, "-T").stdout == b"forced:\n"


@pytest.mark.parametrize("option", ["no-pty", "restrict"])
def test_a_key_may_be_denied_a_pty(keyed, option):
    gateway = keyed(f"{option} KEY")
    assert ssh(gateway, "echo in").stdout == b"in\n"
    with paramiko_connect(gateway) as client:
        with pytest.raises(paramiko.SSHException):
            client.get_transport().open_session().get_pty()


def test_restrict_can_give_the_pty_back(keyed):
    gateway = keyed("restrict,pty KEY")
    assert ssh(gateway, "-tt", "tty").stdout.startswith(b"/dev/")


@pytest.mark.core
def test_a_keys_environment_reaches_the_command(keyed):
    gateway = keyed('environment="A=one",environment="B=two words" KEY')
    assert ssh(gateway, "echo $A, $B").stdout == b"one, two words\n"


@pytest.mark.core
@pytest.mark.parametrize(
    "pattern,allowed",
    [
        ("127.0.0.1", True),
        ("127.0.0.0/8", True),
        ("10.0.0.0/8,127.*", True),
        ("192.0.2.0/24", False),
        ("127.0.0.0/8,!127.0.0.1", False),
    ],
)
def test_a_key_is_bound_to_its_sources(keyed, pattern, allowed):
    gateway = keyed(f'from="{pattern}" KEY')
    assert (ssh(gateway, "true").returncode == 0) == allowed


def test_a_key_past_its_expiry_does_not_log_in(keyed):
    now = datetime.datetime.now(datetime.timezone.utc)
    for moment, allowed in ((now - datetime.timedelta(days=2), False), (now + datetime.timedelta(days=2), True)):
        gateway = keyed(f'expiry-time="{moment:%Y%m%d%H%M%S}Z" KEY')
        assert (ssh(gateway, "true").returncode == 0) == allowed


@pytest.mark.core
def test_an_unknown_option_refuses_its_line_only(keyed, tmp_path):
    other = make_key(tmp_path / "other")
    gateway = keyed("no-such-option KEY", public_key(other))
    assert ssh(gateway, "true").returncode == 255
    assert ssh(gateway, "true", key=other).returncode == 0
    gateway.wait_log(r"keys:1.*no-such-option")


def test_an_edited_key_file_takes_effect_at_once(keyed, tmp_path):
    other = make_key(tmp_path / "other")
    gateway = keyed("KEY")
    assert ssh(gateway, "true", key=other).returncode == 255
    set_keys(gateway, public_key(other))
    assert ssh(gateway, "true", key=other).returncode == 0
    assert ssh(gateway, "true").returncode == 255


def test_a_key_file_that_others_can_write_does_not_count(keyed):
    gateway = keyed("KEY")
    (gateway.directory / "keys").chmod(0o666)
    assert ssh(gateway, "true").returncode == 255
    (gateway.directory / "keys").chmod(0o644)
    assert ssh(gateway, "true").returncode == 0


def test_a_login_without_a_key_exchange_ends_after_the_grace_time(make_gateway):
    gateway = make_gateway(options={"login_grace_time": "1s"})
    with socket.create_connection(("127.0.0.1", gateway.port), TIMEOUT) as silent:
        silent.settimeout(TIMEOUT)
        started = time.monotonic()
        while silent.recv(4096):
            assert time.monotonic() - started < TIMEOUT
    gateway.wait_log("within the grace time")


def test_connections_over_the_limit_of_a_source_are_refused(make_gateway):
    gateway = make_gateway(options={"max_startups_per_source": 3, "login_grace_time": "30s"})
    silent = [socket.create_connection(("127.0.0.1", gateway.port), TIMEOUT) for _ in range(3)]
    try:
        for connection in silent:
            connection.settimeout(TIMEOUT)
            assert connection.recv(4).startswith(b"SSH-")
        with socket.create_connection(("127.0.0.1", gateway.port), TIMEOUT) as refused:
            refused.settimeout(TIMEOUT)
            assert refused.recv(4096) == b""
        gateway.wait_log("refused")
    finally:
        for connection in silent:
            connection.close()
    wait_until(lambda: ssh(gateway, "true").returncode == 0, what="a place for the next one")


@pytest.mark.parametrize("login", ["sandbox+", "sandbox=", "sandbox+a/b", "sandbox+a b", "+a", "=a", "sandbox+" + "a" * 65])
def test_malformed_logins_are_refused(gateway, login):
    assert ssh(gateway, f"-oUser={login}", "true", login=login).returncode == 255


def test_instances_follow_the_policy_of_the_block(make_gateway):
    gateway = make_gateway(
        logins={"on": {"instances": "on"}, "off": {"instances": "off"}, "attach": {"instances": "attach"}}
    )
    assert ssh(gateway, "true", login="on+a").returncode == 0
    assert ssh(gateway, "true", login="on=some-id").returncode == 255
    assert ssh(gateway, "true", login="off").returncode == 0
    assert ssh(gateway, "true", login="off+a").returncode == 255


def test_host_keys_survive_a_restart_and_are_private(make_gateway):
    gateway = make_gateway()
    before = host_key_fingerprint(gateway)
    for name in ("ssh_host_ed25519_key", "ssh_host_rsa_key"):
        assert (gateway.directory / "host_keys" / name).stat().st_mode & 0o777 == 0o600
    gateway.end()
    gateway.start()
    assert host_key_fingerprint(gateway) == before
    for algorithm in ("ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256"):
        (gateway.directory / "known_hosts").unlink(missing_ok=True)
        assert ssh(gateway, f"-oHostKeyAlgorithms={algorithm}", "true").returncode == 0


def test_strict_key_exchange_is_offered(gateway):
    """CVE-2023-48795."""
    done = ssh(gateway, "-vvv", "-oLogLevel=DEBUG3", "true")
    assert b"kex-strict-s-v00@openssh.com" in done.stderr
