"""Every form of a line of Java's `Properties` is read, and what is written is read again."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError, StoreError
from mqlake.store.java_properties import lines, parse, text_of, written
from mqlake.store.settings import read_properties
from tests.store.config.properties_texts import drawn


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb: 2\nc 3\n\td\t=\t4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a = b7 \t\nn=5   \n", {"a": "b7", "n": "5"}),
        ("# a=1\n  ! b=2\n\n \t\nc=#3!", {"c": "#3!"}),
        ("#a\\\nb=1", {"b": "1"}),
        ("a=1s 5s\\\n   10s\\\r\n\t1m\nb=2", {"a": "1s 5s10s1m", "b": "2"}),
        ("a=1\\\n# not a comment\nb=2", {"a": "1# not a comment", "b": "2"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\n\\\n", {"a": "1", "": ""}),
        ("a=1\n\\\n\n", {"a": "1"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\=b=c\\=d", {"a=b": "c=d"}),
        ("a\\ b\\:c d", {"a b:c": "d"}),
        ("a=b\\u0037\\t\\q", {"a": "b7\tq"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a\nb=\n= c\n", {"a": "", "b": "", "": "c"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=\u00a01\u2028", {"a": "\u00a01\u2028"}),
    ],
)
def test_forms_of_lines(text: str, expected: dict[str, str]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["a=\\u", "x=1\n\na=C:\\users", "a\\u12=3", "a=\\\\\\u00g0"])
def test_malformed_escapes_are_refused_as_in_java(text: str) -> None:
    line = text.count("\n") + 1
    with pytest.raises(FormatError, match=rf"line {line}: \\u must be followed by four"):
        parse(text)
    assert "a" in "".join(parse(text, is_strict=False))


@pytest.mark.parametrize("seed", range(200))
def test_lines_are_the_whole_text(seed: int) -> None:
    text = drawn(Random(seed))
    found = list(lines(text, is_strict=False))
    assert "".join(line.raw for line in found) == text
    numbers = [line.number for line in found]
    assert numbers == sorted(set(numbers))


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=4))
def test_what_is_written_is_read(values: dict[str, str]) -> None:
    blanks = "".join(map(chr, range(33)))
    text = text_of(values.items())
    assert text.isascii()
    assert parse(text) == {name: value.strip(blanks) for name, value in values.items()}


def test_plain_values_are_written_as_they_are() -> None:
    for value in ("1s 5s 10s", "127.0.0.1:9876;b=c", "/data/store", "a#b!c"):
        assert written("name", value) == f"name={value}"
    assert written("regionId", "C:\\x 中") == "regionId=C:\\\\x \\u4E2D"


def test_lines_that_do_not_count_cause_warnings(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_bytes("#所属集群\nbrokerName=b6\nx 1\nbrokerName : b7\n".encode("gbk"))
    with pytest.warns(UserWarning, match=r"line 2 is ignored: line 4 sets brokerName again"):
        assert read_properties(path) == {"brokerName": "b7", "x": "1"}
    path.write_text("regionId=\\users")
    with pytest.raises(StoreError, match=r"broker\.conf: line 1: \\u must be followed"):
        read_properties(path)
