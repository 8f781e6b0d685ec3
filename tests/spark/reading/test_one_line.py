"""Errors of a source hide their stack while they exist, and no longer."""

from __future__ import annotations

import gc
import os

import pytest

from mqlake.errors import MqlakeError
from mqlake.spark.reading.one_line import VARIABLE, lines


def error() -> MqlakeError:
    def rows():
        yield 1
        raise MqlakeError("wrong")

    with pytest.raises(MqlakeError, match="wrong") as caught:
        list(lines(rows()))
    return caught.value


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("MQLAKE_DEBUG", raising=False)


def test_stacks_are_hidden_while_one_of_several_errors_exists() -> None:
    one = error()
    other = error()
    assert os.environ[VARIABLE] == "1"
    del one
    gc.collect()
    assert os.environ[VARIABLE] == "1"
    del other
    gc.collect()
    assert VARIABLE not in os.environ


def test_what_others_have_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "true")
    error()
    gc.collect()
    assert os.environ[VARIABLE] == "true"


def test_whoever_looks_for_a_fault_sees_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQLAKE_DEBUG", "1")
    error()
    assert VARIABLE not in os.environ
