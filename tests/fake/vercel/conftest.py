# SPDX-License-Identifier: ISC
"""One fake for the whole run, reset after each test."""
import pytest

from .client import FakeServer


@pytest.fixture(scope="session")
def running_fake(tmp_path_factory):
    server = FakeServer(tmp_path_factory.mktemp("fake") / "root")
    yield server
    assert server.stop() == 0


@pytest.fixture
def server(running_fake):
    yield running_fake
    running_fake.fake("POST", "reset")


@pytest.fixture
def box(server):
    return server.create()
