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

from mqlake.cli import options as shared
from mqlake.cli.option_groups import grouped
from mqlake.cli.output import draw, write_json
from mqlake.cli.places import open_place
from mqlake.cli.progress import reported_reading
from mqlake.cli.questions import QueryCommandOptions, choose

EXAMPLES = (
    "mqlake query STORE --topic Orders --key order-4711",
    "mqlake query STORE --id 7F00000100002A9F0000000000000000",
    "mqlake query STORE --topic Orders --queue 0 --offset 100 --max 10",
    "mqlake query STORE --topic Orders --queue 0 --time 1795206616198",
    "mqlake query s3://bucket/broker-a --topic Orders --key order-4711",
    "mqlake query STORE --topic Orders --begin 1795206616198 --end 1795206799234 --json",
)
NOTHING_MATCHED = 1


@grouped
def query(
    store: shared.Place,
    *,
    asked: QueryCommandOptions,
    archive: shared.Archive = None,
    override: shared.ObjectStoreSettings = None,
    dialect: shared.Dialect = None,
    json: shared.Json = False,
) -> int:
    """Find messages by id, key, queue offset or time."""
    question = choose(asked)

    from mqlake.formats.dialect import Dialect
    from mqlake.store.reader import StoreReader

    with reported_reading(store):
        directory = open_place(store, archive, override)
        with StoreReader.open(directory, dialect=Dialect(dialect) if dialect else None) as reader:
            answer = question.ask(reader, asked)
            topics = [] if answer.matched or json else reader.topics()
    if json:
        from mqlake.formats.message_json import to_json

        messages = [to_json(record) for record in answer.records]
        write_json({"messages": messages, "truncated": answer.truncated, **answer.extra})
    else:
        from mqlake.cli.views.messages import view

        draw(view(answer, _unknown(asked.topic, topics)))
    return 0 if answer.matched else NOTHING_MATCHED


def _unknown(topic: str | None, topics: list[str]) -> str | None:
    """Return that a topic has no queue in the store; None if it has, or the store has no topics."""
    if topic is None or not topics or topic in topics:
        return None
    from mqlake.query.reading.parsing import suggestion

    return f"topic {topic!r} does not exist; {suggestion(topic, topics)}"
