"""An hour of messages into a table at default settings: `python -m tests.spark.follow.hour`.

A process puts 1,000 messages a second over 20 topics into a store. At the same time, one
`mqlake follow` for each format brings them into a table. Afterwards each table is maintained,
checked, deleted and built again from the log. With `--nightly`, the figures go to docs/follow.md.
`--minutes` shortens the run, and the target size of files with it; nothing else differs from the
defaults.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from mqlake.lake.options import FollowOptions, Format
from mqlake.spark.options.reference import make_table, with_tables
from mqlake.spark.session import open_session
from mqlake.storage.local import LocalDirectory
from mqlake.store import BlockingMessageStore, Message, StoreReader
from mqlake.store.log.segments import open_log
from tests.lake.tables.tables import data_files, iceberg
from tests.reliability import machine, versions

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "follow.md"
RATE = 1000
TOPICS = 20
BODY = 1024
TICK = 0.05
FORMATS = (Format.DELTA, Format.ICEBERG)

MOST_COMMITS = 120
MOST_LAG = 90.0
LEAST_IN_LARGE = 0.9
LEAST_REBUILD = 0.5
NEAR = 0.95
"""Share of the target size from which a file counts as being of that size."""


class Outcome(msgspec.Struct):
    """What one run came to.

    Attributes:
        commits: versions or snapshots of the table when the hour was over.
        lag: seconds between the oldest message of a batch and the commit of it, the longest.
        in_large: share of bytes in files of the target size after maintenance, of all topics and
            days that fill at least one.
        rebuild, read: messages a second, without the start of Spark.
        start: seconds of the same command when there is nothing to do.
    """

    format: Format
    minutes: float
    messages: int
    target: int
    commits: int
    lag: float
    files: int
    in_large: float
    rebuild: float
    read: float
    start: float
    is_whole: bool

    @property
    def violations(self) -> list[str]:
        """What is not as it should be; commits are compared by the hour."""
        by_hour = self.commits * 60 / self.minutes
        found = {
            f"{self.commits} commits in {self.minutes:g} minutes": by_hour <= MOST_COMMITS,
            f"a lag of {self.lag:.1f} s": self.lag <= MOST_LAG,
            f"{self.in_large:.0%} of bytes in large files": self.in_large >= LEAST_IN_LARGE,
            f"rebuilt at {self.rebuild / self.read:.2f} x the read rate": (
                self.rebuild >= LEAST_REBUILD * self.read
            ),
            "the check found a difference": self.is_whole,
        }
        return [what for what, holds in found.items() if not holds]


def produce(path: Path, minutes: float, rate: int) -> None:
    """Put messages at a steady rate; what was missed for want of time is caught up."""
    chance = random.Random(0)
    start, sent = time.monotonic(), 0
    with BlockingMessageStore.open(path) as store:
        while sent < minutes * 60 * rate:
            due = min(int((time.monotonic() - start) * rate), int(minutes * 60 * rate))
            for number in range(sent, due):
                text = b'{"order": %d, "amount": %d, "note": "' % (number, chance.randrange(10_000))
                body = text + chance.randbytes(BODY - len(text) - 2) + b'"}'
                topic, key = f"Topic{number % TOPICS:02}", f"order-{number}"
                store.put(Message(topic, body, queue_id=number // TOPICS % 4, tags="T", keys=[key]))
            sent = due
            time.sleep(TICK)


def run(scratch: Path, formats: list[Format], minutes: float, rate: int) -> list[Outcome]:
    """Return what came of one run, in which a table of each format follows the same store."""
    store = scratch / "store"
    target = max(1 << 20, int(_default_target() * min(1.0, minutes / 60)))
    commands = [_follow(store, one, scratch / one.value, target) for one in formats]
    sender = subprocess.Popen(
        [sys.executable, "-m", __spec__.name, "--produce", store, f"--minutes={minutes}",
         f"--rate={rate}"],
        cwd=ROOT,
    )  # fmt: skip
    while not (store / "commitlog").is_dir():
        time.sleep(0.1)
    followers = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    try:
        sender.wait()
        end = _log_end(store)
        while any(_committed(scratch / one.value)[0] < end for one in formats):
            assert all(one.poll() is None for one in followers), "mqlake follow ended"
            time.sleep(1)
    finally:
        sender.kill()
        for one in followers:
            one.send_signal(signal.SIGTERM)
        for one in followers:
            one.wait()
    read = _read_rate(store)
    return [_outcome(one, scratch / one.value, command, minutes, target, read)
            for one, command in zip(formats, commands, strict=True)]  # fmt: skip


def _outcome(
    format_: Format, table: Path, command: list[str], minutes: float, target: int, read: float
) -> Outcome:
    """Maintain and check a table, and build it again."""
    commits, lag = _commits(format_, table), _committed(table)[1]
    subprocess.run([*command, "--once"], cwd=ROOT, check=True)
    files = (Path(name.removeprefix("file://")) for name in data_files(format_, table))
    sizes: defaultdict[Path, list[int]] = defaultdict(list)
    for file in files:
        sizes[file.parent].append(file.stat().st_size)
    checked = subprocess.run([*command, "--check"], cwd=ROOT, check=False)
    shutil.rmtree(table)
    report, idle = _once(command), _once(command)
    return Outcome(
        format=format_,
        minutes=minutes,
        messages=report["messages"],
        target=target,
        commits=commits,
        lag=lag,
        files=sum(map(len, sizes.values())),
        in_large=_in_large(sizes.values(), target),
        rebuild=report["messages"] / (report["seconds"] - idle["seconds"]),
        read=read,
        start=idle["seconds"],
        is_whole=checked.returncode == 0,
    )


def _in_large(partitions: Iterable[list[int]], target: int) -> float:
    """Return the share of bytes in files of the target size.

    A file has messages of one topic and one day: a day that has just begun fills none.
    """
    sizes = [size for each in partitions if sum(each) >= target for size in each]
    return sum(size for size in sizes if size >= NEAR * target) / sum(sizes)


def _once(command: list[str]) -> dict[str, Any]:
    """Return the report of a run that ends when it has caught up."""
    done = subprocess.run([*command, "--once"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def _default_target() -> int:
    fields = msgspec.structs.fields(FollowOptions)
    return next(int(field.default) for field in fields if field.name == "target_file_size")


def _follow(store: Path, format_: Format, table: Path, target: int) -> list[str]:
    command = [sys.executable, "-m", "mqlake", "follow", str(store), "--to", format_.value]
    return [*command, "--out", str(table), f"--target-file-size={target}", "--json",
            "--no-progress"]  # fmt: skip


def _log_end(store: Path) -> int:
    with StoreReader.open(store) as reader:
        return reader.max_offset


def _committed(table: Path) -> tuple[int, float]:
    """Return up to where the log is in the table, and the longest that a message waited (s)."""
    checkpoint = table / "_mqlake" / "checkpoint"
    ends: dict[int, int] = {}
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        text = path.read_text().strip().splitlines()
        ends[int(path.name)] = json.loads(text[-1])["physicalOffset"] if text else 0
    done = {
        int(path.name): path.stat().st_mtime for path in (checkpoint / "commits").glob("[0-9]*")
    }
    last = max(done, default=-1)
    if last < 0:
        return 0, 0.0
    identity = json.loads((checkpoint / "mqlake-follow.json").read_bytes())
    longest = 0.0
    log = open_log(LocalDirectory(identity["store"]))
    for number, moment in done.items():
        begin = identity["begin"]["physicalOffset"] if number == 0 else ends.get(number - 1)
        found = None if begin is None else log.record(begin)
        if found is not None:
            longest = max(longest, moment - found.store_timestamp / 1000)
    log.close()
    return ends[last], longest


def _commits(format_: Format, table: Path) -> int:
    if format_ is Format.DELTA:
        from deltalake import DeltaTable

        return DeltaTable(table).version()
    return len(iceberg(table).metadata.snapshots)


def _read_rate(store: Path) -> float:
    """Return how many messages a second Spark reads from a store in all columns."""
    with open_session() as session:
        frame = session.spark.read.format("rocketmq").load(str(store))
        rates: list[float] = []
        for _ in range(2):  # the first one starts the workers
            start = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            rates.append(time.perf_counter() - start)
        return frame.count() / min(rates)


def write(outcomes: list[Outcome], rate: int, page: Path = PAGE) -> None:
    """Write the figures into the page."""
    head = ("table", "minutes", "messages", "target size", "commits", "longest lag", "files",
            "bytes in files of that size", "start", "rebuilt", "of the read rate",
            "check")  # fmt: skip
    rows = [
        (
            one.format.value,
            f"{one.minutes:g}",
            f"{one.messages:,}",
            f"{one.target / (1 << 20):.0f} MiB",
            str(one.commits),
            f"{one.lag:.0f} s",
            str(one.files),
            f"{one.in_large:.0%}",
            f"{one.start:.1f} s",
            f"{one.rebuild:,.0f} msg/s",
            f"{one.rebuild / one.read:.2f}",
            "each message once" if one.is_whole else "differs",
        )
        for one in outcomes
    ]
    what = (
        f"{rate:,} messages of {BODY:,} bytes a second over {TOPICS} topics, on "
        f"{datetime.now(UTC):%Y-%m-%d}; {machine()}, load {os.getloadavg()[1]:.1f}. {versions()}.\n"
        '"Start" is the duration of the same command if there is nothing to do. The rates exclude '
        "it: Spark has started before the read rate is measured.\n"
    )
    table = what + "\n" + make_table(head, rows)
    page.write_text(with_tables(page.read_text(), {"measured": table}))


def main() -> int:
    """Return 0 if everything is as it should be, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.follow.hour")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("--format", choices=[*FORMATS], help="only this one")
    parser.add_argument("--produce", type=Path, help="put messages into this store, and stop")
    parser.add_argument("--nightly", action="store_true", help="writes docs/follow.md")
    arguments = parser.parse_args()
    if arguments.produce is not None:
        produce(arguments.produce, arguments.minutes, arguments.rate)
        return 0
    formats = [Format(arguments.format)] if arguments.format else [*FORMATS]
    with tempfile.TemporaryDirectory() as scratch:
        outcomes = run(Path(scratch), formats, arguments.minutes, arguments.rate)
    for one in outcomes:
        print(one, one.violations, file=sys.stderr, flush=True)
    if arguments.nightly:
        write(outcomes, arguments.rate)
    return 1 if any(one.violations for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
