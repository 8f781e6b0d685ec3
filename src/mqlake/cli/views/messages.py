"""Messages: a table of several, or all fields of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqlake.cli.text import (
    beginning,
    count,
    local_time,
    preview,
    printable,
    size,
    time_and_milliseconds,
)
from mqlake.cli.views.tables import NUMBER, TEXT, named_values, note, rows
from mqlake.formats.sys_flag import COMPRESSED

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mqlake.cli.questions import Answer
    from mqlake.formats.record import Record

ROW_PREVIEW = 40
PREVIEW = 2000


def view(answer: Answer, why_none: str | None = None) -> Iterator[RenderableType]:
    """Yield the messages, and a line about the answer.

    Args:
        why_none: why there are no messages, if that is known.
    """
    if len(answer.records) == 1:
        yield _fields(answer.records[0])
    elif answer.records:
        yield _table(answer.records)
    yield note(_summary(answer, why_none))


def _summary(answer: Answer, why_none: str | None) -> str:
    if why_none is not None:
        return f"Nothing matched: {printable(why_none)}."
    if "offset" in answer.extra:
        found = "whose message is shown" if answer.records else "where no message is"
        return f"Queue offset {answer.extra['offset']}, {found}."
    if not answer.records:
        status = answer.extra.get("status")
        return f"Nothing matched ({status})." if status else "Nothing matched."
    if answer.truncated:
        return f"{count(len(answer.records), 'message')}; there are more (raise --max)."
    return f"{count(len(answer.records), 'message')}, complete."


def _table(records: list[Record]) -> RenderableType:
    table = rows(
        printable(records[0].topic),
        [
            ("queue", NUMBER),
            ("offset", NUMBER),
            ("stored", TEXT),
            ("ms since 1970", NUMBER),
            ("tags", TEXT),
            ("keys", TEXT),
            ("bytes", NUMBER),
            ("body", TEXT),
        ],
    )
    for record in records:
        table.add_row(
            str(record.queue_id),
            str(record.queue_offset),
            local_time(record.store_timestamp),
            str(record.store_timestamp),
            printable(record.tags or ""),
            printable(" ".join(record.keys)),
            str(len(record.body)),
            preview(record.body, ROW_PREVIEW),
        )
    return table


def _fields(record: Record) -> RenderableType:
    compressed = ", compressed" if record.sys_flag & COMPRESSED else ""
    values = [
        ("topic", printable(record.topic)),
        ("queue", f"{record.queue_id}, offset {record.queue_offset}"),
        ("message id", record.message_id),
        ("commit log", f"offset {record.physical_offset}, {size(record.size)}"),
        ("stored", f"{time_and_milliseconds(record.store_timestamp)} on {record.store_host}"),
        ("born", f"{time_and_milliseconds(record.born_timestamp)} on {record.born_host}"),
        ("flags", f"sys flag {record.sys_flag}, flag {record.flag}, CRC {record.body_crc:08x}"),
        ("consumed again", f"{record.reconsume_times} times"),
    ]
    if record.prepared_transaction_offset:
        values.append(("prepared at", f"offset {record.prepared_transaction_offset}"))
    values += [
        (printable(name), printable(value)) for name, value in sorted(record.properties.items())
    ]
    values.append(("body", f"{size(len(record.body))}{compressed}"))
    lines = beginning(record.body, PREVIEW).expandtabs(4).splitlines()
    values.append(("", "\n".join(map(printable, lines))))
    return named_values(values)
