# SPDX-License-Identifier: ISC
"""What the self-tests of every fake begin with. A fake's conftest.py imports these and adds `fake_server`, the class of
its client."""
import pytest


@pytest.fixture(scope="session")
def running_fake(fake_server, tmp_path_factory):
    """One fake for the whole run."""
    server = fake_server(tmp_path_factory.mktemp("fake") / "root")
    yield server
    assert server.stop() == 0


@pytest.fixture
def server(running_fake):
    """The same, reset after each test."""
    yield running_fake
    running_fake.fake("POST", "reset")


@pytest.fixture
def box(server):
    return server.create()
