"""Find messages by id, key, queue offset or time.

Give `--id`, or `--topic` with exactly one of `--key`, `--unique-key`, `--queue --offset`, `--queue
--time` and `--begin --end`. Messages are in the order of the commit log; for a time range, in the
order of their store times. Parts of the log that no index file covers, and its end if the queue
files do not cover it, are read, too, so the answer is complete.

JSON: `messages`, a list of objects with `topic`, `queueId`, `queueOffset`, `physicalOffset`,
`size`, `bodyCrc`, `sysFlag`, `flag`, `bornTimestamp`, `storeTimestamp`, `bornHost`, `storeHost`,
`reconsumeTimes`, `preparedTransactionOffset`, `properties`, `body` (as stored, in base64) and
`msgId`; and `truncated` (whether `--max` left out matches). With `--queue --offset` also `status`
(RocketMQ's GetMessageStatus), `nextOffset`, `minOffset`, `maxOffset`. With `--queue --time` also
`offset`, the queue offset that was found; `messages` contains the message at that offset.

The exit code is 1 if nothing matched.
"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from mqlake.cli import options as shared
from mqlake.cli.output import draw, write_json
from mqlake.cli.places import open_place
from mqlake.cli.questions import DEFAULT_MAX, QueryCommandOptions, choose

EXAMPLES = (
    "mqlake query STORE --topic Orders --key order-4711",
    "mqlake query STORE --id 7F00000100002A9F0000000000000000",
    "mqlake query STORE --topic Orders --queue 0 --offset 100 --max 10",
    "mqlake query STORE --topic Orders --queue 0 --time 1795206616198",
    "mqlake query s3://bucket/broker-a --topic Orders --key order-4711",
    "mqlake query STORE --topic Orders --begin 1795206616198 --end 1795206799234 --json",
)
NOTHING_MATCHED = 1


def query(
    store: shared.Place,
    topic: Annotated[str | None, typer.Option(help="Topic; required except with --id.")] = None,
    key: Annotated[
        str | None, typer.Option(metavar="K", help="Messages with this key or unique key.")
    ] = None,
    index_type: Annotated[
        Literal["K", "T"] | None,
        typer.Option(
            help="Whether --key is a key (K) or a tag (T), which only RocketMQ 5.5 indexes."
        ),
    ] = None,
    unique_key: Annotated[
        str | None,
        typer.Option(metavar="K", help="The message with this unique key, as clients print it."),
    ] = None,
    message_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The message with this offset message id."),
    ] = None,
    queue: Annotated[int | None, typer.Option(metavar="Q", min=0, help="Queue id.")] = None,
    offset: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=shared.LONGEST_TIME,
            help="Messages of --queue, starting at this queue offset.",
        ),
    ] = None,
    time: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            min=0,
            max=shared.LONGEST_TIME,
            help="The message of --queue at this store time, in milliseconds since 1970.",
        ),
    ] = None,
    boundary: Annotated[
        Literal["lower", "upper", "nearest"] | None,
        typer.Option(
            help="Which message --time finds: the first at or after it (lower), the last at or"
            " before it (upper), or the nearest; default: nearest in a store of RocketMQ 4.9,"
            " otherwise lower."
        ),
    ] = None,
    begin: shared.Begin = None,
    end: shared.End = None,
    tag: Annotated[str | None, typer.Option(help="Only messages with this tag.")] = None,
    maximum: Annotated[
        int | None,
        typer.Option(
            "--max", metavar="N", min=1, help=f"Maximum number of messages; default: {DEFAULT_MAX}."
        ),
    ] = None,
    archive: shared.Archive = None,
    override: shared.ObjectStoreSettings = None,
    dialect: shared.Dialect = None,
    json: shared.Json = False,
) -> int:
    """Find messages by id, key, queue offset or time."""
    asked = QueryCommandOptions(
        topic=topic,
        key=key,
        index_type=index_type,
        unique_key=unique_key,
        id=message_id,
        queue=queue,
        offset=offset,
        time=time,
        boundary=boundary,
        begin=begin,
        end=end,
        tag=tag,
        max=maximum,
    )
    question = choose(asked)

    from mqlake.formats.dialect import Dialect
    from mqlake.store.reader import StoreReader

    directory = open_place(store, archive, override)
    with StoreReader.open(directory, dialect=Dialect(dialect) if dialect else None) as reader:
        answer = question.ask(reader, asked)
    if json:
        from mqlake.formats.message_json import to_json

        messages = [to_json(record) for record in answer.records]
        write_json({"messages": messages, "truncated": answer.truncated, **answer.extra})
    else:
        from mqlake.cli.views.messages import view

        draw(view(answer))
    return 0 if answer.matched else NOTHING_MATCHED
