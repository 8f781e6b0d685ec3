"""What a Delta Lake table demands of its writers, by its protocol and its properties.

`follow` writes data files itself, and delta-rs only commits them: nobody else checks rows. So each
demand is met here, becomes a check of each row, or is refused before anything is written.
"""

# pyright: basic
# Reason: deltalake carries few types.

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mqlake.lake.files.row_checks import Check
from mqlake.lake.tables.evolution import SchemaConflictError, UnwritableTableError

if TYPE_CHECKING:
    from deltalake import DeltaTable

FEATURES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",  # as long as no column is mapped
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "variantType",
        "variantType-preview",
    }
)
"""Table features whose demands are met or refused here, and which delta-rs can commit to."""

WITH_FEATURES = 7
"""The version for writers at which a table lists its features."""

IDENTITY_COLUMNS = 6
"""The version for writers that includes identity columns, for which delta-rs cannot commit."""

_CONSTRAINT = "delta.constraints."
_GENERATED = "delta.generationExpression"
_IDENTITY = "delta.identity.start"
_INVARIANT = "delta.invariants"
_LIMITED = "__CHAR_VARCHAR_TYPE_STRING"
_RULES = (_GENERATED, _IDENTITY, _INVARIANT, _LIMITED)
_VARCHAR = re.compile(r"varchar\((\d+)\)")


def check_protocol(table: DeltaTable, where: str) -> None:
    """Check that files of `follow` may be committed to a table.

    Raises:
        UnwritableTableError: the table has a feature that is not supported.
    """
    protocol = table.protocol()
    version = protocol.min_writer_version
    features = set(protocol.writer_features or ()) if version == WITH_FEATURES else set()
    needed = sorted(features - FEATURES)
    if version == IDENTITY_COLUMNS or version > WITH_FEATURES:
        needed = [f"version {version} for writers"]
    if needed:
        raise UnwritableTableError(
            f"{where}: this table has {', '.join(needed)}, which mqlake follow does not support: "
            "follow into another table"
        )
    mode = table.metadata().configuration.get("delta.columnMapping.mode") or "none"
    if mode != "none":
        raise UnwritableTableError(
            f"{where}: the columns of this table are mapped (delta.columnMapping.mode={mode}), "
            "which mqlake follow does not support: follow into another table"
        )


def check_replacing(table: DeltaTable, where: str) -> None:
    """Check that rows of a table may be replaced (`--upsert-by`).

    Raises:
        SchemaConflictError: the table only takes new rows, or records each change of a row.
    """
    properties = table.metadata().configuration
    for name in ("delta.appendOnly", "delta.enableChangeDataFeed"):
        if (properties.get(name) or "").lower() == "true":
            raise SchemaConflictError(
                f"{where}: {name} is true, so --upsert-by must not replace rows: set it to false, "
                "or follow into another table"
            )


def row_checks(table: DeltaTable, written: Iterable[str], where: str) -> tuple[Check, ...]:
    """Return what each row must satisfy.

    Args:
        written: the columns that `follow` writes; all others are null.

    Raises:
        SchemaConflictError: the table computes a column itself.
    """
    properties = table.metadata().configuration
    checks = [
        Check(f"CHECK constraint {name.removeprefix(_CONSTRAINT)}", text or "")
        for name, text in sorted(properties.items())
        if name.startswith(_CONSTRAINT)
    ]
    names = set(written)
    for field in json.loads(table.schema().to_json())["fields"]:
        checks += _column_checks(field, names, where)
        for name, rules in _nested_rules(field["type"]):
            raise SchemaConflictError(
                f"{where}: {field['name']}.{name} has {rules}, which mqlake follow does not check: "
                "follow into another table"
            )
    return tuple(checks)


def _column_checks(field: dict[str, Any], written: set[str], where: str) -> Iterator[Check]:
    name, rules = field["name"], field.get("metadata") or {}
    if _IDENTITY in rules or (_GENERATED in rules and name not in written):
        raise SchemaConflictError(
            f"{where}: column {name} gets its values from its writers "
            f"({_IDENTITY if _IDENTITY in rules else _GENERATED}), which mqlake follow does not "
            "support: follow into another table"
        )
    quoted = f"`{name.replace('`', '``')}`"
    if _GENERATED in rules:
        yield Check(f"generated column {name}", f"{quoted} <=> ({rules[_GENERATED]})")
    if _INVARIANT in rules:
        yield Check(f"invariant of column {name}", _invariant(rules[_INVARIANT]))
    if _LIMITED in rules:
        limit = _VARCHAR.fullmatch(rules[_LIMITED])
        if limit is None:
            raise SchemaConflictError(
                f"{where}: column {name} is {rules[_LIMITED]}, and messages have strings of other "
                "lengths: follow into another table"
            )
        yield Check(
            f"{rules[_LIMITED]} of column {name}", f"coalesce(length({quoted}), 0) <= {limit[1]}"
        )


def _invariant(text: str) -> str:
    """Return the expression of an invariant, which is JSON in JSON."""
    return json.loads(text)["expression"]["expression"]


def _nested_rules(type_: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the rules of fields within a column's type."""
    if not isinstance(type_, dict):
        return
    for field in type_.get("fields", ()):
        name = f"{path}{field['name']}"
        for rule in _RULES:
            if rule in (field.get("metadata") or {}):
                yield name, rule
        yield from _nested_rules(field["type"], f"{name}.")
    for part in ("elementType", "keyType", "valueType"):
        yield from _nested_rules(type_.get(part), path)
