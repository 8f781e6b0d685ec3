"""Dead letters of the messages of an inner batch: each has the record, and means one message."""

from __future__ import annotations

from pathlib import Path

from mqlake.lake.files.letters import COLUMNS, from_rows, messages
from mqlake.lake.tables.evolution import table_schema
from mqlake.query.store.arrow_columns import arrow_schema
from mqlake.query.store.plan import plan_batch
from mqlake.query.store.read import read
from tests.query.store.mixed import MixedStore
from tests.query.store.rows import options_of


def test_each_letter_is_one_message_again(tmp_path: Path) -> None:
    mixed = MixedStore(tmp_path / "store", seed=3)
    asked = options_of(mixed.path)
    rows = arrow_schema(asked.columns)
    schema = table_schema(COLUMNS)
    wanted = table_schema(("queueOffset", "body"))
    found: list[tuple[int, bytes]] = []
    for task in plan_batch(asked).tasks:
        for batch in read(task, rows):
            letters = from_rows(batch, store=str(mixed.path), reason="a test", schema=schema)
            for letter in letters.to_pylist():
                again = messages(
                    letter["raw"],
                    letter["physicalOffset"],
                    wanted,
                    decompress=True,
                    queue_offset=letter["queueOffset"],
                )
                found += [(row["queueOffset"], row["body"]) for row in again.to_pylist()]
    assert sorted(found) == [(one["queueOffset"], one["body"]) for one in mixed.sent]
