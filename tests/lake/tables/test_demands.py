"""What a Delta Lake table demands of its writers is met, or refused before anything is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from mqlake.lake.files.partition_writer import FileShape
from mqlake.lake.options import Format
from mqlake.lake.tables.delta_demands import FEATURES
from mqlake.lake.tables.evolution import SchemaConflictError, UnwritableTableError
from mqlake.lake.tables.opening import open_table
from mqlake.lake.tables.table import LakeTable
from tests.lake.tables.tables import FOLLOWER, add, numbers, options, row

Action = dict[str, Any]


def rewritten(path: Path, change: Callable[[Action], None]) -> None:
    """Commit a protocol and metadata as another engine does, which delta-rs may not be able to."""
    log = path / "_delta_log"
    texts = [file.read_text() for file in sorted(log.glob("*.json"))]
    actions = [json.loads(line) for text in texts for line in text.splitlines()]
    state: Action = {}
    for action in actions:
        state |= {name: action[name] for name in ("protocol", "metaData") if name in action}
    state["fields"] = json.loads(state["metaData"]["schemaString"])
    change(state)
    state["metaData"]["schemaString"] = json.dumps(state.pop("fields"))
    version = len(list(log.glob("*.json")))
    lines = [json.dumps({name: state[name]}) for name in ("protocol", "metaData")]
    (log / f"{version:020}.json").write_text("\n".join(lines) + "\n")


def features(*names: str, reader: tuple[str, ...] = ()) -> Callable[[Action], None]:
    def change(state: Action) -> None:
        state["protocol"] = {
            "minReaderVersion": 3 if reader else 1,
            "minWriterVersion": 7,
            "writerFeatures": list(names),
        }
        if reader:
            state["protocol"]["readerFeatures"] = list(reader)

    return change


def rule(column: str, **given: Any) -> Callable[[Action], None]:
    """Give a column metadata: `delta__x` is `delta.x`."""

    def change(state: Action) -> None:
        (field,) = (one for one in state["fields"]["fields"] if one["name"] == column)
        field["metadata"] |= {
            name.replace("delta__", "delta.").replace("identity__", "identity."): value
            for name, value in given.items()
        }

    return change


def new_column(state: Action) -> None:
    field = {"name": "other", "type": "long", "nullable": True, "metadata": {}}
    state["fields"]["fields"].append(field)
    rule("other", delta__generationExpression="queueOffset + 1")(state)


def constrained(state: Action) -> None:
    state["metaData"]["configuration"]["delta.constraints.small"] = "queueOffset < 3"


def mapped(state: Action) -> None:
    """Map columns by name, as `ALTER TABLE … SET TBLPROPERTIES` does."""
    state["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
    for number, field in enumerate(state["fields"]["fields"], 1):
        field["metadata"]["delta.columnMapping.id"] = number
        field["metadata"]["delta.columnMapping.physicalName"] = field["name"]
    state["metaData"]["configuration"] |= {
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": str(len(state["fields"]["fields"])),
    }


def followed(path: Path, **others: Any) -> LakeTable:
    table = open_table(options(path, Format.DELTA, **others))
    add(table, 0, [row(0)])
    return table


UNWRITABLE: dict[str, Callable[[Action], None]] = {
    "mapped (delta.columnMapping.mode=name)": mapped,
    "rowTracking, which": features("rowTracking", "domainMetadata"),
    "clustering": features("clustering", "domainMetadata"),
    "allowColumnDefaults": features("allowColumnDefaults"),
    "inCommitTimestamp": features("inCommitTimestamp"),
    "identityColumns": features("identityColumns"),
    "typeWidening": features("typeWidening", reader=("typeWidening",)),
    "icebergCompatV2": features("icebergCompatV2", "columnMapping", reader=("columnMapping",)),
    "of next year": features("of next year", "appendOnly"),
    "version 6 for writers": lambda state: state["protocol"].update(minWriterVersion=6),
}


@pytest.mark.parametrize("text", UNWRITABLE)
def test_a_table_with_an_unsupported_feature_is_left_alone(tmp_path: Path, text: str) -> None:
    table = followed(tmp_path)
    rewritten(tmp_path, UNWRITABLE[text])
    before = {path.name for path in tmp_path.rglob("*")}
    for opened in (table, open_table(options(tmp_path, Format.DELTA))):
        with pytest.raises(UnwritableTableError) as refused:
            opened.shape(FOLLOWER, 1)
        assert text in str(refused.value)
        assert "\n" not in str(refused.value)
        assert opened.merges(is_last=True) == []
        opened.expire(0)
    assert {path.name for path in tmp_path.rglob("*")} == before


OF_READERS = ("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint")
"""Features that readers must know, too."""


@pytest.mark.parametrize("feature", sorted(FEATURES - {"variantType", "variantType-preview"}))
def test_delta_rs_commits_to_tables_with_the_supported_features(
    tmp_path: Path, feature: str
) -> None:
    table = followed(tmp_path)
    rewritten(tmp_path, features(feature, reader=(feature,) if feature in OF_READERS else ()))
    add(table, 1, [row(1)])
    rows = [one for batch in table.scan(("queueOffset",)) for one in batch.to_pylist()]
    assert sorted(one["queueOffset"] for one in rows) == [0, 1]


RULES: dict[str, tuple[Callable[[Action], None], str]] = {
    "CHECK constraint small": (constrained, "queueOffset < 3"),
    "invariant of column queueOffset": (
        rule("queueOffset", delta__invariants='{"expression": {"expression": "queueOffset > 0"}}'),
        "queueOffset > 0",
    ),
    "generated column day": (
        rule("day", delta__generationExpression="CAST(storeTimestamp AS DATE)"),
        "`day` <=> (CAST(storeTimestamp AS DATE))",
    ),
    "varchar(5) of column topic": (
        rule("topic", __CHAR_VARCHAR_TYPE_STRING="varchar(5)"),
        "coalesce(length(`topic`), 0) <= 5",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_for_rows_become_checks(tmp_path: Path, name: str) -> None:
    table = followed(tmp_path)
    change, sql = RULES[name]
    rewritten(tmp_path, change)
    shape = table.shape(FOLLOWER, 1)
    assert isinstance(shape, FileShape)
    assert shape.checks is not None
    assert [tuple(check) for check in shape.checks.checks] == [(name, sql)]
    assert str(tmp_path) in shape.checks.reason


def test_rules_that_delta_rs_adds_become_checks(tmp_path: Path) -> None:
    table = followed(tmp_path)
    DeltaTable(tmp_path).alter.add_constraint({"small": "queueOffset < 3"})
    shape = table.shape(FOLLOWER, 1)
    assert isinstance(shape, FileShape)
    assert shape.checks is not None
    assert [check.name for check in shape.checks.checks] == ["CHECK constraint small"]
    DeltaTable(tmp_path).alter.drop_constraint("small")
    shape = table.shape(FOLLOWER, 1)
    assert isinstance(shape, FileShape)
    assert shape.checks is None


CONFLICTS: dict[str, Callable[[Action], None]] = {
    "column other gets its values from its writers (delta.generationExpression)": new_column,
    "column queueOffset gets its values from its writers (delta.identity.start)": rule(
        "queueOffset", delta__identity__start=1
    ),
    "column topic is char(5)": rule("topic", __CHAR_VARCHAR_TYPE_STRING="char(5)"),
    "column tags may not be null there": lambda state: state["fields"]["fields"][1].update(
        nullable=False
    ),
}


@pytest.mark.parametrize("text", CONFLICTS)
def test_rules_that_no_message_can_satisfy_are_refused(tmp_path: Path, text: str) -> None:
    columns = ("topic", "tags", "queueOffset", "storeTimestamp")
    table = open_table(options(tmp_path, Format.DELTA, columns=columns))
    rewritten(tmp_path, CONFLICTS[text])
    with pytest.raises(SchemaConflictError) as refused:
        table.shape(FOLLOWER, 1)
    assert text in str(refused.value)
    assert not isinstance(refused.value, UnwritableTableError)


def test_columns_that_messages_always_have_may_be_demanded(tmp_path: Path) -> None:
    table = followed(tmp_path)

    def demand(state: Action) -> None:
        for field in state["fields"]["fields"]:
            field["nullable"] = field["name"] == "day"

    rewritten(tmp_path, demand)
    add(table, 1, [row(1)])
    assert numbers(Format.DELTA, tmp_path) == [0, 1]


@pytest.mark.parametrize("name", ["delta.appendOnly", "delta.enableChangeDataFeed"])
def test_rows_that_must_stay_are_not_replaced(tmp_path: Path, name: str) -> None:
    table = followed(tmp_path)
    rewritten(tmp_path, lambda state: state["metaData"]["configuration"].update({name: "true"}))
    add(table, 1, [row(1)])
    assert numbers(Format.DELTA, tmp_path) == [0, 1]
    by_key = open_table(options(tmp_path, Format.DELTA, upsert_by="body"))
    with pytest.raises(SchemaConflictError, match=f"{name} is true, so --upsert-by must not"):
        by_key.shape(FOLLOWER, 2)
