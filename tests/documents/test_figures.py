"""The figures in pages are the constants and defaults of the code."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

from mqlake.arrow.consumer import ArrowConsumer
from mqlake.broker.acting.family import GIVES_BACK as ACTING_GIVES_BACK
from mqlake.broker.lane.layout import LONGEST_FRAME as LANE_LONGEST
from mqlake.broker.lane.layout import REST_ROWS, REST_SHARE
from mqlake.broker.lane.pull_tables import MOST_DECISIONS
from mqlake.broker.lane.pulls import MOST_LEARNED
from mqlake.broker.parking import GRAIN as PARKING_GRAIN
from mqlake.broker.pop.ordered import _LONGEST_ATTEMPT_ID as ORDERED_LONGEST_ATTEMPT_ID
from mqlake.broker.pop.reading import MOST_BYTES as POP_READING_MOST_BYTES
from mqlake.broker.pop.requests import _MOST_MESSAGES as POP_REQUESTS_MOST_MESSAGES
from mqlake.broker.slave.following import FULL as FOLLOWING_FULL
from mqlake.broker.slave.following import TICK as FOLLOWING_TICK
from mqlake.broker.state.clients.notices import _DELAY as NOTICES_DELAY
from mqlake.broker.state.queue_locks import LIFETIME as QUEUE_LOCKS_LIFETIME
from mqlake.broker.state.registration.registration import _CHANGE as REGISTRATION_CHANGE
from mqlake.broker.state.registration.registration import _FIRST as REGISTRATION_FIRST
from mqlake.client.consumer.settings import _DEFAULT_RETRIES as CONSUMER_SETTINGS_DEFAULT_RETRIES
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.producer.outgoing import Compression
from mqlake.client.producer.producer import Producer
from mqlake.client.trace.tracer import MOST_RECORDS as TRACER_MOST_RECORDS
from mqlake.dispatch.answers import SEARCH_ALLOWANCE as ANSWERS_SEARCH_ALLOWANCE
from mqlake.dispatch.digest import MOST_BYTES as DIGEST_MOST_BYTES
from mqlake.dispatch.digest import MOST_RECORDS as DIGEST_MOST_RECORDS
from mqlake.dispatch.window import DEFAULT_WINDOW as WINDOW_DEFAULT_WINDOW
from mqlake.jobs.export.parquet import _ROW_GROUP as PARQUET_ROW_GROUP
from mqlake.jobs.queues.files import _HELD_BYTES as JOB_FILES_HELD_BYTES
from mqlake.kombu.settings import TransportSettings
from mqlake.lake.files.compaction import LARGEST as COMPACTION_LARGEST
from mqlake.lake.files.compression import _SAMPLE as COMPRESSION_SAMPLE
from mqlake.lake.files.compression import WORTH as COMPRESSION_WORTH
from mqlake.lake.files.partition_writer import GATHERED as PARTITION_WRITER_GATHERED
from mqlake.lake.options import BATCH_BYTES as LAKE_OPTIONS_BATCH_BYTES
from mqlake.lake.options import ENOUGH as LAKE_OPTIONS_ENOUGH
from mqlake.lake.options import FollowOptions
from mqlake.lake.tables.parquet_table import LINGER as PARQUET_TABLE_LINGER
from mqlake.namesrv.broker_table import HEARTBEAT_TIMEOUT as BROKER_TABLE_HEARTBEAT_TIMEOUT
from mqlake.namesrv.notices import _AT_ONCE as NAME_SERVER_NOTICES_AT_ONCE
from mqlake.protocol.body import MAX_LENIENT as PROTOCOL_BODY_MAX_LENIENT
from mqlake.protocol.logic_queues.mapping import MAX_STRETCHES as LOGIC_QUEUES_MAX_STRETCHES
from mqlake.query.live.shares import LARGE as SHARES_LARGE
from mqlake.remoting.limits import Limits
from mqlake.remoting.slices import AT_ONCE as SLICES_AT_ONCE
from mqlake.remoting.slices import OF_ONE as SLICES_OF_ONE
from mqlake.remoting.slices import ROUND as SLICES_ROUND
from mqlake.remoting.slices import TURN as SLICES_TURN
from mqlake.remoting.tls.handshakes import _ROUND as HANDSHAKES_ROUND
from mqlake.remoting.turns import ROUND as TURNS_ROUND
from mqlake.replication.auto_switch.in_sync_watch import _NEAR as IN_SYNC_WATCH_NEAR
from mqlake.replication.comparison import OVERLAP as COMPARISON_OVERLAP
from mqlake.replication.ha_server import _MOST as HA_SERVER_MOST
from mqlake.replication.master_tables import _A_PAGE as MASTER_TABLES_A_PAGE
from mqlake.replication.slave_log import _DIVERGED as SLAVE_LOG_DIVERGED
from mqlake.replication.table_parts import SIZE as TABLE_PARTS_SIZE
from mqlake.spark.cds import KEPT as CDS_KEPT
from mqlake.spark.classic import ATTEMPTS as CLASSIC_ATTEMPTS
from mqlake.spark.live.send import _MOST as SEND_MOST
from mqlake.storage.remote.object_stores import _ATTEMPTS as OBJECT_STORES_ATTEMPTS
from mqlake.storage.remote.remote_file import _BLOCK as REMOTE_FILE_BLOCK
from mqlake.storage.remote.remote_file import _CHUNK as REMOTE_FILE_CHUNK
from mqlake.store.core.durability import _MOST_TO_READ as DURABILITY_MOST_TO_READ
from mqlake.store.index.found_entries import Undispatched
from mqlake.store.log.scan import SMALL as SCAN_SMALL
from mqlake.store.log.segments import _MOST_OPEN as SEGMENTS_MOST_OPEN
from mqlake.store.loop.acknowledgements import _MANY as ACKNOWLEDGEMENTS_MANY
from mqlake.store.reads.read_ahead import BYTES as READ_AHEAD_BYTES
from mqlake.store.reads.read_ahead import MESSAGES as READ_AHEAD_MESSAGES
from mqlake.store.snapshot import _ALWAYS_SCANNED as SNAPSHOT_ALWAYS_SCANNED
from mqlake.taskiq import RocketmqBroker
from tests.documents.pages import ROOT

WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 10: "ten"}

LIMITS = Limits()
CONSUMER = ConsumerSettings()
KOMBU = TransportSettings()


def defaults(function: Any) -> dict[str, Any]:
    """Return the defaults of a function's arguments."""
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters}


