"""Send each line of stdin, or of a file, as a message to a topic of any RocketMQ cluster.

With `--ndjson`, each line is a JSON object with `body` (or `bodyBase64`) and optionally `tags`,
`keys`, `properties`, `shardingKey`, `priority`, `delayLevel`, `delay` (milliseconds) or `deliverAt`
(milliseconds since 1970). The output of `mqlake consume --json` has this form, so it can be sent
again. Lines are sent in groups of up to 256. If a line is not acknowledged, the command fails, and
says how many lines were acknowledged in earlier groups. Lines of the failed group may be stored,
too. If SIGTERM or Ctrl-C ends the command before the last line, its exit code is 130.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqlake.cli.access import chosen
from mqlake.cli.options import Json, Progress, UsageError, settings_given
from mqlake.cli.output import write_json
from mqlake.cli.streams import DEFAULT_NAMES, Names, RateReport, Topic, or_told, run_reported
from mqlake.errors import MqlakeError

if TYPE_CHECKING:
    import asyncio

    from mqlake.cli.lines import Lines
    from mqlake.client import Message

EXAMPLES = (
    "echo hello | mqlake produce orders",
    "mqlake produce orders lines.txt --tags paid --key 4711 -n 10.0.0.5:9876",
    "mqlake consume orders --json | mqlake produce orders-copy --ndjson --rate 500",
)

_INTERRUPTED = 128 + 2

_CHUNK = 256
"""Lines that are read, and sent, at a time."""


def produce(
    topic: Topic,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="File with the lines to send; default: stdin."),
    ] = None,
    names: Names = DEFAULT_NAMES,
    ndjson: Annotated[
        bool,
        typer.Option(
            "--ndjson",
            help="Read each line as a JSON object, as consume --json writes it, instead of as a "
            "body.",
        ),
    ] = False,
    tags: Annotated[
        str | None, typer.Option("--tags", metavar="TAG", help="Tag for messages without a tag.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key", metavar="KEY", help="Key for messages without a key; may be repeated."
        ),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property", metavar="NAME=VALUE", help="Property of all messages; may be repeated."
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="N", min=0.001, help="Maximum number of messages per second."
        ),
    ] = None,
    progress: Progress = None,
    json: Json = False,
) -> int:
    """Send each line of a file, or of stdin, as a message to a topic."""
    if file is not None and not file.exists():
        raise UsageError(
            f"{file}: no such file; to send a text: echo TEXT | mqlake produce {topic}"
        )
    from mqlake.cli.lines import open_lines
    from mqlake.client import Message
    from mqlake.client.message_json import message_from_json

    more = settings_given(properties)

    def made(line: bytes) -> Message:
        message = message_from_json(line, topic) if ndjson else Message(topic=topic, body=line)
        message.tags = message.tags or tags
        message.keys = message.keys or key or ()
        message.properties = {**more, **message.properties}
        return message

    shown = RateReport("sent", wanted=progress)

    async def work(told: asyncio.Event) -> bool:
        if file is None and sys.stdin.isatty():
            shown.tell("each line that you type becomes a message; Ctrl-D ends")
        with open_lines(file) as lines:
            return await _send(names, lines, made, rate, shown, told)

    try:
        is_complete = run_reported(work, shown)
    finally:
        if json:
            seconds = round(shown.seconds, 3)
            write_json({"topic": topic, "acknowledged": shown.count, "seconds": seconds})
    return 0 if is_complete else _INTERRUPTED


async def _send(
    names: str,
    lines: Lines,
    made: Callable[[bytes], Message],
    rate: float | None,
    shown: RateReport,
    told: asyncio.Event,
) -> bool:
    """Send lines; return whether all were sent before a signal ended the program."""
    import asyncio

    from mqlake.client import ClientError, Producer

    most = _CHUNK if rate is None else max(1, min(_CHUNK, int(rate)))
    access = chosen()
    async with Producer(names, credentials=access.credentials, tls=access.tls) as producer:
        while not told.is_set():
            some = await or_told(lines.next(most), told)
            if not some:
                return some is not None
            try:
                await producer.send_many([made(line) for line in some])
            except MqlakeError as error:
                before = f"lines acknowledged before this group of {len(some)}: {shown.count}"
                raise ClientError(f"{error} ({before})") from error
            shown.add(len(some))
            if rate is not None:
                await or_told(asyncio.sleep(max(0.0, shown.count / rate - shown.seconds)), told)
    return False
