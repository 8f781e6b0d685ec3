"""Find the question that the options of `query` ask, and the store's answer to it.

Upstream: `DefaultMessageStore.queryMessage`, `getMessage`, `getOffsetInQueueByTime`,
`lookMessageByOffset` answer the same questions in a running broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from mqlake.cli.options import LONGEST_TIME, Begin, End, UsageError

if TYPE_CHECKING:
    from mqlake.formats.record import Record
    from mqlake.store.reader import StoreReader

DEFAULT_MAX = 64


class QueryCommandOptions(NamedTuple):
    """The options of the command line; those that were not given are None."""

    topic: Annotated[str | None, typer.Option(help="Topic; required except with --id.")] = None
    key: Annotated[
        str | None, typer.Option(metavar="K", help="Messages with this key or unique key.")
    ] = None
    index_type: Annotated[
        Literal["K", "T"] | None,
        typer.Option(
            help="Whether --key is a key (K) or a tag (T), which only RocketMQ 5.5 indexes."
        ),
    ] = None
    unique_key: Annotated[
        str | None,
        typer.Option(metavar="K", help="The message with this unique key, as clients print it."),
    ] = None
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The message with this offset message id."),
    ] = None
    queue: Annotated[int | None, typer.Option(metavar="Q", min=0, help="Queue id.")] = None
    offset: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=LONGEST_TIME,
            help="Messages of --queue, starting at this queue offset.",
        ),
    ] = None
    time: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            min=0,
            max=LONGEST_TIME,
            help="The message of --queue at this store time, in milliseconds since 1970.",
        ),
    ] = None
    boundary: Annotated[
        Literal["lower", "upper", "nearest"] | None,
        typer.Option(
            help="Which message --time finds: the first at or after it (lower), the last at or"
            " before it (upper), or the nearest; default: nearest in a store of RocketMQ 4.9,"
            " otherwise lower."
        ),
    ] = None
    begin: Begin = None
    end: End = None
    tag: Annotated[str | None, typer.Option(help="Only messages with this tag.")] = None
    max: Annotated[
        int | None,
        typer.Option(
            "--max", metavar="N", min=1, help=f"Maximum number of messages; default: {DEFAULT_MAX}."
        ),
    ] = None

    @property
    def limit(self) -> int:
        """The maximum number of messages in the answer."""
        return DEFAULT_MAX if self.max is None else self.max


class Answer(NamedTuple):
    """The messages that matched, and whether the limit left out any.

    Attributes:
        extra: further members of the JSON object, such as `offset` for a query by time.
        matched: whether the store has what was asked for.
    """

    records: list[Record]
    truncated: bool
    matched: bool
    extra: dict[str, Any]


class QueryForm(NamedTuple):
    """One form of query: the options that ask it, those that it also needs, and those that narrow
    it.
    """

    marks: tuple[str, ...]
    needs: tuple[str, ...]
    optional: tuple[str, ...]
    ask: Callable[[StoreReader, QueryCommandOptions], Answer]


def choose(options: QueryCommandOptions) -> QueryForm:
    """Return the question that the options ask.

    Raises:
        UsageError: the options ask no question, or cannot be combined; the message says why.
    """
    given = {name for name, value in options._asdict().items() if value is not None}
    question = next((form for form in QUESTIONS if given.issuperset(form.marks)), None)
    if question is None:
        raise UsageError(_what_is_open(given))
    if missing := [name for name in question.needs if name not in given]:
        raise UsageError(f"{_flags(question.marks)} needs {_flags(missing)}")
    surplus = given.difference(question.marks, question.needs, question.optional)
    if surplus:
        raise UsageError(
            f"{_flags(sorted(surplus))} cannot be combined with {_flags(question.marks)}"
        )
    return question


def _what_is_open(given: set[str]) -> str:
    if "queue" in given:
        return "--queue needs --offset N or --time MS"
    for name, partner in (("begin", "end"), ("end", "begin")):
        if name in given:
            return f"--{name} needs --{partner}, or a --key whose messages it selects"
    for name in ("offset", "time"):
        if name in given:
            return f"--{name} needs --queue Q"
    return (
        "say what to find: --id ID; or --topic T with --key K, --unique-key K, --queue Q "
        "--offset N, --queue Q --time MS, or --begin MS --end MS"
    )


def _flags(names: Iterable[str]) -> str:
    return " ".join(f"--{name.replace('_', '-')}" for name in names)


def _found(records: list[Record], truncated: bool = False, **extra: Any) -> Answer:
    return Answer(records, truncated, bool(records), extra)


def _by_id(reader: StoreReader, options: QueryCommandOptions) -> Answer:
    record = reader.by_message_id(options.id or "")
    if record is None or options.topic not in (None, record.topic):
        return _found([])
    return _found([record])


def _by_key(reader: StoreReader, options: QueryCommandOptions) -> Answer:
    result = reader.by_key(
        options.topic or "",
        options.key or "",
        begin=options.begin or 0,
        end=LONGEST_TIME if options.end is None else options.end,
        max=options.limit,
        index_type=options.index_type,
    )
    return _found(result.records, result.truncated)


def _by_unique_key(reader: StoreReader, options: QueryCommandOptions) -> Answer:
    record = reader.by_unique_key(options.topic or "", options.unique_key or "")
    return _found([] if record is None else [record])


def _by_offset(reader: StoreReader, options: QueryCommandOptions) -> Answer:
    result = reader.get(
        options.topic or "", options.queue or 0, options.offset or 0, options.limit, options.tag
    )
    return _found(
        result.records,
        truncated=result.next_offset < result.max_offset,
        status=result.status,
        nextOffset=result.next_offset,
        minOffset=result.min_offset,
        maxOffset=result.max_offset,
    )


def _by_time(reader: StoreReader, options: QueryCommandOptions) -> Answer:
    topic, queue = options.topic or "", options.queue or 0
    offset = reader.offset_by_time(topic, queue, options.time or 0, options.boundary)
    records = reader.get(topic, queue, offset, 1).records
    exists = queue in reader.queues(topic)
    return Answer(records, truncated=False, matched=exists, extra={"offset": offset})


def _by_time_range(reader: StoreReader, options: QueryCommandOptions) -> Answer:
    result = reader.by_time_range(
        options.topic or "",
        options.begin or 0,
        LONGEST_TIME if options.end is None else options.end,
        max=options.limit,
        tag=options.tag,
    )
    return _found(result.records, result.truncated)


# The first question whose options are all given is the one that is asked.
QUESTIONS = (
    QueryForm(("id",), (), ("topic",), _by_id),
    QueryForm(("key",), ("topic",), ("begin", "end", "max", "index_type"), _by_key),
    QueryForm(("unique_key",), ("topic",), (), _by_unique_key),
    QueryForm(("queue", "offset"), ("topic",), ("max", "tag"), _by_offset),
    QueryForm(("queue", "time"), ("topic",), ("boundary",), _by_time),
    QueryForm(("begin", "end"), ("topic",), ("max", "tag"), _by_time_range),
)
