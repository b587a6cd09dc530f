# SPDX-License-Identifier: ISC
"""The common fixtures for this fake."""
import pytest

from ..common.fixtures import box, running_fake, server
from .client import FakeServer

__all__ = ["box", "fake_server", "running_fake", "server"]


@pytest.fixture(scope="session")
def fake_server():
    return FakeServer
