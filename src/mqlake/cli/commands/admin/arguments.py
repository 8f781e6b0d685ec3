"""Options that administrative commands share, and how they run and answer."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from mqlake.cli.access import chosen
from mqlake.cli.options import UsageError
from mqlake.cli.output import draw, write_json
from mqlake.cli.progress import reported_servers
from mqlake.storage.clock import SystemClock

if TYPE_CHECKING:
    import msgspec

    from mqlake.admin.admin import Admin
    from mqlake.admin.each_broker import BrokerFailure
    from mqlake.formats.record import Record

T = TypeVar("T")

NOTHING_MATCHED = 1
INCOMPLETE = 2
"""A broker did not answer."""
_BLINK = 0.02
"""Seconds: a command that only asks servers is silent because of all but the shortest waits."""

Names = Annotated[
    str,
    typer.Option(
        "-n",
        "--namesrvAddr",
        envvar="NAMESRV_ADDR",
        metavar="ADDRESS",
        help="Name servers, separated by `;`.",
    ),
]
DEFAULT_NAMES = "127.0.0.1:9876"

Topic = Annotated[str, typer.Option("-t", "--topic", metavar="TOPIC", help="Name of the topic.")]
SomeTopic = Annotated[
    str | None, typer.Option("-t", "--topic", metavar="TOPIC", help="Only this topic.")
]
Group = Annotated[
    str, typer.Option("-g", "--groupName", metavar="GROUP", help="Name of the group.")
]
Cluster = Annotated[
    str | None,
    typer.Option("-c", "--clusterName", metavar="CLUSTER", help="All brokers of this cluster."),
]
Broker = Annotated[
    str, typer.Option("-b", "--brokerAddr", metavar="BROKER", help="A broker, by address or name.")
]
SomeBroker = Annotated[
    str | None,
    typer.Option("-b", "--brokerAddr", metavar="BROKER", help="One broker, by address or name."),
]
Queue = Annotated[int, typer.Option("-i", "--queueId", min=0, metavar="N", help="Queue id.")]


def run(names: str, function: Callable[[Admin], Awaitable[T]]) -> T:
    """Run a coroutine function with an administrator's connections; return its result.

    The servers that it waits for are reported if stderr is a terminal.
    """
    import asyncio

    from mqlake.admin.admin import Admin

    access = chosen()

    async def asked() -> T:
        async with Admin(names, credentials=access.credentials, tls=access.tls) as admin:
            return await function(admin)

    with reported_servers(shortest=_BLINK):
        return asyncio.run(asked())


def run_partly(
    names: str, function: Callable[[Admin, list[BrokerFailure]], Awaitable[T]], what: str
) -> tuple[T, int]:
    """Run a coroutine function that returns what brokers answer, also if others do not.

    Args:
        what: what is missing then, such as "its queues are missing"; a line on stderr says so.

    Returns:
        The result, and the exit code.
    """
    missing: list[BrokerFailure] = []
    found = run(names, lambda admin: function(admin, missing))
    for text in dict.fromkeys(each.missing(what) for each in missing):
        sys.stderr.write(f"mqlake: {text}\n")
    return found, INCOMPLETE if missing else 0


def show_rows(name: str, rows: Sequence[msgspec.Struct], json: bool) -> int:
    """Print rows: one JSON object with one member, or a table."""
    if json:
        write_json({name: rows})
    else:
        from mqlake.cli.views.admin import table

        draw([table(name, rows)])
    return 0


def show_names(name: str, found: Sequence[str], json: bool) -> int:
    """Print names: one JSON object with one member, or one line for each."""
    if json:
        write_json({name: found})
    else:
        from mqlake.cli.output import write_line

        for each in found:
            write_line(each)
    return 0


def show_facts(found: Mapping[str, Any], json: bool) -> int:
    """Print names and values: one JSON object, or one line for each."""
    if json:
        write_json(found)
    else:
        from mqlake.cli.views.admin import facts

        draw([facts(found)])
    return 0


def show_messages(records: Sequence[Record], json: bool) -> int:
    """Print messages: a JSON object with `messages`, or a table. Exit code 1 if nothing matched."""
    if json:
        from mqlake.formats.message_json import to_json

        write_json({"messages": [to_json(record) for record in records]})
    else:
        from mqlake.cli.questions import Answer
        from mqlake.cli.views.messages import view

        draw(view(Answer(list(records), False, bool(records), {})))
    return 0 if records else NOTHING_MATCHED


def one_place(cluster: str | None, broker: str | None) -> None:
    """Raise an error if a command that changes something does not name its brokers."""
    if (cluster is None) == (broker is None):
        raise UsageError("name the target: -c CLUSTER or -b BROKER")


def milliseconds(text: str) -> int:
    """Return a time: "now", milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS in local time."""
    if text == "now":
        return SystemClock().milliseconds()
    if text.lstrip("-").isascii() and text.lstrip("-").isdigit():
        return int(text)
    try:
        # RocketMQ's tools also take local time.
        return int(datetime.strptime(text, "%Y-%m-%d#%H:%M:%S:%f").timestamp() * 1000)  # noqa: DTZ007
    except ValueError:
        raise UsageError(
            f"not a time: {text}; write now, milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS"
        ) from None
