"""`mqlake admin`: topics."""

from __future__ import annotations

from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.admin import arguments as given
from mqlake.cli.commands.admin.arguments import DEFAULT_NAMES, run
from mqlake.cli.options import UsageError
from mqlake.cli.output import write_json

Permission = Annotated[
    int,
    typer.Option("-p", "--perm", min=0, max=7, help="2: write; 4: read; 6: both; 0: neither."),
]


def topic_list(
    cluster: Annotated[
        bool, typer.Option("-c", "--clusterModel", help="Also show clusters and consumer groups.")
    ] = False,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """List all topics."""
    from mqlake.admin import topics

    if not cluster:
        return given.show_names("topics", run(names, topics.names), json)
    return given.show_rows("topics", run(names, topics.consumed), json)


def topic_status(
    topic: given.Topic, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show the offsets of a topic's queues."""
    from mqlake.admin import topics

    found, code = given.run_partly(
        names,
        lambda admin, missing: topics.status(admin, topic, missing),
        "its queues are missing",
    )
    return given.show_rows("queues", found, json) or code


def topic_route(
    topic: given.Topic, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show a topic's route: its brokers and queues."""
    from mqlake.admin import topics

    route = run(names, lambda admin: admin.route(topic))
    if json:
        write_json(route)
        return 0
    given.show_rows("queues", route.queue_datas, json)
    return given.show_rows("brokers", topics.places(route), json)


def topic_cluster_list(
    topic: given.Topic, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """List the clusters that have a given topic."""
    from mqlake.admin import topics

    found = run(names, lambda admin: topics.clusters(admin, topic))
    return given.show_names("clusters", found, json)


def update_topic(
    topic: given.Topic,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    read: Annotated[
        int, typer.Option("-r", "--readQueueNums", min=1, help="Number of read queues.")
    ] = 8,
    write: Annotated[
        int, typer.Option("-w", "--writeQueueNums", min=1, help="Number of write queues.")
    ] = 8,
    permission: Permission = 6,
    order: Annotated[
        bool, typer.Option("-o", "--order", help="Mark the topic as ordered.")
    ] = False,
    attributes: Annotated[
        str,
        typer.Option(
            "-a",
            "--attributes",
            metavar="TEXT",
            help="Attributes to add or remove, such as +message.type=FIFO,-NAME.",
        ),
    ] = "",
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Create or update a topic. Name the brokers with -c or -b."""
    from mqlake.admin import topics
    from mqlake.formats.config.topics import Topic

    given.one_place(cluster, broker)
    settings = Topic(
        topic_name=topic,
        read_queue_nums=read,
        write_queue_nums=write,
        perm=permission,
        order=order,
    )
    changed = run(names, lambda admin: topics.update(admin, settings, cluster, broker, attributes))
    return given.show_rows("changed", changed, json)


def update_topic_perm(
    topic: given.Topic,
    permission: Permission,
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Change a topic's permission. Name the brokers with -c or -b."""
    from mqlake.admin import topics

    given.one_place(cluster, broker)
    changed = run(names, lambda admin: topics.permit(admin, topic, permission, cluster, broker))
    return given.show_rows("changed", changed, json)


def delete_topic(
    topic: given.Topic,
    cluster: given.Cluster = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Delete a topic from a cluster (-c) and from the name servers."""
    from mqlake.admin import topics

    if cluster is None:
        raise UsageError("name the cluster: -c CLUSTER")
    changed = run(names, lambda admin: topics.delete(admin, topic, cluster))
    return given.show_rows("changed", changed, json)


def stats_all(
    topic: given.SomeTopic = None, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show topics' message rates, and message counts of the last day."""
    from mqlake.admin import topics

    found, code = given.run_partly(
        names,
        lambda admin, missing: topics.all_rates(admin, topic, missing),
        "its rates are missing",
    )
    return given.show_rows("topics", found, json) or code


COMMANDS = {
    "topicList": topic_list,
    "topicStatus": topic_status,
    "topicRoute": topic_route,
    "topicClusterList": topic_cluster_list,
    "updateTopic": update_topic,
    "updateTopicPerm": update_topic_perm,
    "deleteTopic": delete_topic,
    "statsAll": stats_all,
}
