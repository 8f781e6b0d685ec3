"""Each test that takes `kernel` runs with the compiled kernels and with their readable twin."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["compiled", "reference"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MQLAKE_KERNEL", request.param)
    return request.param
