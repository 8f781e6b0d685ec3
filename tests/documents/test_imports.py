"""What programs in pages import from mqlake exists."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.documents.pages import name, pages

_PROGRAM = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Import(NamedTuple):
    """A module, and a name in it; None for the module itself."""

    module: str
    name: str | None


def imports(text: str) -> Iterator[Import]:
    """Yield what the programs of a page import from mqlake."""
    for program in _PROGRAM.findall(text):
        for node in ast.walk(ast.parse(awaitable(program))):
            if isinstance(node, ast.ImportFrom) and is_ours(node.module or ""):
                yield from (Import(node.module or "", each.name) for each in node.names)
            elif isinstance(node, ast.Import):
                yield from (Import(each.name, None) for each in node.names if is_ours(each.name))


def awaitable(program: str) -> str:
    """Return a program in which `await` may stand outside of a function."""
    return "async def program():\n" + textwrap.indent(program, "    ")


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == "mqlake"


def is_missing(each: Import) -> bool:
    module = importlib.import_module(each.module)
    return each.name is not None and not hasattr(module, each.name)


@pytest.mark.parametrize(
    "page", [page for page in pages() if any(imports(page.read_text("utf-8")))], ids=name
)
def test_imports_exist(page: Path) -> None:
    assert [each for each in imports(page.read_text("utf-8")) if is_missing(each)] == []


def test_what_is_found() -> None:
    text = """```python
import asyncio
import mqlake.kombu
from mqlake.client import Consumer, Prodcer

await asyncio.sleep(0)
```
"""
    found = list(imports(text))
    assert found == [
        Import("mqlake.kombu", None),
        Import("mqlake.client", "Consumer"),
        Import("mqlake.client", "Prodcer"),
    ]
    assert [each for each in found if is_missing(each)] == [Import("mqlake.client", "Prodcer")]
