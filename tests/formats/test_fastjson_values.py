"""What fastjson makes of values of other types than a field declares."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from mqlake.errors import FormatError
from mqlake.formats import fastjson
from mqlake.formats.config import convert
from mqlake.formats.fastjson_values import ORDINALS

Color = Annotated[str, msgspec.Meta(extra={ORDINALS: ("RED", "GREEN")})]


class Leaf(msgspec.Struct):
    color: Color = "GREEN"
    number: int = 7
    is_on: bool = False
    text: str = "default"
    inner: Leaf | None = None


class Tree(msgspec.Struct, rename="camel"):
    leaf: Leaf = msgspec.field(default_factory=Leaf)
    all_leaves: list[Leaf] = []
    by_name: dict[str, Leaf] = {}
    numbers: dict[int, int] = {}


def read(text: str) -> Leaf:
    return convert(fastjson.loads(text.encode()), Leaf)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"color":0}', Leaf("RED")),
        ('{"color":1,"number":"12"}', Leaf("GREEN", 12)),
        ('{"color":"RED","number":"-1636200000000"}', Leaf("RED", -1636200000000)),
        ('{"color":0,"number":""}', Leaf("RED")),
        ('{"color":0,"number":"null"}', Leaf("RED")),
        ('{"color":0,"number":null}', Leaf("RED")),
        ('{"color":0,"number":3.9}', Leaf("RED", 3)),
        ('{"color":0,"is_on":1}', Leaf("RED", is_on=True)),
        ('{"color":0,"is_on":2}', Leaf("RED")),
        ('{"color":0,"is_on":"Y"}', Leaf("RED", is_on=True)),
        ('{"color":0,"is_on":"FALSE"}', Leaf("RED")),
        ('{"text":12}', Leaf(text="12")),
        ('{"text":true}', Leaf(text="true")),
        ('{"color":0,"inner":{"color":0,"inner":null}}', Leaf("RED", inner=Leaf("RED"))),
    ],
)
def test_values_are_converted(text: str, expected: Leaf) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"color":2}',
        '{"color":-1}',
        '{"color":1.5}',
        '{"number":"twelve"}',
        '{"number":1e999}',
        '{"is_on":"perhaps"}',
        '{"text":[]}',
        '{"color":0,"inner":[]}',
        "[]",
        "3",
    ],
)
def test_other_values_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        read(text)


def test_values_are_converted_inside_of_lists_and_maps() -> None:
    text = b'{"allLeaves":[{"color":0},null],"byName":{"a":{"color":0}},"numbers":{1:"2"}}'
    expected = Tree(all_leaves=[Leaf("RED")], by_name={"a": Leaf("RED")}, numbers={1: 2})
    assert convert(fastjson.loads(text), Tree) == expected
