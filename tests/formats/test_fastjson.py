"""fastjson's JSON: RocketMQ's own files, its liberties, bounds."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import fastjson
from tests.formats.golden_log import golden
from tests.formats.strategies import TEXT

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq5-killed", "rmq5-default"])
def test_dumps_gives_the_bytes_that_rocketmq_5_wrote(name: str) -> None:
    seen = 0
    for path in sorted((golden(name).path / "config").glob("*.json")):
        data = path.read_bytes()
        assert fastjson.dumps(fastjson.loads(data)).encode() == data
        seen += 1
    assert seen == 6


@given(st.dictionaries(TEXT, VALUES, max_size=4), st.integers(0, 3))
def test_an_object_of_encoded_members_is_taken_over(value: dict[str, object], depth: int) -> None:
    members = [fastjson.encode_member(name, each, depth) for name, each in value.items()]
    whole: object = value
    mixed: object = fastjson.join_members(members, depth)
    for _ in range(depth):
        whole, mixed = {"in": whole}, {"in": mixed}
    assert fastjson.dumps(mixed) == fastjson.dumps(whole)


@pytest.mark.parametrize("name", ["rmq533-clean", "rmq49-clean"])
def test_older_files_mean_the_same(name: str) -> None:
    table = fastjson.loads((golden(name).path / "config" / "delayOffset.json").read_bytes())
    assert isinstance(table, dict)
    assert all(isinstance(level, int) for level in table["offsetTable"])
    assert fastjson.loads(fastjson.dumps(table).encode()) == table


@given(VALUES)
def test_round_trip(value: object) -> None:
    again = fastjson.loads(fastjson.dumps(value).encode())
    assert again == _without_infinities(value)
    assert fastjson.loads(fastjson.dumps(value, pretty=False).encode()) == again


def test_dumps_in_one_line() -> None:
    text = fastjson.dumps({0: "a:1", "b c": [1, {}], "d": []}, pretty=False)
    assert text == '{0:"a:1","b c":[1,{}],"d":[]}'


def _without_infinities(value: object) -> object:
    """fastjson writes an infinite number as null."""
    if isinstance(value, float) and math.isinf(value):
        return None
    if isinstance(value, list):
        return [_without_infinities(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    return value


@given(VALUES)
def test_json_is_read_as_the_standard_library_does(value: object) -> None:
    text = json.dumps(_without_infinities(value))
    assert fastjson.loads(text.encode()) == json.loads(text)
    text = json.dumps(_without_infinities(value), ensure_ascii=False, indent=2)
    assert fastjson.loads(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{0:14,1:9}", {0: 14, 1: 9}),
        ('{"0":14}', {"0": 14}),
        ("{-1:1}", {-1: 1}),
        ("{a:1,$b:2,_c:3,true:4}", {"a": 1, "$b": 2, "_c": 3, "true": 4}),
        ("{'a':'b\"'}", {"a": 'b"'}),
        ("[1,,2,]", [1, 2]),
        ("{,'a':1,,}", {"a": 1}),
        ('{"a":1,"a":2}', {"a": 2}),
        ("[1]trailing", [1]),
        ("{}}", {}),
        (" \t\r\n[ 1 , 2 ] ", [1, 2]),
        (r'"\x41\u00e9\/\v\0\7"', "Aé/\v\0\7"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\ud83d"', "\ufffd"),
        ("[1.5,-0,1e3,null,true,false]", [1.5, 0, 1000.0, None, True, False]),
        ("1" * 400, int("1" * 400)),
    ],
)
def test_liberties(text: str, expected: object) -> None:
    assert fastjson.loads(text.encode()) == expected


def test_malformed_utf8_is_replaced() -> None:
    assert fastjson.loads(b'{"a":"\xed\xa0\x80"}') == {"a": "\ufffd"}


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0), ("   ", 3), ("nul", 0), ("+1", 0), ("{", 1), ("[", 1), ("[1 2]", 3),
        ('{"a" 1}', 5), ('{"a":}', 5), ('{"a":1 "b":2}', 7), ("{1.5:2}", 4),
        ('"abc', 0), (r'"\q"', 2), (r'"\u12"', 2), (r'"\u+123"', 2), (r'"\uD83 "', 2),
        ("{:1}", 1), ("[}", 1), ("1" * 401, 0),
    ],
)  # fmt: skip
def test_errors_say_where(text: str, position: int) -> None:
    with pytest.raises(FormatError, match=f"at character {position}$"):
        fastjson.loads(text.encode())


@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}"), ("{1:[", "]}")])
def test_depth_is_bounded(left: str, right: str) -> None:
    levels = left.count("[") + left.count("{")
    most = fastjson.MAX_DEPTH // levels
    value = fastjson.loads(f"{left * most}1{right * most}".encode())
    assert fastjson.loads(fastjson.dumps(value).encode()) == value
    for count in (most + 1, 100_000):
        with pytest.raises(FormatError, match="nested deeper"):
            fastjson.loads((left * count).encode())
    with pytest.raises(FormatError, match="nested deeper"):
        fastjson.dumps([value])


@given(st.binary())
def test_any_bytes_give_a_value_or_a_format_error(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        fastjson.loads(data)


@given(st.text(alphabet="{}[]:,'\"\\ue10-. at"))
def test_any_mixture_gives_a_value_or_a_format_error(text: str) -> None:
    with contextlib.suppress(FormatError):
        fastjson.loads(text.encode())


def test_what_is_no_json_is_not_written() -> None:
    with pytest.raises(FormatError, match="not a JSON value: bytes"):
        fastjson.dumps([b""])


def test_numbers_beyond_floats_are_written() -> None:
    assert fastjson.dumps(10**399) == "1" + "0" * 399
