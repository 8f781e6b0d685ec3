"""A table keeps the form of its bodies, and a query its choice of topics."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec
import pytest

from mqlake.errors import JobError
from mqlake.lake.followers.identity import begin_at, held, note_query
from mqlake.lake.followers.kept_choices import with_broker_name, with_form, with_topics
from mqlake.lake.options import FollowOptions, Format


def options(path: Path, name: str = "store", **source: str) -> FollowOptions:
    return FollowOptions(
        store=path / name,
        format=Format.DELTA,
        out=path / "table",
        checkpoint=path / f"checkpoint-{name}",
        source=source,
    )


def begun(given: FollowOptions, source: dict[str, str]) -> FollowOptions:
    """Begin a table whose notes have options of the source."""
    noted = msgspec.structs.replace(given, source=source)
    with held(noted) as identity:
        note_query(noted, begin_at(noted, identity, {"physicalOffset": 0}))
    return given


def form(given: FollowOptions) -> str:
    with held(given) as identity:
        return with_form(given, identity).source["decompress"]


@pytest.mark.parametrize(("asked", "found"), [(None, "true"), ("TRUE", "true"), ("false", "false")])
def test_new_tables(tmp_path: Path, asked: str | None, found: str) -> None:
    source = {} if asked is None else {"decompress": asked}
    assert form(options(tmp_path, **source)) == found


def test_tables_of_earlier_versions_keep_bodies_as_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = begun(options(tmp_path), {})
    with caplog.at_level(logging.WARNING):
        assert form(given) == "false"
    assert "to decompress them, follow the store into another table" in caplog.text
    assert form(options(tmp_path, decompress="false")) == "false"


def test_a_second_store_adopts_the_form(tmp_path: Path) -> None:
    begun(options(tmp_path), {"decompress": "false"})
    assert form(options(tmp_path, "other")) == "false"


@pytest.mark.parametrize("there", ["true", "false"])
def test_another_form_is_refused(tmp_path: Path, there: str) -> None:
    begun(options(tmp_path), {"decompress": there})
    other = {"true": "false", "false": "true"}[there]
    with pytest.raises(JobError, match=r"follow the store into another table \(--out\)"):
        form(options(tmp_path, decompress=other))


@pytest.mark.parametrize(
    ("noted", "asked", "found"),
    [
        (None, "auto", "false"),
        (None, "true", "true"),
        (None, None, None),
        ({}, "auto", "true"),
        ({"systemTopics": "false"}, "auto", "false"),
        ({"systemTopics": "false"}, "true", "true"),
    ],
)
def test_system_topics_are_left_out_of_new_queries(
    tmp_path: Path, noted: dict[str, str] | None, asked: str | None, found: str | None
) -> None:
    given = options(tmp_path, **({} if asked is None else {"systemTopics": asked}))
    if noted is not None:
        begun(given, noted)
    with held(given) as identity:
        assert with_topics(given, identity).source.get("systemTopics") == found


@pytest.mark.parametrize(
    ("noted", "asked", "found"),
    [
        (None, None, "of-settings"),
        (None, "asked", "asked"),
        ({}, None, None),
        ({"brokerName": "first"}, None, "first"),
        ({"brokerName": "first"}, "asked", "asked"),
    ],
)
def test_a_checkpoint_keeps_the_name_of_its_broker(
    tmp_path: Path, noted: dict[str, str] | None, asked: str | None, found: str | None
) -> None:
    given = options(tmp_path, **({} if asked is None else {"brokerName": asked}))
    settings = given.store / "config" / "broker.properties"
    settings.parent.mkdir(parents=True)
    settings.write_text("brokerName=of-settings\n")
    if noted is not None:
        begun(given, noted)
    with held(given) as identity:
        assert with_broker_name(given, identity).source.get("brokerName") == found


def test_a_store_whose_settings_name_no_broker_has_none(tmp_path: Path) -> None:
    given = options(tmp_path)
    with held(given) as identity:
        assert with_broker_name(given, identity).source == given.source
