"""What holds for the tests of clients."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.client.behaviour.cases")
