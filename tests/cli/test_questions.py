"""Which question the options of `query` ask, and what is said when they ask none."""

from __future__ import annotations

from typing import Any

import pytest

from mqlake.cli.options import UsageError
from mqlake.cli.questions import QueryCommandOptions, choose


@pytest.mark.parametrize(
    ("given", "marks"),
    [
        ({"id": "7F"}, ("id",)),
        ({"id": "7F", "topic": "T"}, ("id",)),
        ({"topic": "T", "key": "k"}, ("key",)),
        ({"topic": "T", "key": "k", "begin": 0, "end": 9, "max": 5}, ("key",)),
        ({"topic": "T", "key": "k", "begin": 3}, ("key",)),
        ({"topic": "T", "key": "k", "index_type": "T"}, ("key",)),
        ({"topic": "T", "unique_key": "k"}, ("unique_key",)),
        ({"topic": "T", "queue": 0, "offset": 0}, ("queue", "offset")),
        ({"topic": "T", "queue": 0, "offset": 0, "max": 2, "tag": "x"}, ("queue", "offset")),
        ({"topic": "T", "queue": 0, "time": 0}, ("queue", "time")),
        ({"topic": "T", "queue": 0, "time": 0, "boundary": "upper"}, ("queue", "time")),
        ({"topic": "T", "begin": 0, "end": 0}, ("begin", "end")),
        ({"topic": "T", "begin": 0, "end": 0, "max": 1, "tag": "x"}, ("begin", "end")),
    ],
)
def test_options_choose_what_a_query_asks(given: dict[str, Any], marks: tuple[str, ...]) -> None:
    assert choose(QueryCommandOptions(**given)).marks == marks


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "say what to find: --id ID; or --topic T with "),
        ({"topic": "T"}, "say what to find"),
        ({"key": "k"}, "--key needs --topic"),
        ({"unique_key": "k"}, "--unique-key needs --topic"),
        ({"queue": 0, "offset": 0}, "--queue --offset needs --topic"),
        ({"topic": "T", "queue": 0}, "--queue needs --offset N or --time MS"),
        ({"topic": "T", "offset": 0}, "--offset needs --queue Q"),
        ({"topic": "T", "time": 0}, "--time needs --queue Q"),
        ({"topic": "T", "begin": 0}, "--begin needs --end"),
        ({"topic": "T", "end": 0}, "--end needs --begin"),
        ({"topic": "T", "key": "k", "queue": 1}, "--queue cannot be combined with --key"),
        ({"id": "7F", "key": "k"}, "--key cannot be combined with --id"),
        ({"id": "7F", "max": 3}, "--max cannot be combined with --id"),
        (
            {"topic": "T", "queue": 0, "offset": 0, "time": 5},
            "--time cannot be combined with --queue --offset",
        ),
        (
            {"topic": "T", "begin": 0, "end": 1, "boundary": "lower"},
            "--boundary cannot be combined with --begin --end",
        ),
    ],
)
def test_options_that_contradict_each_other_are_a_usage_error(
    given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UsageError) as refused:
        choose(QueryCommandOptions(**given))
    assert str(refused.value).startswith(reason)
