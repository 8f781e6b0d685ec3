"""The figures in pages are the constants and defaults of the code."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

from mqlake.arrow.consumer import ArrowConsumer
from mqlake.broker import parking
from mqlake.broker.acting import family as acting
from mqlake.broker.pop import ordered
from mqlake.broker.pop import reading as pop_reading
from mqlake.broker.pop import requests as pop_requests
from mqlake.broker.pull import patterns
from mqlake.broker.send import singles
from mqlake.broker.slave import following
from mqlake.broker.state import queue_locks
from mqlake.broker.state.clients import notices
from mqlake.broker.state.registration import registration
from mqlake.client.consumer import settings as consumer_settings
from mqlake.client.consumer.settings import ConsumerSettings
from mqlake.client.producer.outgoing import Compression
from mqlake.client.producer.producer import Producer
from mqlake.client.trace import tracer
from mqlake.dispatch import answers, digest, window
from mqlake.jobs.export import parquet
from mqlake.jobs.queues import files as job_files
from mqlake.kombu.settings import TransportSettings
from mqlake.lake import options as lake_options
from mqlake.lake.files import compaction, compression, partition_writer
from mqlake.lake.tables import parquet_table
from mqlake.namesrv import broker_table
from mqlake.namesrv import notices as name_server_notices
from mqlake.protocol import body as protocol_body
from mqlake.protocol import logic_queues
from mqlake.query.live import shares
from mqlake.remoting import slices, turns
from mqlake.remoting.limits import Limits
from mqlake.remoting.tls import handshakes
from mqlake.replication import comparison, ha_server, master_tables, slave_log, table_parts
from mqlake.replication.auto_switch import in_sync_watch
from mqlake.spark import cds, classic
from mqlake.spark.live import send
from mqlake.storage.remote import object_stores, remote_file
from mqlake.store import snapshot
from mqlake.store.core import durability
from mqlake.store.index.found_entries import Undispatched
from mqlake.store.log import scan, segments
from mqlake.store.loop import acknowledgements
from mqlake.store.reads import read_ahead
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

FOLLOW = {each.name: each.default for each in msgspec.structs.fields(lake_options.FollowOptions)}

TEXTS = {
    "broker": (
        f"| one frame; one header | {mib(LIMITS.frame)}; {kib(LIMITS.header)} |",
        f"| time from the first byte of a frame to its last | {LIMITS.frame_time:.0f} s |",
        f"of their bodies | {LIMITS.in_flight:,}; {mib(LIMITS.bodies)} |",
        f"| answers that one connection does not read | {mib(LIMITS.write_buffer)} |",
        f"| connections | {LIMITS.connections:,}, or,",
        f"| silence | {LIMITS.idle:.0f} s |",
        f"may have at most {kib(protocol_body.MAX_LENIENT)}. Strict JSON",
        f"takes longer than {ms(slices.TURN)} is done in slices",
        f"together get {ms(slices.ROUND)} of a round, and at most {WORDS[slices.AT_ONCE]} of them",
        f"of which at most {slices.OF_ONE} from one connection",
        f"in turn, {ms(turns.ROUND)} for all of them together",
        f"of up to {patterns.MOST_QUEUES} queues each",
        f"frames of more than {kib(singles._LONGEST)}",
        f"A start waits {WORDS[round(registration._FIRST)]} seconds",
        f"creates or changes a topic waits {WORDS[round(registration._CHANGE)]} seconds",
    ),
    "consuming": (
        f"within {ms(notices._DELAY)} cause a single notification",
        f"Timeouts are exact to {ms(parking.GRAIN)}.",
        f"not renewed for {queue_locks.LIFETIME // 1000} seconds",
    ),
    "pop": (
        f"at most {pop_requests._MOST_MESSAGES} messages, of at most {mib(pop_reading.MOST_BYTES)}",
        f"An `attemptId` of more than {ordered._LONGEST_ATTEMPT_ID} characters",
    ),
    "static-topics": (f"the number of stretches ({logic_queues.MAX_STRETCHES:,}) are bounded",),
    "tls": (
        f"A handshake must be complete within {LIMITS.handshake:.0f} seconds.",
        f"Handshakes are continued for {ms(handshakes._ROUND)} in each round",
    ),
    "name-server": (
        f"for {WORDS[broker_table.HEARTBEAT_TIMEOUT // 60_000]} minutes, or for the timeout",
        f"at most {name_server_notices._AT_ONCE} brokers at a time",
    ),
    "replication": (
        f"first requests the last {kib(comparison.OVERLAP)} that it already has",
        f"compares again every {slave_log._DIVERGED:.0f} seconds",
        f"transferred {master_tables._A_PAGE} entries at a time",
        f"(43) | every {following.TICK:.0f} seconds |",
        f"then every {following.FULL:.0f} seconds |",
        f"For {acting.GIVES_BACK:.0f} seconds the slave still serves",
        f"When a slave lacks less than {mib(in_sync_watch._NEAR)}",
        f"at most {ha_server._MOST} connections of slaves",
        f"in parts of about {mib(table_parts.SIZE)}",
    ),
    "client": (
        f"Bodies of {kib(Compression().over)} or more are compressed",
        f"At most {SENDS['max_in_flight']:,} messages and {mib(SENDS['max_in_flight_bytes'])} are",
        f"At most {tracer.MOST_RECORDS:,} traces wait",
        f"after `max_retries` ({consumer_settings._DEFAULT_RETRIES})",
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
        f"unless {acknowledgements._MANY} or more puts wait for the same sync",
        f"Up to {digest.MOST_RECORDS} messages (and {kib(digest.MOST_BYTES)})",
        f"read ahead: {read_ahead.MESSAGES:,} messages, or {mib(read_ahead.BYTES)}, at a time",
    ),
    "architecture": (f"at most {mib(durability._MOST_TO_READ)} and what came within a second",),
    "store-reader": (
        f"and at least the last {mib(snapshot._ALWAYS_SCANNED)} |",
        f"A scan of up to {mib(scan.SMALL)} of data runs in plain Python",
        f"up to {Undispatched._MOST_ENTRIES // 10**6} million of all topics together",
        f"At most {segments._MOST_OPEN} segments are open",
    ),
    "dispatch": (f"at most {mib(answers.SEARCH_ALLOWANCE)} of bodies in vain",),
    "rebuild": (
        f"up to {mib(job_files._HELD_BYTES)} of queue entries",
        f"{mib(parquet._ROW_GROUP)} of columns",
    ),
    "spark-source": (f"in windows of {mib(window.DEFAULT_WINDOW)}",),
    "spark-live": (
        f"one for each {shares.LARGE:,} messages",
        f"a batch of up to {send._MOST:,} messages is sent again",
    ),
    "spark": (
        f"makes {WORDS[classic.ATTEMPTS]} attempts in all",
        f"The {WORDS[cds.KEPT]} archives that were used last are kept",
    ),
    "follow": (
        f"or when {lake_options.ENOUGH:,} messages wait",
        f"of about {lake_options.BATCH_BYTES >> 30} GiB of the log",
        f"at least `--target-file-size` ({mib(FOLLOW['target_file_size'])})",
        f"after every `--compact-every` batches ({FOLLOW['compact_every']})",
        f"and {compaction.LARGEST} times that size",
        f"saves less than {(1 - compression.WORTH) * 100:.0f}% of the first",
        f"the first {kib(compression._SAMPLE)} of a file's bodies",
        f"A task holds up to {mib(partition_writer.GATHERED)} of rows",
    ),
    "union-read": (
        f"waiting files of a Parquet table after {WORDS[parquet_table.LINGER // 3600]} hour",
    ),
    "object-stores": (
        f"windows of {mib(remote_file._CHUNK)} of the log",
        f"requests {kib(remote_file._BLOCK)} at first",
        f"up to {WORDS[object_stores._ATTEMPTS]} times",
    ),
}


@pytest.mark.parametrize("page", TEXTS)
def test_the_figures_of_a_page(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert [each for each in TEXTS[page] if each not in text] == []
