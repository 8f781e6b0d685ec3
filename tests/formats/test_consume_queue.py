"""Consume-queue entries: RocketMQ's own files against its own log."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import consume_queue, sys_flag
from mqlake.formats.consume_queue import QueueEntry
from mqlake.formats.java_string import hash_code
from tests.formats.golden_log import golden, messages
from tests.formats.strategies import INT, LONG

ENTRIES = st.builds(QueueEntry, LONG, INT, LONG)


def entries(queue: Path) -> dict[int, QueueEntry]:
    """Return the written entries of a queue's files by queue offset."""
    found: dict[int, QueueEntry] = {}
    for path in queue.iterdir():
        data = path.read_bytes()
        for at in range(0, len(data), consume_queue.ENTRY_SIZE):
            entry = consume_queue.decode(data, at)
            if consume_queue.is_written(entry) and not consume_queue.is_blank(entry):
                found[(int(path.name) + at) // consume_queue.ENTRY_SIZE] = entry
    return found


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq533-clean", "rmq49-clean"])
def test_every_entry_is_what_its_record_says(name: str) -> None:
    expected: dict[tuple[str, int], dict[int, QueueEntry]] = {}
    for m in messages(name):
        if sys_flag.is_queued(m["sysFlag"]):
            code = consume_queue.entry_tags_code(m["topic"], m["properties"], m["storeTimestamp"])
            queue = expected.setdefault((m["topic"], m["queueId"]), {})
            queue[m["queueOffset"]] = QueueEntry(m["physicalOffset"], m["size"], code)

    folder = golden(name).path / "consumequeue"
    actual = {
        (queue.parent.name, int(queue.name)): found
        for queue in folder.glob("*/*")
        if (found := entries(queue))
    }
    assert expected == actual


@given(ENTRIES)
def test_round_trip(entry: QueueEntry) -> None:
    data = consume_queue.encode(entry)
    assert len(data) == consume_queue.ENTRY_SIZE == 20
    assert consume_queue.decode(b"x" + data, 1) == entry


@pytest.mark.parametrize("at", [-1, 1, 20, 1 << 40])
def test_no_whole_entry(at: int) -> None:
    with pytest.raises(FormatError):
        consume_queue.decode(bytes(20), at)


@pytest.mark.parametrize(
    ("entry", "written", "blank"),
    [
        (QueueEntry(0, 0, 0), False, False),
        (QueueEntry(-1, 100, 0), False, False),
        (QueueEntry(0, -1, 0), False, False),
        (QueueEntry(0, 100, 0), True, False),
        (consume_queue.BLANK_ENTRY, True, True),
        (QueueEntry(0, 0x7FFFFFFF, 1), True, False),
    ],
)
def test_written_and_blank(entry: QueueEntry, written: bool, blank: bool) -> None:
    assert (consume_queue.is_written(entry), consume_queue.is_blank(entry)) == (written, blank)


def test_default_delay_levels() -> None:
    levels = consume_queue.DEFAULT_DELAY_LEVELS
    assert len(levels) == 18
    assert (levels[0], levels[4], levels[17]) == (1_000, 60_000, 7_200_000)
    assert consume_queue.parse_delay_levels("3d") == (3 * 86_400_000,)


@pytest.mark.parametrize(
    "text", ["", "1", "s", "1s  5s", " 1s", "1w", "-1s", "1.5s", "9" * 13 + "s"]
)
def test_no_delay_levels(text: str) -> None:
    with pytest.raises(FormatError):
        consume_queue.parse_delay_levels(text)


@pytest.mark.parametrize(
    ("level", "expected"), [(1, 2_000), (3, 11_000), (18, 7_201_000), (99, 7_201_000)]
)
def test_delivery_time(level: int, expected: int) -> None:
    assert consume_queue.delivery_time(level, 1_000) == expected


def test_levels_count_from_1() -> None:
    assert [consume_queue.delivery_time(level, 0, (50, 70)) for level in (1, 2, 3)] == [50, 70, 70]


def test_without_levels_a_message_is_due_after_a_second() -> None:
    assert consume_queue.delivery_time(1, 1_000, ()) == 2_000


def test_delivery_time_wraps_at_64_bits() -> None:
    assert consume_queue.delivery_time(1, (1 << 63) - 1) == -(1 << 63) + 999


@pytest.mark.parametrize(
    ("delay", "level"),
    [("3", 3), ("+3", 3), ("-3", -3), ("0" * 5000 + "3", 3), ("2147483647", 2147483647),
     ("2147483648", 0), ("-2147483649", 0),
     ("-2147483648", -2147483648), ("", 0), ("3 ", 0), ("3.0", 0), ("x", 0),
     ("9" * 5000, 0)],
)  # fmt: skip
def test_delay_level(delay: str, level: int) -> None:
    assert consume_queue.delay_level({"DELAY": delay}) == level


def test_only_the_schedule_topic_has_delivery_times() -> None:
    props = {"DELAY": "2", "TAGS": "TagA"}
    schedule = consume_queue.SCHEDULE_TOPIC
    assert consume_queue.entry_tags_code(schedule, props, 1_000) == 6_000
    assert consume_queue.entry_tags_code("Other", props, 1_000) == hash_code("TagA")
    assert consume_queue.entry_tags_code(schedule, {"TAGS": "TagA"}, 1_000) == hash_code("TagA")
    assert consume_queue.entry_tags_code(schedule, props | {"DELAY": "0"}, 1) == hash_code("TagA")
    assert consume_queue.entry_tags_code(schedule, {}, 1_000) == 0
    assert consume_queue.entry_tags_code(schedule, props, 1_000, ()) == hash_code("TagA")


def test_tags_code_is_the_hash_of_the_whole_property() -> None:
    assert consume_queue.tags_code("a||b") == hash_code("a||b")
    assert consume_queue.tags_code("") == consume_queue.tags_code(None) == 0
