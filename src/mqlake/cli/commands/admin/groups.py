"""`mqlake admin`: consumer groups, consumers and producers."""

from __future__ import annotations

from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.admin import arguments as given
from mqlake.cli.commands.admin.arguments import DEFAULT_NAMES, run
from mqlake.cli.output import write_json


def consumer_progress(
    group: Annotated[
        str | None,
        typer.Option("-g", "--groupName", metavar="GROUP", help="Only this group, by queue."),
    ] = None,
    topic: given.SomeTopic = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Show the lag of all groups or, by queue, of one group."""
    from mqlake.admin import groups

    if group is None:
        rows, code = given.run_partly(names, groups.all_progress, "its groups' lag is missing")
        return given.show_rows("groups", rows, json) or code
    found, code = given.run_partly(
        names,
        lambda admin, missing: groups.progress(admin, group, topic, missing),
        "its queues are missing",
    )
    return given.show_rows("queues", found, json) or code


def consumer_connection(
    group: given.Group, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show a group's consumers and subscriptions."""
    from mqlake.admin import groups

    found, code = given.run_partly(
        names,
        lambda admin, missing: groups.connections(admin, group, missing),
        "its members are missing",
    )
    if json:
        write_json(found)
        return code
    given.show_rows("consumers", found.members, json)
    given.show_rows("subscriptions", found.subscriptions, json)
    facts = {
        "consumeType": found.consume_type,
        "messageModel": found.message_model,
        "consumeFromWhere": found.consume_from_where,
    }
    return given.show_facts(facts, json) or code


def producer_connection(
    group: Annotated[
        str,
        typer.Option("-g", "--producerGroup", metavar="GROUP", help="Name of the producer group."),
    ],
    topic: given.Topic,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Show a group's producers on one broker of a topic."""
    from mqlake.admin import groups

    found = run(names, lambda admin: groups.producer_connections(admin, group, topic))
    return given.show_rows("producers", found, json)


def producer(
    broker: given.Broker, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """List all producers that are connected to a broker."""
    from mqlake.admin import groups

    found = run(names, lambda admin: groups.producers(admin, broker))
    return given.show_rows("producers", found, json)


def update_sub_group(
    group: given.Group,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    enable: Annotated[
        bool,
        typer.Option(
            "-s/-S",
            "--consumeEnable/--consumeDisable",
            help="Allow or forbid consumption; default: allow.",
            show_default=False,
        ),
    ] = True,
    retry_times: Annotated[
        int,
        typer.Option(
            "-r",
            "--retryMaxTimes",
            min=-1,
            help="Maximum number of redeliveries; 0 and -1: a message that fails is a dead letter.",
        ),
    ] = 16,
    retry_queues: Annotated[
        int,
        typer.Option("-q", "--retryQueueNums", min=0, help="Number of queues of the retry topic."),
    ] = 1,
    orderly: Annotated[
        bool, typer.Option("-o", "--consumeMessageOrderly", help="Consume in order.")
    ] = False,
    attributes: Annotated[
        str,
        typer.Option(
            "--attributes",
            metavar="TEXT",
            help="Attributes to add or remove, such as +priority.factor=80,-NAME.",
        ),
    ] = "",
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Create or update a consumer group. Name the brokers with -c or -b."""
    from mqlake.admin import groups
    from mqlake.formats.config.subscription_group import SubscriptionGroup
    from mqlake.protocol.attributes import parse_changes

    given.one_place(cluster, broker)
    settings = SubscriptionGroup(
        group_name=group,
        consume_enable=enable,
        consume_message_orderly=orderly,
        retry_max_times=retry_times,
        retry_queue_nums=retry_queues,
        attributes=parse_changes(attributes),
    )
    changed = run(names, lambda admin: groups.update(admin, settings, cluster, broker))
    return given.show_rows("changed", changed, json)


def delete_sub_group(
    group: given.Group,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    offsets: Annotated[
        bool, typer.Option("-r", "--removeOffset", help="Also delete the group's offsets.")
    ] = False,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Delete a consumer group. Name the brokers with -c or -b.

    With -c, its retry topic and its dead-letter topic are deleted, too.
    """
    from mqlake.admin import groups

    given.one_place(cluster, broker)
    changed = run(
        names, lambda admin: groups.delete(admin, group, cluster, broker, clean_offset=offsets)
    )
    return given.show_rows("changed", changed, json)


def get_consumer_config(
    group: given.Group, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show a group's settings on each broker."""
    from mqlake.admin import groups

    found, code = given.run_partly(
        names,
        lambda admin, missing: groups.config(admin, group, missing),
        "its settings are missing",
    )
    return given.show_facts(found, json) or code


COMMANDS = {
    "consumerProgress": consumer_progress,
    "consumerConnection": consumer_connection,
    "producerConnection": producer_connection,
    "producer": producer,
    "updateSubGroup": update_sub_group,
    "deleteSubGroup": delete_sub_group,
    "getConsumerConfig": get_consumer_config,
}
