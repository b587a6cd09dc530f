# SPDX-License-Identifier: ISC
"""Every test of a script runs in every shell."""

import signal

import pytest

from shells import SHELLS

# Whoever runs the tests under nohup ignores HUP, and so would what they start. A handler does not pass on.
signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture(params=sorted(SHELLS))
def shell(request):
    return request.param
