"""When tasks are to be delivered, by their labels."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mqlake.errors import FormatError
from mqlake.taskiq.labels import delivery_time

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("labels", "due"),
    [
        ({}, None),
        ({"other": 5}, None),
        ({"delay": 2}, NOW + 2000),
        ({"delay": "0.5"}, NOW + 500),
        ({"delay": 0}, None),
        ({"delay": -3}, None),
        ({"eta": "2023-11-14T22:13:30+00:00"}, NOW + 10_000),
        ({"eta": datetime(2023, 11, 14, 22, 13, 30, tzinfo=UTC)}, NOW + 10_000),
        ({"eta": "2001-01-01T00:00:00+00:00"}, None),
    ],
)
def test_labels_set_the_delivery_time(labels: dict[str, object], due: int | None) -> None:
    assert delivery_time(labels, NOW) == due


@pytest.mark.parametrize(
    "labels",
    [
        {"delay": "soon"},
        {"delay": "nan"},
        {"delay": "inf"},
        {"delay": None, "eta": "tomorrow"},
        {"eta": "2023-11-14T22:13:30"},
        {"delay": 1, "eta": "2023-11-14T22:13:30+00:00"},
    ],
)
def test_a_label_that_cannot_be_read_is_refused(labels: dict[str, object]) -> None:
    with pytest.raises(FormatError, match=r"label|labels"):
        delivery_time(labels, NOW)
