"""What is learnt of binary headers changes how fast they are read, not what they say."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from mqlake.protocol import binary_fields, binary_header
from mqlake.protocol.binary_layouts import MAX_LAYOUTS, MAX_SIZES, Layouts
from mqlake.protocol.command import Command
from mqlake.protocol.errors import FrameError
from tests.protocol.messages import SEND_FIELDS, pair
from tests.protocol.messages import binary_header as header


def of(fields: Iterable[tuple[str, str]], remark: bytes = b"") -> bytes:
    pairs = b"".join(pair(name.encode(), value.encode()) for name, value in fields)
    return header(pairs, 310, remark=remark)


@pytest.fixture
def layouts(monkeypatch: pytest.MonkeyPatch) -> Layouts:
    found = Layouts(binary_header.START_SIZE)
    for module in (binary_header, binary_fields):
        monkeypatch.setattr(module, "layouts", found)
    return found


def test_the_second_header_is_read_by_the_layout_of_the_first(layouts: Layouts) -> None:
    first, second = of(SEND_FIELDS.items()), of({**SEND_FIELDS, "e": "9", "b": "TopicTesT"}.items())
    assert layouts.read(second) is None
    binary_header.decode(first)
    assert layouts.read(second) == {**SEND_FIELDS, "e": "9", "b": "TopicTesT"}
    assert binary_header.decode(second).fields == {**SEND_FIELDS, "e": "9", "b": "TopicTesT"}


@pytest.mark.parametrize(
    "fields",
    [
        [("b", "TopicTest"), ("a", "group")],
        [("a", "grou"), ("b", "TopicTest1")],
        [("a", "group"), ("B", "TopicTest")],
        [("a", "group"), ("b", "TopicTes\N{DEGREE SIGN}"[:8] + "t")],
        [("a", "groüp"), ("b", "TopicTes")],
        [("a", "group\x00\x01"), ("", "TopicT")],
    ],
)
def test_a_header_of_the_same_size_but_otherwise_made(
    layouts: Layouts, fields: list[tuple[str, str]]
) -> None:
    known = of([("a", "group"), ("b", "TopicTest")])
    binary_header.decode(known)
    for _ in range(3):
        assert binary_header.decode(of(fields)).fields == dict(fields)
    assert binary_header.decode(known).fields == {"a": "group", "b": "TopicTest"}


def test_of_fields_of_one_name_the_last_counts_each_time(layouts: Layouts) -> None:
    for _ in range(3):
        assert binary_header.decode(of([("a", "1"), ("a", "2")])).fields == {"a": "2"}


def test_a_remark_moves_the_fields(layouts: Layouts) -> None:
    for _ in range(3):
        command = binary_header.decode(of(SEND_FIELDS.items(), remark=b"why"))
        assert (command.remark, command.fields) == ("why", SEND_FIELDS)


def test_a_bounded_number_of_layouts_is_kept(layouts: Layouts) -> None:
    sizes = range(3 * MAX_SIZES)
    for size in sizes:
        binary_header.decode(of([("a", "x" * size), ("b", "")]))
    for length in range(50):
        binary_header.decode(of([("a", "x" * length), ("b", "x" * (50 - length))]))
    kept = layouts.by_size
    assert len(kept) <= MAX_SIZES
    assert all(len(each) <= MAX_LAYOUTS for each in kept.values())


def test_wrong_bytes_are_read_as_without_layouts(layouts: Layouts) -> None:
    dice = random.Random(7)
    whole = of(SEND_FIELDS.items())
    for _ in range(5000):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 3)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        binary_header.decode(whole)
        learnt = _read(bytes(data))
        layouts.by_size.clear()
        assert learnt == _read(bytes(data))


def _read(data: bytes) -> Command | str:
    try:
        return binary_header.decode(data)
    except FrameError as error:
        return str(error)
