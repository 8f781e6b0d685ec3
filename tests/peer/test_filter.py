"""SQL92 expressions choose the messages that they choose in RocketMQ."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from mqlake.broker.filter.sql92.java_numbers import NotComparableError
from mqlake.broker.filter.sql92.parser import compile_expression
from mqlake.broker.filter.sql92.tokens import ExpressionError
from mqlake.spark.launch import QUICK_START
from tests.broker.filter.expressions import expression, properties
from tests.peer.java_build import JavaMissingError, build
from tests.peer.java_start import java

pytestmark = pytest.mark.peer

SOURCE = Path(__file__).parent / "rocketmq_filter"
EXPRESSIONS = 5000
SEEDS = (1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 22)))
WORDS = {True: "true", False: "false", None: "null"}


def theirs(questions: list[tuple[str, dict[str, str]]]) -> list[str]:
    try:
        path = build(SOURCE)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
    lines = [
        "\t".join((text, *(word for pair in found.items() for word in pair)))
        for text, found in questions
    ]
    command = java(path, QUICK_START, "Filter")
    done = subprocess.run(command, input="\n".join(lines).encode(), capture_output=True, check=True)
    return done.stdout.decode().splitlines()


def ours(text: str, found: Mapping[str, str]) -> str:
    try:
        value = compile_expression(text)(found)
    except ExpressionError:
        return "refused"
    except NotComparableError:
        return "error"
    assert value is None or isinstance(value, bool)
    return WORDS[value]


@pytest.mark.parametrize("seed", SEEDS)
def test_expressions_mean_the_same(seed: int) -> None:
    chance = random.Random(seed)
    questions = [(expression(chance), properties(chance)) for _ in range(EXPRESSIONS)]
    answers = theirs(questions)
    assert len(answers) == EXPRESSIONS
    for (text, found), answer in zip(questions, answers, strict=True):
        assert ours(text, found) == answer, (text, found)
    counts = Counter(answers)
    assert min(counts[word] for word in ("true", "false", "null", "error", "refused")) > 200


def test_where_they_differ() -> None:
    """RocketMQ reads an expression as far as it understands it, and drops the rest."""
    texts = ("a = 5 b = 6", "a < 007", "a = 5)")
    questions = [(text, {"a": "5"}) for text in texts]
    assert theirs(questions) == ["true", "false", "true"]
    assert [ours(*question) for question in questions] == ["refused"] * 3
