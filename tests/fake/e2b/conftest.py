# SPDX-License-Identifier: ISC
"""The common fixtures for this fake, whose sandboxes live for 15 s if they are not told otherwise."""
import pytest

from ..common.fixtures import running_fake, server
from .client import FakeServer

__all__ = ["box", "fake_server", "running_fake", "server"]


@pytest.fixture(scope="session")
def fake_server():
    return FakeServer


@pytest.fixture
def box(server):
    return server.create(timeout=3600)
