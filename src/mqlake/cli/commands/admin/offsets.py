"""`mqlake admin`: the offsets of consumer groups."""

from __future__ import annotations

from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.admin import arguments as given
from mqlake.cli.commands.admin.arguments import DEFAULT_NAMES, run


def reset_offset_by_time(
    group: Annotated[
        str, typer.Option("-g", "--group", metavar="GROUP", help="Name of the group.")
    ],
    topic: given.Topic,
    timestamp: Annotated[
        str,
        typer.Option(
            "-s",
            "--timestamp",
            metavar="TIME",
            help="now, milliseconds since 1970, or yyyy-MM-dd#HH:mm:ss:SSS.",
        ),
    ],
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Reset a group's offsets to a timestamp."""
    from mqlake.admin import offsets

    at = given.milliseconds(timestamp)
    found = run(names, lambda admin: offsets.reset(admin, group, topic, at))
    return given.show_rows("queues", found, json)


def skip_accumulated_message(
    group: Annotated[
        str, typer.Option("-g", "--group", metavar="GROUP", help="Name of the group.")
    ],
    topic: given.Topic,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Skip a group's backlog."""
    from mqlake.admin import offsets

    found = run(names, lambda admin: offsets.reset(admin, group, topic, offsets.TO_THE_END))
    return given.show_rows("queues", found, json)


def clone_group_offset(
    source: Annotated[
        str, typer.Option("-s", "--srcGroup", metavar="GROUP", help="Group to copy from.")
    ],
    target: Annotated[
        str, typer.Option("-d", "--destGroup", metavar="GROUP", help="Group to copy to.")
    ],
    topic: given.SomeTopic = None,
    offline: Annotated[
        bool,
        typer.Option(
            "-o",
            "--offline",
            help="Include topics to which the source group does not subscribe now.",
        ),
    ] = False,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Copy one group's offsets to another group."""
    from mqlake.admin import groups, offsets

    run(names, lambda admin: offsets.clone(admin, source, target, topic, offline=offline))
    found = run(names, lambda admin: groups.progress_on(admin, target, topic))
    return given.show_rows("queues", found, json)


COMMANDS = {
    "resetOffsetByTime": reset_offset_by_time,
    "skipAccumulatedMessage": skip_accumulated_message,
    "cloneGroupOffset": clone_group_offset,
}
