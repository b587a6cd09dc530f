# SPDX-License-Identifier: ISC
"""How E2B is reached: by name, over TLS, through a proxy; all from within the worker's confinement."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading

import pytest
from clients import ssh
from gateway import wait_until

DRIVERS = ("e2b",)


def pass_on(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class Relay:
    """A server that passes connections on, to the fake or what is in front of it: accept(socket) may wrap or
    read them first."""

    def __init__(self, connect, accept):
        self.connect, self.accept = connect, accept
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()[1]
        self.count = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        with contextlib.suppress(OSError):
            client = self.accept(client)
            self.count += 1
            server = self.connect()
            threading.Thread(target=pass_on, args=(client, server), daemon=True).start()
            pass_on(server, client)

    def stop(self):
        self.listener.close()


@pytest.fixture(name="relay")
def relay_fixture(provider):
    """Starts relays to the fake, unless connect() says where to."""
    started = []

    def connect_fake():
        return socket.create_connection(("127.0.0.1", int(provider.url.rpartition(":")[2])))

    def start(accept, connect=connect_fake):
        started.append(Relay(connect, accept))
        return started[-1]

    yield start
    for relay in started:
        relay.stop()


@pytest.fixture(name="certificate")
def certificate_fixture():
    """A certificate of 127.0.0.1's own, which the workers' user can read, and its key."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="certificate-"))
    directory.chmod(0o755)
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    subprocess.run(
        [
            *"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(),
            *("-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
            *("-out", certificate, "-keyout", key),
        ],
        check=True,
        capture_output=True,
    )
    certificate.chmod(0o644)
    yield certificate, key
    shutil.rmtree(directory)


def urls(url):
    return {"api_url": url, "sandbox_url": url}


def test_the_provider_is_found_by_name(make_gateway, provider):
    """Names are looked up by threads of the C library, which the confinement must let it have."""
    port = provider.url.rpartition(":")[2]
    gateway = make_gateway(logins={"sandbox": urls(f"http://localhost:{port}")})
    assert ssh(gateway, "echo hi").stdout == b"hi\n"


def test_a_name_that_does_not_exist_is_one_line(make_gateway):
    gateway = make_gateway(logins={"sandbox": urls("http://nowhere.invalid")})
    done = ssh(gateway, "true")
    assert done.returncode == 255
    assert re.match(rb"rws: UNAVAILABLE: e2b: list sandboxes: no connection: .*nowhere\.invalid.*\n$", done.stderr)


def test_tls_is_spoken_and_the_certificate_checked(make_gateway, relay, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server = relay(lambda client: context.wrap_socket(client, server_side=True))
    url = f"https://127.0.0.1:{server.address}"
    gateway = make_gateway(
        logins={
            "trusting": {**urls(url), "ca_file": certificate[0]},
            "wary": urls(url),
        }
    )
    data = bytes(range(256)) * 4096
    done = ssh(gateway, "cat", stdin=data, login="trusting")
    assert (done.returncode, done.stdout == data) == (0, True), done.stderr
    done = ssh(gateway, "true", login="wary")
    assert done.returncode == 255
    assert b"list sandboxes: no connection: SSL" in done.stderr


@pytest.fixture(name="front")
def front_fixture(provider, certificate):
    """nghttpx in front of the fake: TLS, and HTTP/2 for who wants it. Gives its socket and its log."""
    directory = certificate[0].parent
    path, log = directory / "socket", directory / "log"
    command = ["nghttpx", "--conf=/dev/null", "--workers=1", f"--frontend=unix:{path}", "--no-ocsp"]
    command += [f"--backend=127.0.0.1,{provider.url.rpartition(':')[2]}", "--errorlog-file=/dev/null"]
    command += [f"--accesslog-file={log}", "--accesslog-format=$protocol_version $method $path_without_query"]
    with subprocess.Popen([*command, certificate[1], certificate[0]]) as process:
        wait_until(path.exists, what="the start of nghttpx")
        yield path, log
        process.terminate()


def test_http2_is_spoken_where_it_is_offered(make_gateway, relay, certificate, front):
    """As E2B itself offers it. What is streamed has a connection of its own, since it may be held up."""
    path, log = front

    def connect():
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(path))
        return server

    server = relay(lambda client: client, connect)
    login = {**urls(f"https://127.0.0.1:{server.address}"), "ca_file": certificate[0]}
    gateway = make_gateway(logins={"sandbox": login})
    data = os.urandom(3_000_000)
    done = ssh(gateway, "cat", stdin=data)
    assert (done.returncode, done.stdout == data) == (0, True), done.stderr
    assert ssh(gateway, "cat >f && wc -c <f", stdin=data).stdout == b"3000000\n"
    assert ssh(gateway, "kill -TERM $$").returncode == 255
    wait_until(lambda: "/process.Process/CloseStdin" in log.read_text(), what="the log")
    spoken = {line.split()[2]: line.split()[0] for line in log.read_text().splitlines()}
    assert spoken["/sandboxes"] == spoken["/process.Process/CloseStdin"] == "HTTP/2"
    assert spoken["/process.Process/Start"] == "HTTP/1.1"


def test_a_proxy_is_used_and_its_password_kept(make_gateway, relay, provider):
    seen = []

    def accept(client):
        # The proxy of a plain request gets it with the whole URL in it; a relay needs no more.
        seen.append(client.recv(65536, socket.MSG_PEEK).split(b"\r\n\r\n")[0])
        return client

    proxy = relay(accept)
    gateway = make_gateway(
        logins={
            "sandbox": {
                "proxy": f"http://me:secretword@127.0.0.1:{proxy.address}",
                **urls("http://provider.test"),
                "request_timeout": "5s",
            },
        },
        arguments=["-v"],
    )
    done = ssh(gateway, "true")
    assert proxy.count > 0 and b"http://provider.test/" in seen[0], done.stderr
    assert b"Proxy-Authorization: Basic" in seen[0]
    assert b"secretword" not in done.stderr
    assert "secretword" not in gateway.log_text()
    assert provider.key not in gateway.log_text()
