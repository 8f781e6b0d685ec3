"""What holds for the tests of clients."""

from __future__ import annotations

import pytest

from tests.client.patience import patient_producers

__all__ = ["patient_producers"]

pytest.register_assert_rewrite("tests.client.behaviour.cases")
