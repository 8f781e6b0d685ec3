"""SQL92 expressions; tests/peer compares them with RocketMQ's own parser."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from mqlake.broker.filter.sql92.java_numbers import NotComparableError
from mqlake.broker.filter.sql92.parser import MAX_DEPTH, compile_expression
from mqlake.broker.filter.sql92.tokens import ExpressionError
from tests.broker.filter.expressions import expression, properties

MESSAGE = {"a": "5", "b": "abc", "flag": "True", "price": "9.50", "it": "it's"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 5", True),
        ("a = '5' AND b <> 'x'", True),
        ("a > 4 AND a <= 5 or b = 'x'", True),
        ("a BETWEEN 5 AND 6", True),
        ("a NOT BETWEEN 5 AND 6", False),
        ("price >= 9.5", True),
        ("price > a", True),  # two texts: as doubles
        ("b IN ('x', 'abc')", True),
        ("b NOT IN ('x')", True),
        ("flag = TRUE", True),
        ("it = 'it''s'", True),
        ("b contains 'bc' and b startswith 'a' and b ENDSWITH 'c'", True),
        ("b NOT CONTAINS ''", False),
        ("a = 5 -- a remark", True),
        ("a /* one */ = /* two */ 5", True),
        ("-5 < a", True),
        # What is unknown
        ("missing IS NULL", True),
        ("a IS NOT NULL", True),
        ("missing = 'x'", None),
        ("missing <> 'x'", None),
        ("missing > 1", None),
        ("NOT missing = 'x'", None),
        ("missing IN ('x')", None),
        ("missing NOT CONTAINS 'x'", False),
        ("missing = other", True),
        ("missing > 1 OR a = 5", True),
        ("missing > 1 AND a = 6", False),
        # A property is a text, not TRUE
        ("flag", False),
        ("NOT flag", True),
        # NOT binds closer than =
        ("NOT a = 5", False),
        ("(a = 5) = 1", False),
    ],
)
def test_values(text: str, expected: object) -> None:
    assert compile_expression(text)(MESSAGE) is expected


@pytest.mark.parametrize("text", ["b = 5", "b > 5", "a = 5 AND b = 5", "TRUE = a", "price = 9"])
def test_values_that_do_not_compare(text: str) -> None:
    with pytest.raises(NotComparableError):
        compile_expression(text)(MESSAGE)


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("", 1, "a property or a value"),
        ("5", 1, "a condition"),
        ("a = NULL", 3, "IS NULL"),
        ("a > 'x'", 3, "numbers and properties"),
        ("a BETWEEN 6 AND 5", 3, "must not be greater"),
        ("a IN (1)", 7, "a text in single quotes"),
        ("'a' IN ('b')", 5, "a property on its left"),
        ("a = 5;", 6, "unexpected character ';'"),
        ("a = 'x", 5, "unexpected character"),
        ("a = 5 b = 6", 7, "the end of"),  # RocketMQ drops what follows
        ("a < 007", 6, "the end of"),
        ("a = 9223372036854775808", 5, "exceeds 64 bits"),
        ("a > 0.0", 5, "range of positive doubles"),
        ("a NOT = 5", 7, "BETWEEN, IN"),
        ("a AND 5", 7, "a condition"),
        ("TRUE = 5", 6, "another literal"),
        ("(" * (MAX_DEPTH + 1) + "a", MAX_DEPTH + 1, "nested deeper"),
        ("a" + " = a" * MAX_DEPTH, None, "nested deeper"),
    ],
)
def test_refused(text: str, where: int | None, reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason) as error:
        compile_expression(text)
    if where is not None:
        assert f"character {where}:" in str(error.value)
    assert len(str(error.value)) < 250


def test_the_examples_of_the_page() -> None:
    page = (Path(__file__).parents[3] / "docs" / "filters.md").read_text()
    examples = page.split("```sql\n")[1].split("```")[0].splitlines()
    message = {"price": "11", "region": "north", "name": "abc", "kind": "real"} | {
        "urgent": "false"
    }
    assert [compile_expression(example)(message) for example in examples] == [True] * 3
    for text in re.findall("`(.*?)`", page.split("An expression means")[1].split("Where")[0]):
        if text not in ("9.5", "10.5", "0.0", "TRUE", "=", "<", ">", "NOT"):
            compile_expression(text)


def test_long_expressions() -> None:
    many = " OR ".join(f"a = {number}" for number in range(3000))
    assert compile_expression(many)({"a": "2999"}) is True
    assert compile_expression("NOT " * (MAX_DEPTH - 3) + "a = 5")(MESSAGE) is not None


def test_any_text_compiles_or_is_refused() -> None:
    chance = random.Random(5)
    refused = failed = 0
    for _ in range(2000):
        text = list(expression(chance))
        for _ in range(chance.randint(0, 3)):
            text[chance.randrange(len(text))] = chance.choice("'()-=<>*/ é\0.aE5,")
        try:
            evaluate = compile_expression("".join(text))
        except ExpressionError:
            refused += 1
            continue
        try:
            assert evaluate(properties(chance)) in (True, False, None)
        except NotComparableError:
            failed += 1
    assert refused < 1900
    assert failed < 500
