"""The modules that docs/life.md follows exist, and each leads to the next as the page says."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.documents.pages import ROOT
from tests.structure.package import imported_names

PAGE = ROOT / "docs" / "life.md"
SOURCE = ROOT / "src" / "mqlake"

KINDS = ("wire", "route", "port", "callback", "registration")
LIVES = (
    "A send",
    "A pull",
    "A pop",
    "A row in Spark",
    "A rebuild",
    "A recovery",
    "A replica's bytes",
    "A Celery task",
    "A send over gRPC",
)

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_STEP = re.compile(r"^\| (\d+) \| `([\w/]+\.py)` \| (.+) \| ?(.*?) ?\|$", re.MULTILINE)
_REACHED = re.compile(r"(?:(?P<line>\d+))?(?:(?:, )?(?P<kind>[a-z]+) `(?P<name>\w+)`)?")


class Step(NamedTuple):
    """One line of a table.

    Attributes:
        before: the number of the line that leads to it; 0 for the first line.
        kind: how, if nothing is imported.
        name: what both modules contain, if nothing is imported.
    """

    line: int
    module: str
    text: str
    before: int
    kind: str | None = None
    name: str | None = None


def lives(page: str) -> dict[str, list[Step]]:
    """Return the lines of each table, by the heading above it."""
    _, *parts = _HEADING.split(page)
    found = zip(parts[::2], parts[1::2], strict=True)
    return {title: steps for title, text in found if (steps := _steps(text))}


def _steps(text: str) -> list[Step]:
    steps: list[Step] = []
    for line, module, what, reached in _STEP.findall(text):
        match = _REACHED.fullmatch(reached)
        assert match, f"line {line}: {reached!r}"
        before = int(match["line"] or int(line) - 1)
        steps.append(Step(int(line), module, what, before, match["kind"], match["name"]))
    return steps


@cache
def imported(module: Path) -> set[str]:
    """Return the modules that a module imports, as paths below the package."""
    found: set[str] = set()
    for name, part in imported_names(module):
        found |= {name, f"{name}.{part}"}
    return {f"{name.replace('.', '/').removeprefix('mqlake/')}.py" for name in found}


def fault(step: Step, before: Step, source: Path = SOURCE) -> str | None:
    """Return why a module does not lead to the next one, None if it does."""
    here, there = source / before.module, source / step.module
    if step.kind is None:
        if step.module in imported(here):
            return None
        return f"{before.module} does not import {step.module}"
    if step.kind not in KINDS:
        return f"{step.kind!r} is not one of {KINDS}"
    lacks = [
        path.relative_to(source).as_posix()
        for path in (here, there)
        if not re.search(rf"\b{step.name}\b", path.read_text(encoding="utf-8"))
    ]
    return f"{step.name} is not in {lacks}" if lacks else None


def faults(steps: list[Step], source: Path = SOURCE) -> list[str]:
    """Return what is wrong with the lines of a table."""
    wrong = [
        f"{step.line}: {step.module} does not exist"
        for step in steps
        if not (source / step.module).is_file()
    ]
    if wrong:
        return wrong
    numbers = [step.line for step in steps]
    if numbers != list(range(1, len(steps) + 1)):
        return [f"the lines have the numbers {numbers}"]
    for step in steps[1:]:
        if not 1 <= step.before < step.line:
            wrong.append(f"{step.line}: line {step.before} is not before it")
        elif (reason := fault(step, steps[step.before - 1], source)) is not None:
            wrong.append(f"{step.line}: {reason}")
    return wrong


def test_the_page_has_every_life() -> None:
    assert tuple(lives(PAGE.read_text(encoding="utf-8"))) == LIVES


@pytest.mark.parametrize("life", LIVES)
def test_each_module_leads_to_the_next(life: str) -> None:
    assert faults(lives(PAGE.read_text(encoding="utf-8"))[life]) == []


@pytest.mark.parametrize("life", LIVES)
def test_each_line_of_a_table_is_read(life: str) -> None:
    text = PAGE.read_text(encoding="utf-8").partition(f"## {life}\n")[2].partition("\n## ")[0]
    rows = [row for row in text.splitlines() if row.startswith("| ") and "`" in row]
    assert len(rows) == len(_steps(text)) > 10


@pytest.mark.parametrize("life", LIVES)
def test_each_module_has_one_sentence(life: str) -> None:
    for step in lives(PAGE.read_text(encoding="utf-8"))[life]:
        assert re.fullmatch(r"[A-Z`].*\.", step.text), step.text
        assert not re.search(r"\. [A-Z`]", step.text), step.text


def test_every_kind_is_explained() -> None:
    explained = re.findall(r"^\| (\w+) `X` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(explained) == KINDS


def test_what_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("from mqlake import two\nimport mqlake.three\nmade = ask\n")
    (tmp_path / "two.py").write_text("def ask() -> None: ...\n")
    (tmp_path / "three.py").write_text("from mqlake.one import made\n")
    rows = (
        "| 1 | `one.py` | Begins. | |",
        "| 2 | `two.py` | Follows. | |",
        "| 3 | `three.py` | Follows. | 1 |",
        "| 4 | `two.py` | Is called. | 1, callback `ask` |",
        "| 5 | `one.py` | Is not imported. | |",
        "| 6 | `three.py` | Does not know that name. | 1, wire `ask` |",
        "| 7 | `two.py` | Is reached otherwise. | 1, magic `ask` |",
        "| 8 | `one.py` | Follows itself. | 8 |",
    )
    assert faults(_steps("\n".join(rows)), tmp_path) == [
        "5: two.py does not import one.py",
        "6: ask is not in ['three.py']",
        f"7: 'magic' is not one of {KINDS}",
        "8: line 8 is not before it",
    ]
    assert faults(_steps("| 1 | `four.py` | Is missing. | |"), tmp_path) == [
        "1: four.py does not exist"
    ]
