"""The section of docs/reliability.md that a run writes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.peer.spark_cluster.run import Outcome
from tests.reliability import PATH, machine, versions, write_section

TITLE = "Streams on a Spark cluster"

_INTRODUCTION = """\
Written by `python -m tests.peer.spark_cluster --nightly`.

A standalone Spark cluster streams a topic from RocketMQ's broker 5.5.0 and mqlake's broker into a
table of Delta Lake, through their name server, while messages are sent. Workers with their
executors, both brokers, and the driver are killed (`kill -9`) one at a time and started again, each
a commit of the table after the last one. Then the table is streamed back into another topic, while
a worker and both brokers are killed once more.

In the end the table must have each message that the brokers' store directories have, once, with its
key and body; each acknowledged message must be there; and each row must have been sent back, at
least once.
"""


def write(outcome: Outcome, workers: int, seed: int, seconds: float, path: Path = PATH) -> None:
    """Write the section."""
    write_section(TITLE, _lines(outcome, workers, seed, seconds), path)


def _lines(outcome: Outcome, workers: int, seed: int, seconds: float) -> Iterator[str]:
    yield _INTRODUCTION
    yield (
        f"**{outcome.kills.total():,} kills, {outcome.violations} violations**, on "
        f"{datetime.now(UTC):%Y-%m-%d}, in {seconds / 60:.0f} minutes."
    )
    yield ""
    yield f"Seed {seed}; on {machine()}. {versions()}, pyspark {version('pyspark')}."
    yield ""
    yield (
        "| workers | workers killed | Java's broker | mqlake's broker | drivers | messages stored "
        "| acknowledged | commits | lost | doubled | wrong | not sent back | sent back again |"
    )
    yield f"| {' | '.join(['---:'] * 13)} |"
    killed = [outcome.kills[victim] for victim in ("worker", "java", "ours", "driver")]
    counts = [outcome.stored, outcome.acknowledged, outcome.commits]
    found = (outcome.lost, outcome.doubled, outcome.wrong, outcome.not_sent_back)
    numbers = [workers, *killed, *counts, *map(len, found), outcome.repeated]
    yield f"| {' | '.join(f'{number:,}' for number in numbers)} |"
    for names in found:
        yield from (f"- violation: {what}" for what in names)
