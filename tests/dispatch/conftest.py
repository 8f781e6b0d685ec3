"""Each test that takes `kernel` runs on the compiled kernels and on their readable twin."""

from __future__ import annotations

import pytest

from mqlake.dispatch.kernel import Kernel, load


@pytest.fixture(params=["compiled", "reference"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return load(request.param)
