"""The process of one query: DuckDB over a store, with nothing else in its reach.

It reads a statement from stdin, and writes the result to stdout. It has no access to files,
networks or extensions through SQL, its configuration is locked, and the system limits its memory.
Whoever starts it kills it when its time is over.
"""

# pyright: basic
# duckdb and pyarrow have few types.

from __future__ import annotations

import datetime as dt
import io
import math
import resource
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from mqlake.console.bound_process import end_with_parent
from mqlake.console.sql.statement import SqlResult, SqlStatement
from mqlake.errors import MqlakeError

_ROOM = 1 << 30
"""Bytes that the process may have besides DuckDB's memory: Python, Arrow, compiled kernels."""
_THREADS = 2
_GRACE = 5
"""Seconds after which the process ends by itself."""
_LONGEST_CELL = 2000
"""Characters of a value that are shown."""

# Every statement after the last one fails: the configuration is locked.
_SETTINGS = (
    f"SET threads = {_THREADS}",
    "SET temp_directory = ''",
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET TimeZone = 'UTC'",
    "SET lock_configuration = true",
)


def main() -> None:
    """Run the statement on stdin."""
    end_with_parent(int(sys.argv[1]))
    statement = msgspec.json.decode(sys.stdin.buffer.read(), type=SqlStatement)
    _limit(statement)
    try:
        output = _answer(statement)
    except MemoryError:
        output = _failed(_too_much_memory(statement))
    except MqlakeError as error:
        output = _failed(str(error))
    except Exception as error:  # noqa: BLE001  DuckDB and Arrow raise what they like
        output = _failed(_reason(error, statement))
    sys.stdout.buffer.write(output)


def _limit(statement: SqlStatement) -> None:
    """Have the system end this process at its limits, also if nobody else does."""
    memory = statement.limits.memory + _ROOM
    # Not RLIMIT_AS: mapped segments of the log are address space, but cost no memory.
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seconds = math.ceil(statement.limits.seconds) + _GRACE
    resource.setrlimit(resource.RLIMIT_CPU, (_THREADS * seconds, _THREADS * seconds))
    signal.alarm(seconds)


def _answer(statement: SqlStatement) -> bytes:
    import mqlake

    table = mqlake.open(
        statement.store, threads=_THREADS, table=statement.table, failOnDataLoss=False
    )
    begun = time.perf_counter()
    relation = run(statement.sql, table.dataset(), statement.limits.memory)
    if statement.is_parquet:
        return _parquet(relation, statement)
    return msgspec.json.encode(_table(relation, statement, begun))


def run(sql: str, dataset: Any, memory: int) -> Any:
    """Return the DuckDB relation of a statement over `messages`; nothing is computed yet.

    Raises:
        MqlakeError: it is not one SELECT.
    """
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.register("messages", dataset)
    connection.execute(f"SET memory_limit = '{memory >> 20}MiB'")
    for setting in _SETTINGS:
        connection.execute(setting)
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise MqlakeError("one SELECT statement is allowed: nothing can be changed here")
    return connection.sql(statements[0].query)


def _table(relation: Any, statement: SqlStatement, begun: float) -> SqlResult:
    limits = statement.limits
    rows: list[list[Any]] = []
    size, is_cut = 0, False
    for row in _rows(relation.limit(limits.rows + 1)):
        shown = [_cell(value) for value in row]
        size += sum(_size(value) for value in shown)
        is_full = len(rows) == limits.rows or size > limits.output
        if is_full or (len(rows) + 1) * len(row) > limits.cells:
            is_cut = True
            break
        rows.append(shown)
    return SqlResult(
        columns=list(relation.columns),
        types=[str(kind) for kind in relation.types],
        rows=rows,
        is_cut=is_cut,
        seconds=time.perf_counter() - begun,
    )


def _rows(relation: Any) -> Iterator[tuple[Any, ...]]:
    import pyarrow as pa

    for batch in pa.RecordBatchReader.from_stream(relation):
        # Two columns may have the same name.
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _parquet(relation: Any, statement: SqlStatement) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    limits = statement.limits
    reader = pa.RecordBatchReader.from_stream(relation.limit(limits.rows + 1))
    target = io.BytesIO()
    written = 0
    with parquet.ParquetWriter(target, reader.schema) as writer:
        for batch in reader:
            written += batch.num_rows
            if written > limits.rows or target.tell() > limits.output:
                raise MqlakeError(
                    f"the result has more than {limits.rows} rows or {limits.output} bytes: "
                    "add a LIMIT or a condition, or use mqlake export"
                )
            writer.write_batch(batch)
    return target.getvalue()


def _size(value: Any) -> int:
    return len(value.encode("utf-8", "replace")) if isinstance(value, str) else 8


def _cell(value: Any) -> Any:
    """Return a value as JSON can have it: a number, text, or None."""
    match value:
        case None | bool():
            return value
        case int():
            # Larger numbers lose digits in a browser.
            return value if abs(value) < 1 << 53 else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes() | bytearray():
            return _cut(_text(bytes(value)))
        case dt.datetime():
            return value.isoformat(sep=" ")
        case list():
            return _cut(f"[{', '.join(map(str, map(_cell, value[:_LONGEST_CELL])))}]")
        case (int() as months, int() as days, int() as nanoseconds):
            return _interval(months, days, nanoseconds)
        case _:
            return _cut(str(value))


def _interval(months: int, days: int, nanoseconds: int) -> str:
    """Return an interval in words, such as "1 day 0:00:05"."""
    counted = [(months, "month"), (days, "day")]
    words = [f"{count} {name}{'' if abs(count) == 1 else 's'}" for count, name in counted if count]
    if nanoseconds or not words:
        words.append(str(dt.timedelta(microseconds=nanoseconds // 1000)))
    return " ".join(words)


def _text(data: bytes) -> str:
    part = data[: 4 * _LONGEST_CELL]
    try:
        return part.decode()
    except UnicodeDecodeError as error:
        # The cut may be within a character.
        if error.start >= len(part) - 3 and len(part) < len(data):
            return part[: error.start].decode()
        return f"0x{part[: _LONGEST_CELL // 2].hex()}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}…"


def _failed(reason: str) -> bytes:
    return msgspec.json.encode(SqlResult(error=reason))


def _reason(error: Exception, statement: SqlStatement) -> str:
    text = str(error)
    if "Out of Memory" in text or "OutOfMemory" in type(error).__name__:
        return _too_much_memory(statement)
    return text[:_LONGEST_CELL]


def _too_much_memory(statement: SqlStatement) -> str:
    memory = statement.limits.memory >> 20
    return f"the query needs more than {memory} MiB of memory: add a condition or a LIMIT"


if __name__ == "__main__":
    main()
