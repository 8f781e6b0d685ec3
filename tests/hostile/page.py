"""The section of docs/reliability.md that a run of hostile inputs writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from tests.hostile.fleet import Tally, describe
from tests.hostile.targets import TARGETS
from tests.hostile.worker import ADDRESS_SPACE, FACTOR, HANG, SLACK
from tests.reliability import PATH, machine, versions, write_section

TITLE = "Hostile input"

_INTRODUCTION = """\
Written by `python -m tests.hostile --nightly`.

Real records and stores of RocketMQ are mutated: lengths, magic numbers, offsets, counts and links
are set to boundary values; bits are flipped; ranges are zeroed, duplicated, removed, truncated, and
overwritten with parts of other records; bodies imitate records; properties have thousands of parts;
topics are named `../../x`; chains are circular; files are removed, renamed and added. Then the code
that reads them is run. So are batches, logs and partitions of Kafka, and batches that decompress to
many times their size; and remoting frames, and requests of all codes with hostile fields and
bodies, sent to running servers.
"""

_COUNTING = f"""\
### What counts

An input is one mutated record, batch or file. A segment of eight records of which five were mutated
counts as five. A store counts as one, however many of its files were changed, and one more for each
mutated record in it. Each input is made from a seed, so that a violation can be repeated:
`python -m tests.hostile --target NAME --seed N`.

A violation is any exception that the interface does not name, an answer that contradicts the bytes,
two implementations that disagree, a process that dies, a case that takes more than {HANG} seconds,
or one that takes more memory than {SLACK >> 20} MiB plus {FACTOR} times the size of its inputs
(allocating {ADDRESS_SPACE >> 30} GiB fails at once). Bounds-checked means that the kernels check
each load and store (`MQLAKE_BOUNDSCHECK=1`).
"""


def write(
    tallies: Mapping[str, Tally], seed: int, seconds: float, workers: int, path: Path = PATH
) -> None:
    """Write the section."""
    write_section(TITLE, _lines(tallies, seed, seconds, workers), path)


def _lines(tallies: Mapping[str, Tally], seed: int, seconds: float, workers: int) -> Iterator[str]:
    inputs = sum(tally.inputs for tally in tallies.values())
    failures = [failure for tally in tallies.values() for failure in tally.failures]
    yield _INTRODUCTION
    yield f"**{inputs:,} inputs, {len(failures)} violations**, on {datetime.now(UTC):%Y-%m-%d}."
    yield ""
    yield f"Seed {seed}; {seconds / 60:.1f} minutes in {workers} processes on {machine()}."
    yield f"{versions()}."
    yield ""
    yield "| target | inputs | violations | slowest case | most memory of a case |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, tally in tallies.items():
        yield (
            f"| `{name}` | {tally.inputs:,} | {len(tally.failures)} | {tally.slowest:.2f} s"
            f" | {tally.largest / (1 << 20):.1f} MiB |"
        )
    yield ""
    yield _COUNTING
    yield "### Targets"
    yield ""
    for name, tally in tallies.items():
        yield f"- **{name}**: {TARGETS[name].says}"
        if tally.seen:
            met = ", ".join(f"{what} {count:,}" for what, count in tally.seen.most_common())
            yield f"  Outcomes: {met}."
    if failures:
        yield "\n### Violations\n"
        for failure in failures:
            yield f"```\n{describe(failure)}\n```"
