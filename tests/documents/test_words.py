"""Pages, help texts and the texts of examples and scripts are in plain English."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mqlake.cli.app import app
from tests.documents.pages import name, texts
from tests.documents.words import findings


@pytest.mark.parametrize("page", texts(), ids=name)
def test_plain_english(page: Path) -> None:
    found = findings(page.read_text(encoding="utf-8"))
    wrong = [f"{name(page)}:{line}: {text!r}: write {instead}" for line, text, instead in found]
    assert not wrong, "\n".join(wrong)


def helps(command: Any, name: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the name and the help text of a command, and of those below it."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    yield context.command_path, command.get_help(context)
    for below in getattr(command, "commands", {}).values():
        yield from helps(below, below.name, context)


def test_help_texts_are_plain_english() -> None:
    found = {path: findings(text) for path, text in helps(typer.main.get_command(app), "mqlake")}
    assert len(found) > 60
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Queues, made where there is none.", ["made where", "where there is none", "is none"]),
        ("The reader goes\non at the next file.", ["goes on"]),
        ("Let a group stand where another one stands.", ["Let a group"]),
        (
            "What lies behind it is cut; the lag says how far it is behind.",
            ["behind it", "lies behind"],
        ),
        ("```\nit goes on\n```\nand `goes on` is code", []),
        ("Clients behind a proxy; a queue is behind by 3 messages.", []),
        ("None of them is none of the others.", []),
        ("There is a page that there is a link to.", []),
    ],
)
def test_what_is_found(text: str, found: list[str]) -> None:
    assert sorted(finding.text for finding in findings(text)) == sorted(found)


def test_a_finding_has_its_line() -> None:
    assert findings("One.\n\n```\ncode\n```\nIt goes on.")[0].line == 6
