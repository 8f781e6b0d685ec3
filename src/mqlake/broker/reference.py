"""Write the page of all settings: `python -m mqlake.broker.reference > docs/broker-settings.md`.

The page is made of the fields of `BrokerSettings` and `StoreSettings`, and what stands with them.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from enum import Enum

import msgspec

from mqlake.broker.settings import BrokerSettings
from mqlake.store.bounds import allowed, effects
from mqlake.store.settings import StoreSettings

HEAD = """\
# Settings of a broker

For those who write a `broker.conf`.
Made by `python -m mqlake.broker.reference > docs/broker-settings.md`; do not edit.

Names, meanings and defaults are RocketMQ's, except where something else is said.
Times are milliseconds, sizes bytes, where nothing else is said.
`mqlake broker` reads them from `-c FILE` and `--set NAME=VALUE`; `MessageStore.open` and
`mqlake.testing.broker` take them as a mapping. A name that is not here warns, and has no effect;
some of RocketMQ's are [accepted without a warning](#without-effect).
A value that is not allowed is an error, which names the setting: a broker does not start with it,
and `updateBrokerConfig` changes nothing.

`updateBrokerConfig` changes the settings that take effect "now" while the broker runs, and keeps
them ([broker.md](broker.md), "Settings"). It refuses those that take effect at a "restart".
"""

_WITHOUT_EFFECT = """\
These names of RocketMQ's are accepted, so that its property files load, and change nothing.
"""

_LINE = "| --- | --- | --- | --- | --- |"
_GROUP = re.compile(r" {4}# (.+)")


def page() -> str:
    """Return the page in Markdown."""
    parts = [HEAD]
    for title, kind in (("Broker", BrokerSettings), ("Store", StoreSettings)):
        parts.append(f"## {title}\n")
        for group, rows in _groups(kind).items():
            table = "\n".join(["| setting | default | allowed | takes effect | |", _LINE, *rows])
            parts.append(f"### {group}\n\n{table}\n")
    parts.append(_without_effect())
    return "\n".join(parts)


def _without_effect() -> str:
    """Return the section of the names that are accepted and mean nothing."""
    names: dict[str, list[str]] = {}
    for name, reason in BrokerSettings.without_effect.items():
        names.setdefault(reason, []).append(f"`{name}`")
    rows = [f"| {', '.join(group)} | {reason} |" for reason, group in names.items()]
    table = "\n".join(["| setting | why |", "| --- | --- |", *rows])
    return f"## Without effect\n\n{_WITHOUT_EFFECT}\n{table}\n"


def _groups(kind: type[StoreSettings]) -> dict[str, list[str]]:
    """Return the rows of a table for each group of fields, by the comment above it."""
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
        cells = (
            f"`{field.encode_name}`",
            _default(field),
            allowed(kind, name),
            effects(kind)[name].value,
        )
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
        return "the name of the machine"
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, bool):
        value = str(value).lower()
    return f"`{value}`" if value != "" else ""


if __name__ == "__main__":
    sys.stdout.write(page())
