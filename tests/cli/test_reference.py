"""docs/cli.md is what the program says of itself, and names what `--json` has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlake.cli.app import COMMANDS
from mqlake.cli.reference import page
from tests.cli.conftest import Mqlake
from tests.golden import store

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_current() -> None:
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == page()


def test_the_page_does_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == page()


def names(value: Any) -> Iterator[str]:
    """Yield the member names of a JSON value, not those that are data."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            if name not in ("properties", "offsets"):
                yield from names(member)
    elif isinstance(value, list):
        for member in value:
            yield from names(member)


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect"],
        ["verify", "--engine", "local"],
        ["rebuild", "--engine", "local", "--out", "{out}"],
        ["export", "--engine", "local", "--out", "{out}"],
        ["retention", "--plan", "--disk-used", "95"],
        ["query", "--topic", "TopicA", "--key", "键-3"],
        ["query", "--topic", "TopicA", "--queue", "0", "--offset", "0", "--max", "1"],
        ["query", "--topic", "TopicA", "--queue", "0", "--time", "1795206763486"],
    ],
)
def test_json_members_are_documented(mqlake: Mqlake, tmp_path: Path, arguments: list[str]) -> None:
    command, *options = (part.format(out=tmp_path / "out") for part in arguments)
    ran = mqlake(command, store("rmq5-torn").path, *options, "--json")
    assert ran.code in (0, 1)
    documented = set(re.findall(r"`(\w+)`", COMMANDS[command].__doc__ or ""))
    assert set(names(ran.json)) - documented == set()


@pytest.mark.parametrize("page_path", sorted(DOCS.glob("how-to/*.md")), ids=lambda path: path.stem)
def test_commands_of_the_how_to_pages_parse(mqlake: Mqlake, page_path: Path) -> None:
    text = page_path.read_text(encoding="utf-8")
    commands = re.findall(r"^mqlake ([^|\n]+)", text, re.MULTILINE)
    assert commands or "```python" in text
    for line in commands:
        command, *rest = line.split()
        group = [command] if command == "kafka" else []
        name, _, *options = rest if group else [command, *rest]
        ran = mqlake(*group, name, "no-such-store", *options)
        kind = "the file or directory does not exist" if group else "the directory does not exist"
        assert ran.err == f"mqlake: no-such-store: {kind}\n", line
