"""`mqlake admin`: clusters and brokers."""

from __future__ import annotations

from typing import Annotated

import typer

from mqlake.cli import options as shared
from mqlake.cli.commands.admin import arguments as given
from mqlake.cli.commands.admin.arguments import DEFAULT_NAMES, run


def cluster_list(names: given.Names = DEFAULT_NAMES, json: shared.Json = False) -> int:
    """Show all brokers."""
    from mqlake.admin import brokers

    return given.show_rows("brokers", run(names, brokers.clusters), json)


def broker_status(
    broker: given.Broker, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show what a broker says of itself."""
    from mqlake.admin import brokers

    return given.show_facts(run(names, lambda admin: brokers.status_of(admin, broker)), json)


def get_broker_config(
    broker: given.Broker, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show a broker's settings."""
    from mqlake.admin import brokers

    return given.show_facts(run(names, lambda admin: brokers.config(admin, broker)), json)


def update_broker_config(
    key: Annotated[str, typer.Option("-k", "--key", metavar="NAME", help="Name of a setting.")],
    value: Annotated[str, typer.Option("-v", "--value", metavar="VALUE", help="Its new value.")],
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Change a setting of a running broker, and keep the change."""
    from mqlake.admin import brokers

    given.one_place(cluster, broker)
    changed = run(names, lambda admin: brokers.update_config(admin, key, value, cluster, broker))
    return given.show_rows("changed", changed, json)


def broker_consume_stats(
    broker: given.Broker, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show where all groups stand in all queues of a broker."""
    from mqlake.admin import brokers

    found = run(names, lambda admin: brokers.consume_stats(admin, broker))
    return given.show_rows("queues", found, json)


def ha_status(
    broker: given.Broker, names: given.Names = DEFAULT_NAMES, json: shared.Json = False
) -> int:
    """Show how far a master's slaves are, or a slave."""
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
    """Remove files of queues that point before the log's start."""
    from mqlake.admin import brokers

    changed = run(names, lambda admin: brokers.clean_queues(admin, cluster, broker))
    return given.show_rows("changed", changed, json)


def clean_unused_topic(
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Remove queues whose topics are gone."""
    from mqlake.admin import brokers

    changed = run(names, lambda admin: brokers.clean_topics(admin, cluster, broker))
    return given.show_rows("changed", changed, json)


def delete_expired_commit_log(
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Remove expired files of the commit log, whatever the hour."""
    from mqlake.admin import brokers

    changed = run(names, lambda admin: brokers.delete_expired(admin, cluster, broker))
    return given.show_rows("changed", changed, json)


def switch_timer_engine(
    engine: Annotated[
        str,
        typer.Option("-e", "--engineType", metavar="F|R", help="F for files, R for RocksDB."),
    ],
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Switch the engine of messages that have a delivery time."""
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
            help="Such as topics;subscriptionGroups;consumerOffsets.",
        ),
    ],
    cluster: given.Cluster = None,
    broker: given.SomeBroker = None,
    names: given.Names = DEFAULT_NAMES,
    json: shared.Json = False,
) -> int:
    """Have brokers export tables that they keep in RocksDB as JSON files."""
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
