"""`mqlake admin`: static topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.admin import arguments as given
from mqlake.cli.commands.admin.arguments import DEFAULT_NAMES, run

if TYPE_CHECKING:
    from mqlake.admin.admin import Admin
    from mqlake.admin.static_topics import LedQueue

Brokers = Annotated[
    str | None,
    typer.Option(
        "-b", "--brokers", metavar="BROKERS", help="Names of brokers, separated by commas."
    ),
]


def update_static_topic(
    topic: given.Topic,
    queues: Annotated[
        int, typer.Option("-qn", "--totalQueueNum", min=1, help="New total number of logic queues.")
    ],
    cluster: given.Cluster = None,
    brokers: Brokers = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Create a static topic, or add logic queues to it. Name the brokers with -c or -b."""
    from mqlake.admin import static_topics

    given.one_place(cluster, brokers)

    async def update(admin: Admin) -> list[LedQueue]:
        wanted = await _wanted(admin, cluster, brokers)
        return await static_topics.update(admin, topic, queues, wanted)

    return given.show_rows("queues", run(names, update), json)


def remapping_static_topic(
    topic: given.Topic,
    cluster: given.Cluster = None,
    brokers: Brokers = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Move the logic queues of a static topic to given brokers. Name them with -c or -b."""
    from mqlake.admin import static_topics

    given.one_place(cluster, brokers)

    async def move(admin: Admin) -> list[LedQueue]:
        wanted = await _wanted(admin, cluster, brokers)
        return await static_topics.move(admin, topic, wanted)

    return given.show_rows("queues", run(names, move), json)


async def _wanted(admin: Admin, cluster: str | None, brokers: str | None) -> list[str]:
    """Return the names of the brokers that an option lists, or of those of a cluster."""
    if brokers is not None:
        return [name for part in brokers.split(",") if (name := part.strip())]
    return [broker.name for broker in await admin.brokers(cluster)]


COMMANDS = {
    "updateStaticTopic": update_static_topic,
    "remappingStaticTopic": remapping_static_topic,
}
