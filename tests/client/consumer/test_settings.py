"""What a consumer's settings refuse."""

from __future__ import annotations

from typing import Any

import pytest

from mqlake.client import ClientError, ConsumerSettings


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("earliest", "'first'"),
        ("latest", "'last'"),
        ("beginning", "'last', 'first' or milliseconds since 1970"),
        (None, "'last', 'first' or milliseconds since 1970"),
    ],
)
def test_the_start_of_a_group_by_another_name_is_one_line(given: Any, right: str) -> None:
    with pytest.raises(ClientError) as raised:
        ConsumerSettings(consume_from=given)
    assert str(raised.value) == f"consume_from={given!r}: give {right}"


@pytest.mark.parametrize("given", ["first", "last", 1_700_000_000_000])
def test_starts(given: Any) -> None:
    assert ConsumerSettings(consume_from=given).consume_from == given
