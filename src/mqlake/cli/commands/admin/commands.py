"""All administrative commands by their names, in the order of the help."""

from __future__ import annotations

from collections.abc import Callable

from mqlake.cli.commands.admin import (
    acls,
    brokers,
    groups,
    messages,
    names,
    offsets,
    static_topics,
    topics,
    users,
)

COMMANDS: dict[str, Callable[..., int]] = {
    name: function
    for module in (brokers, topics, static_topics, groups, offsets, messages, names, users, acls)
    for name, function in module.COMMANDS.items()
}
