"""Show the messages of a topic as they arrive, without a consumer group.

Other consumers are not affected. Reading starts after the last message, or at the position in
`--from`. With `--json`, each message is one JSON object on a line. Ctrl-C ends the command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mqlake.cli.options import Progress
from mqlake.cli.streams import (
    DEFAULT_NAMES,
    Most,
    Names,
    RateReport,
    Tags,
    Topic,
    begin_at,
    read_all_queues,
    run_reported,
)

if TYPE_CHECKING:
    import asyncio

EXAMPLES = (
    "mqlake tail orders",
    "mqlake tail orders --from earliest --tags paid --json",
)


def tail(
    topic: Topic,
    names: Names = DEFAULT_NAMES,
    tags: Tags = "*",
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="WHERE",
            help="Where to start: earliest, latest, or milliseconds since 1970.",
        ),
    ] = "latest",
    most: Most = None,
    progress: Progress = None,
    json: Annotated[
        bool, typer.Option("--json", help="Write each message as one JSON object on one line.")
    ] = False,
) -> int:
    """Show the messages of a topic as they arrive."""
    from mqlake.client import ConsumerSettings

    settings = ConsumerSettings(consume_from=begin_at(begin))
    shown = RateReport("read", wanted=progress)

    async def work(told: asyncio.Event) -> None:
        await read_all_queues(
            names, topic, tags, settings, most=most, told=told, shown=shown, as_json=json
        )

    run_reported(work, shown)
    return 0
