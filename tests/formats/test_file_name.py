"""Names of files and topics."""

from __future__ import annotations

import datetime as dt
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import file_name
from mqlake.formats.file_name import check_topic_name, is_safe_topic
from tests.formats.golden_log import golden
from tests.formats.strategies import TOPICS

MILLISECONDS = st.integers(-62135596800000, 253402300799999)


@given(st.integers(0, (1 << 63) - 1))
def test_segment_names(offset: int) -> None:
    name = file_name.segment_name(offset)
    assert len(name) == 20
    assert file_name.parse_segment_name(name) == offset


@pytest.mark.parametrize(
    "name",
    [
        "",
        "0" * 19,
        "0" * 21,
        "9" * 20,
        "-" + "1" * 19,
        "\u0660" * 20,
        "0" * 19 + " ",
        "0" * 19 + "\n",
    ],
)
def test_no_segment_names(name: str) -> None:
    assert file_name.parse_segment_name(name) is None


def test_offsets_are_signed_longs() -> None:
    assert file_name.parse_segment_name("09223372036854775807") == (1 << 63) - 1
    assert file_name.parse_segment_name("09223372036854775808") is None


@given(MILLISECONDS)
def test_index_names(milliseconds: int) -> None:
    name = file_name.index_name(milliseconds)
    assert len(name) == 17
    assert file_name.parse_index_name(name) == milliseconds


def test_an_index_name_is_a_utc_date() -> None:
    time = dt.datetime(2026, 11, 20, 20, 33, 1, 57000, tzinfo=dt.UTC)
    assert file_name.index_name(round(time.timestamp() * 1000)) == "20261120203301057"
    assert file_name.index_name(-62135596800000) == "00010101000000000"
    assert file_name.index_name(999) == "19700101000000999"


@pytest.mark.parametrize(
    "name", ["", "2026", "20261320203301057", "20260230203301057", "00000101000000000", "x" * 17]
)
def test_no_index_names(name: str) -> None:
    assert file_name.parse_index_name(name) is None


@pytest.mark.parametrize("milliseconds", [1 << 63, -(1 << 63), 253402300800000])
def test_times_beyond_the_calendar_are_refused(milliseconds: int) -> None:
    with pytest.raises(FormatError):
        file_name.index_name(milliseconds)


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq533-clean", "rmq49-clean"])
def test_names_of_a_real_store(name: str) -> None:
    path = golden(name).path
    for segment in (path / "commitlog").iterdir():
        assert file_name.parse_segment_name(segment.name) is not None
    for index in (path / "index").iterdir():
        assert file_name.parse_index_name(index.name) is not None
    for topic in (path / "consumequeue").iterdir():
        assert check_topic_name(topic.name) == topic.name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "/", "a/b", "a\\b", "..\\x", "a\0", "a\n", "\x1b[2J", "\x7f", "a" * 256,
     "é" * 128, "\ud800"],
)  # fmt: skip
def test_unsafe_topics(name: str) -> None:
    with pytest.raises(FormatError, match="topic's directory"):
        check_topic_name(name)


@pytest.mark.parametrize("name", ["a", "...", "%RETRY%g", "a.b", "é" * 127, " ", "a" * 255, "主题"])
def test_safe_topics(name: str) -> None:
    assert check_topic_name(name) == name


@given(TOPICS | st.text())
def test_a_checked_topic_is_one_component_of_a_path(name: str) -> None:
    try:
        check_topic_name(name)
    except FormatError:
        return
    assert (PurePosixPath("/store") / name).parts == ("/", "store", name)
    assert (PurePosixPath("/store") / name).name == name
    assert len(PureWindowsPath("store\\" + name).parts) == 2


@given(st.binary(max_size=300))
def test_bytes_and_text_have_the_same_rules(data: bytes) -> None:
    try:
        expected = check_topic_name(data.decode()) == data.decode()
    except (FormatError, UnicodeDecodeError):
        expected = False
    assert is_safe_topic(data) is expected
