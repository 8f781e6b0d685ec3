"""Consume a topic of any RocketMQ cluster as a member of a group, and print the bodies.

Members of a group share the queues. Each message is acknowledged after it is printed. Ctrl-C
commits the group's offsets and ends the command. Without `--group`, all queues are read and nothing
is committed. With `--json`, each message is one JSON object on a line, in the format that `mqlake
produce --ndjson` reads: with `body` if the body is UTF-8, otherwise with `bodyBase64`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mqlake.cli.access import chosen
from mqlake.cli.options import Progress, UsageError
from mqlake.cli.streams import (
    DEFAULT_NAMES,
    Most,
    Names,
    RateReport,
    Sql92,
    Tags,
    Topic,
    begin_at,
    check_sql,
    or_told,
    read_all_queues,
    run_reported,
    write_message,
)

if TYPE_CHECKING:
    import asyncio

    from mqlake.client import Consumer

EXAMPLES = (
    "mqlake consume orders --group billing",
    "mqlake consume orders --group billing --tags 'paid || refunded' --json --max 100",
    "mqlake consume orders --from earliest",
)

Json = Annotated[
    bool, typer.Option("--json", help="Write each message as one JSON object on one line.")
]


def consume(
    topic: Topic,
    names: Names = DEFAULT_NAMES,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            "-g",
            metavar="GROUP",
            help="Consumer group; default: read all queues, commit nothing.",
        ),
    ] = None,
    tags: Tags = "*",
    sql: Sql92 = None,
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="Where to start if no offsets are committed: earliest, latest, or milliseconds"
            " since 1970.",
        ),
    ] = "latest",
    most: Most = None,
    progress: Progress = None,
    json: Json = False,
) -> int:
    """Consume the messages of a topic."""
    from mqlake.client import Consumer, ConsumerSettings, Sql

    if sql is not None and tags != "*":
        raise UsageError("--tags and --sql cannot be combined")
    if sql is not None:
        check_sql(sql)
    wanted = tags if sql is None else Sql(sql)
    settings = ConsumerSettings(consume_from=begin_at(begin))
    shown = RateReport("read", wanted=progress)
    access = chosen()

    async def work(told: asyncio.Event) -> None:
        if group is None:
            await read_all_queues(
                names, topic, wanted, settings, most=most, told=told, shown=shown, as_json=json
            )
            return
        async with Consumer(
            names,
            group,
            {topic: wanted},
            settings=settings,
            credentials=access.credentials,
            tls=access.tls,
        ) as consumer:
            shown.begin(topic)
            await _read(consumer, most, told, shown, as_json=json)

    run_reported(work, shown)
    return 0


async def _read(
    consumer: Consumer, most: int | None, told: asyncio.Event, shown: RateReport, *, as_json: bool
) -> None:
    messages = aiter(consumer)
    while most is None or shown.count < most:
        message = await or_told(anext(messages), told)
        if message is None:
            return
        write_message(message, as_json=as_json)
        await message.ack()
        shown.add()
