"""Print the rows of a table, one JSON array a line, as DuckDB's own extension reads it.

`python read.py delta|iceberg TABLE`. It needs nothing but DuckDB and packages of its extensions.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb

SCANS = {
    "delta": (("delta",), "delta_scan('{}')"),
    "iceberg": (("avro", "iceberg"), "iceberg_scan('{}')"),
}
# The filter is one that readers use to leave out files and row groups.
QUERY = """
SELECT topic, queueOffset, epoch_us(storeTimestamp), decode(body), tags
FROM {} WHERE topic = 'A' OR queueOffset >= 30 ORDER BY topic, queueOffset
"""


def file_of(extension: str) -> Path:
    """Return the file of an extension that a package brings."""
    found = find_spec(f"duckdb_extension_{extension}")
    assert found is not None
    assert found.origin is not None
    (file,) = Path(found.origin).parent.rglob("*.duckdb_extension")
    return file


def newest(table: Path) -> Path:
    """Return the newest metadata of an Iceberg table: its catalog knows it, and their numbers."""
    return max((table / "metadata").glob("*.metadata.json"))


def main() -> None:
    """Read the table that the command line names."""
    form, table = sys.argv[1], Path(sys.argv[2])
    extensions, scan = SCANS[form]
    for extension in extensions:
        duckdb.sql(f"LOAD '{file_of(extension)}'")
    source = scan.format(table if form == "delta" else newest(table))
    for row in duckdb.sql(QUERY.format(source)).fetchall():
        print(json.dumps(row))


if __name__ == "__main__":
    main()
