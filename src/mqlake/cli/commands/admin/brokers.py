"""`mqlake admin`: clusters and brokers."""

from __future__ import annotations

from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.admin import arguments as given
from mqlake.cli.commands.admin.arguments import DEFAULT_NAMES, run


def cluster_list(names: given.Names = DEFAULT_NAMES, json: shared.Json = False) -> int:
    """List the brokers of all clusters."""
    from mqlake.admin import brokers

    return given.show_rows("brokers", run(names, brokers.clusters), json)


def broker_status(
    broker: given.Broker, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show a broker's runtime status."""
    from mqlake.admin import brokers

    return given.show_facts(run(names, lambda admin: brokers.status_of(admin, broker)), json)


def get_broker_config(
    broker: given.Broker, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show a broker's settings."""
    from mqlake.admin import brokers

    return given.show_facts(run(names, lambda admin: brokers.config(admin, broker)), json)


def update_broker_config(
    key: Annotated[str, typer.Option("-k", "--key", metavar="NAME", help="Name of the setting.")],
    value: Annotated[
        str, typer.Option("-v", "--value", metavar="VALUE", help="New value of the setting.")
    ],
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Change a setting of a running broker, and save it. Name the brokers with -c or -b."""
    from mqlake.admin import brokers

    given.one_place(cluster, broker)
    changed = run(names, lambda admin: brokers.update_config(admin, key, value, cluster, broker))
    return given.show_rows("changed", changed, json)


def broker_consume_stats(
    broker: given.Broker, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show the offsets and the lag of all groups on a broker."""
    from mqlake.admin import brokers

    found = run(names, lambda admin: brokers.consume_stats(admin, broker))
    return given.show_rows("queues", found, json)


def ha_status(
    broker: given.Broker, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show a broker's replication status: its log and its slaves."""
    import msgspec

    from mqlake.admin import brokers

    found = run(names, lambda admin: brokers.ha_status(admin, broker))
    if json:
        return given.show_facts(msgspec.to_builtins(found), json)
    if not found.master:
        return given.show_facts(msgspec.to_builtins(found.ha_client_runtime_info), json)
    facts = {
        "masterCommitLogMaxOffset": found.master_commit_log_max_offset,
        "slaveNum": len(found.ha_connection_info),
        "inSyncSlaveNum": found.in_sync_slave_nums,
    }
    given.show_facts(facts, json)
    return given.show_rows("slaves", found.ha_connection_info, json)


def clean_expired_cq(
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Remove queue files whose messages are no longer in the log.

    Without -c and -b, the command applies to all brokers.
    """
    from mqlake.admin import brokers

    changed = run(names, lambda admin: brokers.clean_queues(admin, cluster, broker))
    return given.show_rows("changed", changed, json)


def clean_unused_topic(
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Remove the queue files of deleted topics.

    Without -c and -b, the command applies to all brokers.
    """
    from mqlake.admin import brokers

    changed = run(names, lambda admin: brokers.clean_topics(admin, cluster, broker))
    return given.show_rows("changed", changed, json)


def delete_expired_commit_log(
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Remove expired commit-log files now, regardless of deleteWhen.

    Without -c and -b, the command applies to all brokers.
    """
    from mqlake.admin import brokers

    changed = run(names, lambda admin: brokers.delete_expired(admin, cluster, broker))
    return given.show_rows("changed", changed, json)


def switch_timer_engine(
    engine: Annotated[
        str,
        typer.Option("-e", "--engineType", metavar="F|R", help="F: files; R: RocksDB."),
    ],
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Switch the storage engine of timer messages. Name the brokers with -c or -b."""
    from mqlake.admin import brokers

    given.one_place(cluster, broker)
    changed = run(names, lambda admin: brokers.switch_timer_engine(admin, engine, cluster, broker))
    return given.show_rows("changed", changed, json)


def rocksdb_config_to_json(
    kinds: Annotated[
        str,
        typer.Option(
            "-t",
            "--configType",
            metavar="KINDS",
            help="One or more of topics;subscriptionGroups;consumerOffsets.",
        ),
    ],
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Export brokers' RocksDB tables to JSON files. Name the brokers with -c or -b."""
    from mqlake.admin import brokers

    given.one_place(cluster, broker)
    wanted = kinds.split(";")
    changed = run(names, lambda admin: brokers.export_configs(admin, wanted, cluster, broker))
    return given.show_rows("changed", changed, json)


COMMANDS = {
    "clusterList": cluster_list,
    "brokerStatus": broker_status,
    "getBrokerConfig": get_broker_config,
    "updateBrokerConfig": update_broker_config,
    "brokerConsumeStats": broker_consume_stats,
    "haStatus": ha_status,
    "cleanExpiredCQ": clean_expired_cq,
    "cleanUnusedTopic": clean_unused_topic,
    "deleteExpiredCommitLog": delete_expired_commit_log,
    "switchTimerEngine": switch_timer_engine,
    "rocksDBConfigToJson": rocksdb_config_to_json,
}
