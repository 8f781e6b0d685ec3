"""Tables of settings for the documents, from the fields of their classes.

A group of fields begins with a comment; the text below a field is its meaning.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

import msgspec

from mqlake.store.bounds import allowed, effects

_GROUP: Final = re.compile(r" {4}# (.+)")


def settings_table(rows: Iterable[str], *, with_effect: bool) -> str:
    """Return a table of such rows."""
    names = ["setting", "default", "allowed", *(["takes effect"] if with_effect else []), "meaning"]
    return "\n".join([f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}", *rows])


def table_rows(kind: type[msgspec.Struct], *, with_effect: bool) -> dict[str, list[str]]:
    """Return the rows of a table for each group of fields, by the comment above the group.

    Args:
        with_effect: whether the fields declare when a change takes effect.
    """
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    source = textwrap.dedent(inspect.getsource(kind))
    lines = inspect.getsource(kind).splitlines()
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    groups: dict[str, list[str]] = {}
    for line, name, text in _fields(definition):
        if name not in fields:
            continue
        above = (_GROUP.fullmatch(lines[at]) for at in range(line - 1, -1, -1))
        group = next(match[1] for match in above if match)
        field = fields[name]
        cells = [f"`{field.encode_name}`", _default(field), allowed(kind, name)]
        if with_effect:
            cells.append(effects(kind)[name].value)
        row = f"| {' | '.join(cells)} | {' '.join(text.split())} |"
        groups.setdefault(group, []).append(row)
    return groups


def _fields(definition: ast.ClassDef) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the name and the text of each field."""
    body = definition.body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = ""
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                text = str(following.value.value)
            yield statement.lineno - 1, statement.target.id, text


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default
    if value is msgspec.NODEFAULT:
        return "the host name"
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool):
        value = str(value).lower()
    return f"`{value}`" if value != "" else ""