def kib(size: int) -> str:
    return f"{size >> 10:,} KiB"


def mib(size: int) -> str:
    return f"{size >> 20:,} MiB"


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


SENDS = defaults(Producer.__init__)
ARROW = defaults(ArrowConsumer.arrow_batches)
TASKIQ = defaults(RocketmqBroker.__init__)

FOLLOW = {each.name: each.default for each in msgspec.structs.fields(FollowOptions)}

TEXTS = {
    "broker": (
        f"| one frame; one header | {mib(LIMITS.frame)}; {kib(LIMITS.header)} |",
        f"| time from the first byte of a frame to its last | {LIMITS.frame_time:.0f} s |",
        f"of their bodies | {LIMITS.in_flight:,}; {mib(LIMITS.bodies)} |",
        f"| answers that one connection does not read | {mib(LIMITS.write_buffer)} |",
        f"| connections | {LIMITS.connections:,}, or,",
        f"| silence | {LIMITS.idle:.0f} s |",
        f"may have at most {kib(PROTOCOL_BODY_MAX_LENIENT)}. Strict JSON",
        f"takes longer than {ms(SLICES_TURN)} is done in slices",
        f"together get {ms(SLICES_ROUND)} of a round, and at most {WORDS[SLICES_AT_ONCE]} of them",
        f"of which at most {SLICES_OF_ONE} from one connection",
        f"in turn, {ms(TURNS_ROUND)} for all of them together",
        f"keeps up to {MOST_DECISIONS:,} decisions",
        f"of which each connection may add {MOST_LEARNED}",
        f"frames of more than {kib(LANE_LONGEST)}",
        f"for {REST_ROWS} connections at most, and for {REST_SHARE} of one address",
        f"A start waits {WORDS[round(REGISTRATION_FIRST)]} seconds",
        f"creates or changes a topic waits {WORDS[round(REGISTRATION_CHANGE)]} seconds",
    ),
    "consuming": (
        f"within {ms(NOTICES_DELAY)} cause a single notification",
        f"Timeouts are exact to {ms(PARKING_GRAIN)}.",
        f"not renewed for {QUEUE_LOCKS_LIFETIME // 1000} seconds",
    ),
    "pop": (
        f"at most {POP_REQUESTS_MOST_MESSAGES} messages, of at most {mib(POP_READING_MOST_BYTES)}",
        f"An `attemptId` of more than {ORDERED_LONGEST_ATTEMPT_ID} characters",
    ),
    "static-topics": (f"the number of stretches ({LOGIC_QUEUES_MAX_STRETCHES:,}) are bounded",),
    "tls": (
        f"A handshake must be complete within {LIMITS.handshake:.0f} seconds.",
        f"A header must be complete within {LIMITS.handshake:.0f} seconds",
        f"Handshakes are continued for {ms(HANDSHAKES_ROUND)} in each round",
    ),
    "name-server": (
        f"for {WORDS[BROKER_TABLE_HEARTBEAT_TIMEOUT // 60_000]} minutes, or for the timeout",
        f"at most {NAME_SERVER_NOTICES_AT_ONCE} brokers at a time",
    ),
    "replication": (
        f"first requests the last {kib(COMPARISON_OVERLAP)} that it already has",
        f"compares again every {SLAVE_LOG_DIVERGED:.0f} seconds",
        f"transferred {MASTER_TABLES_A_PAGE} entries at a time",
        f"(43) | every {FOLLOWING_TICK:.0f} seconds |",
        f"then every {FOLLOWING_FULL:.0f} seconds |",
        f"For {ACTING_GIVES_BACK:.0f} seconds the slave still serves",
        f"When a slave lacks less than {mib(IN_SYNC_WATCH_NEAR)}",
        f"at most {HA_SERVER_MOST} connections of slaves",
        f"in parts of about {mib(TABLE_PARTS_SIZE)}",
    ),
    "client": (
        f"Bodies of {kib(Compression().over)} or more are compressed",
        f"At most {SENDS['max_in_flight']:,} messages and {mib(SENDS['max_in_flight_bytes'])} are",
        f"At most {TRACER_MOST_RECORDS:,} traces wait",
        f"after `max_retries` ({CONSUMER_SETTINGS_DEFAULT_RETRIES})",
        f"within `handling_timeout` ({CONSUMER.handling_timeout / 60:.0f} minutes)",
        f"committed every {WORDS[round(CONSUMER.commit_interval)]} seconds",
        f"for `pop_invisible` seconds ({CONSUMER.pop_invisible:.0f})",
        f"of up to {ARROW['most_pulls']} pulls (`most_pulls`)",
        f"waits {ms(ARROW['wait'])} for more (`wait`)",
    ),
    "celery": (
        f"| `visibility_timeout` | {KOMBU.visibility_timeout:.0f} |",
        f"| `group` | `{KOMBU.group}` |",
        f"| `queues_per_topic` | {KOMBU.queues_per_topic} |",
        f"| `broker_eta` | {KOMBU.broker_eta} |",
        f"| `max_delay` | {KOMBU.max_delay:.0f} |",
    ),
    "taskiq": (
        f"| `topic` | `{TASKIQ['topic']}` |",
        f"| `group` | `{TASKIQ['group']}` |",
        f"| `visibility_timeout` | {TASKIQ['visibility_timeout']:.0f} |",
        f"| `prefetch` | {TASKIQ['prefetch']} |",
        f"| `queues` | {TASKIQ['queues']} |",
    ),
    "live-store": (
        f"unless {ACKNOWLEDGEMENTS_MANY} or more puts wait for the same sync",
        f"Up to {DIGEST_MOST_RECORDS} messages (and {kib(DIGEST_MOST_BYTES)})",
        f"read ahead: {READ_AHEAD_MESSAGES:,} messages, or {mib(READ_AHEAD_BYTES)}, at a time",
    ),
    "architecture": (f"at most {mib(DURABILITY_MOST_TO_READ)} and what came within a second",),
    "store-reader": (
        f"and at least the last {mib(SNAPSHOT_ALWAYS_SCANNED)} |",
        f"A scan of up to {mib(SCAN_SMALL)} of data runs in plain Python",
        f"up to {Undispatched._MOST_ENTRIES // 10**6} million of all topics together",
        f"At most {SEGMENTS_MOST_OPEN} segments are open",
    ),
    "dispatch": (f"at most {mib(ANSWERS_SEARCH_ALLOWANCE)} of bodies in vain",),
    "rebuild": (
        f"up to {mib(JOB_FILES_HELD_BYTES)} of queue entries",
        f"{mib(PARQUET_ROW_GROUP)} of columns",
    ),
    "spark-source": (f"in windows of {mib(WINDOW_DEFAULT_WINDOW)}",),
    "spark-live": (
        f"one for each {SHARES_LARGE:,} messages",
        f"a batch of up to {SEND_MOST:,} messages is sent again",
    ),
    "spark": (
        f"makes {WORDS[CLASSIC_ATTEMPTS]} attempts in all",
        f"The {WORDS[CDS_KEPT]} archives that were used last are kept",
    ),
    "follow": (
        f"or when {LAKE_OPTIONS_ENOUGH:,} messages wait",
        f"of about {LAKE_OPTIONS_BATCH_BYTES >> 30} GiB of the log",
        f"at least `--target-file-size` ({mib(FOLLOW['target_file_size'])})",
        f"after every `--compact-every` batches ({FOLLOW['compact_every']})",
        f"and {COMPACTION_LARGEST} times that size",
        f"saves less than {(1 - COMPRESSION_WORTH) * 100:.0f}% of the first",
        f"the first {kib(COMPRESSION_SAMPLE)} of a file's bodies",
        f"A task holds up to {mib(PARTITION_WRITER_GATHERED)} of rows",
    ),
    "union-read": (
        f"waiting files of a Parquet table after {WORDS[PARQUET_TABLE_LINGER // 3600]} hour",
    ),
    "object-stores": (
        f"windows of {mib(REMOTE_FILE_CHUNK)} of the log",
        f"requests {kib(REMOTE_FILE_BLOCK)} at first",
        f"up to {WORDS[OBJECT_STORES_ATTEMPTS]} times",
    ),
}


@pytest.mark.parametrize("page", TEXTS)
def test_the_figures_of_a_page(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert [each for each in TEXTS[page] if each not in text] == []
