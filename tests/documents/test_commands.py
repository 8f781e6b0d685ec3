"""The commands of `mqlake` in pages exist, with the options that the pages name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from mqlake.cli.app import app
from tests.documents.pages import ROOT, name, pages

Command = tuple[str, ...]

GENERATED = ROOT / "docs" / "cli.md"
HISTORY = ROOT / "CHANGELOG.md"

_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"^(?:\$ |.*\| )?mqlake ([^|#&\n]*)", re.MULTILINE)
_SPAN = re.compile(r"`mqlake ([^`\n]+)`")
_OPTION = re.compile(r"--?[A-Za-z][\w-]*")


@cache
def options() -> dict[Command, set[str]]:
    """Return the options of each command, with those of the commands above it."""
    found: dict[Command, set[str]] = {}

    def add(command: Any, path: Command, above: set[str]) -> None:
        own = {each for given in command.params for each in (*given.opts, *given.secondary_opts)}
        found[path] = {"--help"} | above | own
        for below, each in getattr(command, "commands", {}).items():
            add(each, (*path, below), found[path])

    add(typer.main.get_command(app), (), set())
    return found


def commands(text: str) -> Iterator[str]:
    """Yield the arguments of each command in a page: in blocks, and in code within a line."""
    for block in _FENCE.findall(text):
        yield from _LINE.findall(block.replace("\\\n", " "))
    yield from _SPAN.findall(_FENCE.sub("", text))


def faults(arguments: str) -> list[str]:
    """Return what a command line names that does not exist."""
    path: Command = ()
    wrong: list[str] = []
    before = ""
    for word in (each.strip("[](),;") for each in arguments.split()):
        if (*path, word) in options():
            path = (*path, word)
        elif option := _OPTION.match(word):
            wrong += [option[0]] if option[0] not in options()[path] else []
        elif is_group(path) and word and not _OPTION.match(before) and not stands_for_any(word):
            return [*wrong, word]
        before = word
    return wrong


def is_group(path: Command) -> bool:
    return any(each[:-1] == path for each in options() if each)


def stands_for_any(word: str) -> bool:
    """Return whether a word stands for any command: `COMMAND`, `…`."""
    return word == "…" or word.isupper()


@pytest.mark.parametrize(
    "page", [page for page in pages() if page not in (GENERATED, HISTORY)], ids=name
)
def test_commands_and_options_exist(page: Path) -> None:
    wrong = {
        arguments: found
        for arguments in commands(page.read_text(encoding="utf-8"))
        if (found := faults(arguments))
    }
    assert wrong == {}


def test_commands_are_found() -> None:
    text = """`mqlake query --key` and `mqlake` are code.
```console
$ mqlake broker \\
    --store ./store  # --comment
echo hello | mqlake produce Orders -n host:9876 | cat -n
```
"""
    found = [" ".join(each.split()) for each in commands(text)]
    assert found == ["broker --store ./store", "produce Orders -n host:9876", "query --key"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("query STORE --topic T --tls", []),
        ("--tls-ca ca.pem produce T -n host:9876", []),
        ("admin topicStatus -t T --json", []),
        ("admin topicState -t T", ["topicState"]),
        ("querry STORE", ["querry"]),
        ("query STORE --topics T", ["--topics"]),
        ("kafka dump PATH --tags T", ["--tags"]),
    ],
)
def test_what_does_not_exist(arguments: str, found: list[str]) -> None:
    assert faults(arguments) == found
