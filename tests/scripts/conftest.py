# SPDX-License-Identifier: ISC
"""Every test of a script runs in every shell."""

import pytest

from shells import SHELLS


@pytest.fixture(params=sorted(SHELLS))
def shell(request):
    return request.param
