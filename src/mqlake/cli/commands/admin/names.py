"""`mqlake admin`: name servers."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.admin import arguments as given
from mqlake.cli.commands.admin.arguments import DEFAULT_NAMES, run
from mqlake.cli.options import UsageError

Namespace = Annotated[
    str, typer.Option("-s", "--namespace", metavar="NAME", help="Namespace of the key.")
]
Key = Annotated[str, typer.Option("-k", "--key", metavar="KEY", help="The key.")]
BrokerName = Annotated[
    str, typer.Option("-b", "--brokerName", metavar="NAME", help="Name of the broker.")
]

ORDERED_TOPICS = "ORDER_TOPIC_CONFIG"
"""Namespace of the topics that are ordered over several brokers."""


def get_namesrv_config(names: given.Names = DEFAULT_NAMES, json: shared.Json = False) -> int:
    """Show the configuration of each name server."""
    from mqlake.admin import names as name_servers

    return given.show_facts(run(names, name_servers.config), json)


def update_kv_config(
    namespace: Namespace,
    key: Key,
    value: Annotated[str, typer.Option("-v", "--value", metavar="VALUE", help="Value of the key.")],
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Set a key in every name server's KV configuration."""
    from mqlake.admin import names as name_servers

    run(names, lambda admin: name_servers.put(admin, namespace, key, value))
    return given.show_facts({key: value}, json)


def delete_kv_config(
    namespace: Namespace,
    key: Key,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Delete a key from every name server's KV configuration."""
    from mqlake.admin import names as name_servers

    run(names, lambda admin: name_servers.delete(admin, namespace, key))
    return given.show_names("deleted", [key], json)


def update_order_conf(
    topic: given.Topic,
    method: Annotated[
        Literal["get", "put", "delete"],
        typer.Option("-m", "--method", help="Get, put or delete the configuration."),
    ],
    value: Annotated[
        str | None,
        typer.Option(
            "-v",
            "--orderConf",
            metavar="TEXT",
            help="For put: the number of queues on each broker, as in broker-a:4;broker-b:4.",
        ),
    ] = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Get, put or delete the queue configuration of an ordered topic."""
    from mqlake.admin import names as name_servers

    if method == "put":
        if not value:
            raise UsageError("-m put needs the queues: -v ORDER")
        run(names, lambda admin: name_servers.put(admin, ORDERED_TOPICS, topic, value))
    elif method == "delete":
        run(names, lambda admin: name_servers.delete(admin, ORDERED_TOPICS, topic))
        return given.show_names("deleted", [topic], json)
    else:
        value = run(names, lambda admin: name_servers.get(admin, ORDERED_TOPICS, topic))
    return given.show_facts({"topic": topic, "orderConf": value}, json)


def wipe_write_perm(
    broker: BrokerName, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Revoke a broker's write permission; print how many topics changed."""
    from mqlake.admin import names as name_servers

    found = run(names, lambda admin: name_servers.wipe_write_permission(admin, broker))
    return given.show_facts(found, json)


def add_write_perm(
    broker: BrokerName, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Restore a broker's write permission; print how many topics changed."""
    from mqlake.admin import names as name_servers

    found = run(names, lambda admin: name_servers.add_write_permission(admin, broker))
    return given.show_facts(found, json)


COMMANDS = {
    "getNamesrvConfig": get_namesrv_config,
    "updateKvConfig": update_kv_config,
    "deleteKvConfig": delete_kv_config,
    "updateOrderConf": update_order_conf,
    "wipeWritePerm": wipe_write_perm,
    "addWritePerm": add_write_perm,
}
