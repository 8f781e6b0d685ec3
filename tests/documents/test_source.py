"""Docstrings, comments and messages in the source are in plain English."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.pages import name
from tests.documents.source import Text, modules, texts
from tests.documents.words import findings


def wrong(module: Path) -> list[str]:
    """Return a line for each phrase in a module that should be written otherwise."""
    return [
        f"{name(module)}:{text.line + finding.line - 1}: {finding.text!r}: write {finding.instead}"
        for text in texts(module.read_text(encoding="utf-8"))
        for finding in findings(text.text)
    ]


def test_the_source_is_in_plain_english() -> None:
    found = [line for module in modules() for line in wrong(module)]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_what_is_read_of_a_module() -> None:
    source = '''"""A docstring
of two lines."""

# A comment
# of two lines.
limit = 1  # beside code
raise ValueError(f"queue {queue} of " "topic")  # noqa: one
raise KeyError("word")
'''
    assert sorted(texts(source)) == [
        Text(1, "A docstring\nof two lines."),
        Text(4, "A comment\nof two lines.\nbeside code"),
        Text(7, "queue … of topic"),
    ]


def test_a_finding_in_the_source_has_its_line() -> None:
    text = next(iter(texts('\n\nlog.info("first\\n" "it goes on")\n')))
    assert (text.line, [finding.line for finding in findings(text.text)]) == (3, [2])
