"""Options of `mqlake follow` besides those of the table."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

from mqlake.cli import options as shared
from mqlake.cli import table_options as lake
from mqlake.cli.replicating import Masters
from mqlake.cli.streams import DEFAULT_NAMES, Names


class PaceOptions(NamedTuple):
    """When a micro-batch begins, and how large it may be."""

    once: Annotated[
        bool, typer.Option("--once", help="Stop when all current messages are written.")
    ] = False
    target_lag: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Maximum time that messages wait for a micro-batch to fill.",
        ),
    ] = 60.0
    processing_time: Annotated[
        str, typer.Option(metavar="INTERVAL", help="Minimum time between two checks of the log.")
    ] = "1 second"
    max_offsets_per_trigger: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Maximum number of messages in a micro-batch; default: 4 GiB of the log, or"
            " 500,000 messages with --decode or --upsert-by.",
        ),
    ] = None


class SourceOptions(NamedTuple):
    """Which messages of the log are written."""

    subscribe: Annotated[
        str | None, typer.Option(metavar="TOPICS", help="Only these topics, separated by commas.")
    ] = None
    subscribe_pattern: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX", help="Only topics whose whole name matches this regular expression."
        ),
    ] = None
    starting_offsets: Annotated[
        str,
        typer.Option(metavar="WHERE", help="Where a new query starts: earliest, latest, or JSON."),
    ] = "earliest"
    system_topics: Annotated[
        bool | None,
        typer.Option(
            "--system-topics/--no-system-topics",
            help="Also write RocketMQ's own topics; default: as an earlier start of this query, or"
            " no. Topics that are named are written in any case.",
            show_default=False,
        ),
    ] = None
    columns: lake.Columns = None
    decompress: Annotated[
        bool | None,
        typer.Option(
            "--decompress/--no-decompress",
            help="Decompress bodies, and split inner batches into their messages; default: as the"
            " table has them, or yes for a new table.",
            show_default=False,
        ),
    ] = None
    fail_on_data_loss: Annotated[
        bool,
        typer.Option(
            "--fail-on-data-loss/--no-fail-on-data-loss",
            help="Fail at damage, at messages deleted before they were read, and at messages that"
            " the table refuses, instead of writing dead letters.",
        ),
    ] = False

    def query_options(self, most: int | None, *, is_table: bool) -> dict[str, str]:
        """Return them as options of the Spark source.

        Args:
            is_table: whether the query writes a table, or the derived files of the store.
            most: the maximum number of messages in a micro-batch; None for the default.
        """
        found = {
            "startingOffsets": self.starting_offsets,
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
        }
        if most is not None:
            found["maxOffsetsPerTrigger"] = str(most)
        if self.system_topics is not None:
            found["systemTopics"] = str(self.system_topics).lower()
        elif is_table:
            found["systemTopics"] = "auto"
        if self.decompress is not None:
            found["decompress"] = str(self.decompress).lower()
        if self.subscribe is not None:
            found["subscribe"] = self.subscribe
        if self.subscribe_pattern is not None:
            found["subscribePattern"] = self.subscribe_pattern
        return found


class ReplicaOfOptions(NamedTuple):
    """Which masters are copied to STORE, and how long the copies keep their logs."""

    replica_of: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MASTER",
            help="Copy this running master (broker name or host:port) to STORE; may be repeated:"
            " each master then has a directory in STORE.",
        ),
    ] = None
    replica_of_cluster: Annotated[
        str | None,
        typer.Option(
            metavar="CLUSTER", help="Copy all masters of this cluster, each to STORE/brokerName."
        ),
    ] = None
    names: Names = DEFAULT_NAMES
    ha_tls: shared.HaTls = True
    keep_hours: shared.KeepHours = None
    keep_bytes: shared.KeepBytes = None

    def masters(self) -> Masters:
        """Return the masters that are copied."""
        names = tuple(self.replica_of or ())
        return Masters(
            names,
            self.replica_of_cluster,
            self.names,
            keep_hours=self.keep_hours,
            keep_bytes=self.keep_bytes,
            has_ha_tls=self.ha_tls,
        )


class RunOptions(NamedTuple):
    """Spark's master, and what the program prints."""

    master: shared.Master = None
    progress: shared.Progress = None
    metrics: shared.MetricsAddress = None
    json: shared.Json = False
