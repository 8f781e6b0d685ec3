"""mqlake's side of a measurement: `python -m benchmarks.python_peer local|spark`.

Answers the requests of `benchmarks.peer.Peer`. What is timed is a job as the command runs it, from
opening the store; the process, its imports and its Spark session stay.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mqlake.dispatch.derived.index_entries import lookup_many
from mqlake.dispatch.derived.key_hashes import key_hashes
from mqlake.errors import MqlakeError
from mqlake.formats.dialect import Dialect
from mqlake.jobs.engine import Engine
from mqlake.jobs.rebuild import rebuild as rebuild_job
from mqlake.jobs.verify import verify as verify_job
from mqlake.storage.local import LocalDirectory
from mqlake.store.index.index_files import IndexFiles

LATEST = (1 << 63) - 1
MOST_RESULTS = 32

Answer = dict[str, Any]


def rebuild(engine: Engine, store: str, output: str) -> Answer:
    """Make the derived files of a store, as RocketMQ 5.5 would by default, in a new directory."""
    begin = time.perf_counter()
    report = rebuild_job(Path(store), engine, out=Path(output), dialect=Dialect.V5_5)
    return {"seconds": time.perf_counter() - begin, "messages": report.records}


def verify(engine: Engine, store: str) -> Answer:
    """Check a whole store."""
    begin = time.perf_counter()
    report = verify_job(Path(store), engine)
    return {"seconds": time.perf_counter() - begin, "messages": report.records, "ok": report.ok}


def lookup(_: Engine, store: str, keys: str) -> Answer:
    """Look up each line of a file of keys: once all in one call, then each with its own watch."""
    (file,) = IndexFiles.open(LocalDirectory(Path(store))).files
    texts = Path(keys).read_text().splitlines()
    begin = time.perf_counter()
    hashes = key_hashes(texts)
    lookup_many(
        file.view, file.sizes.slots, file.sizes.max_entries, hashes, 0, LATEST, MOST_RESULTS
    )
    together = time.perf_counter() - begin
    taken: list[int] = []
    offsets: list[int] = []
    for text in texts:
        begin = time.perf_counter_ns()
        found = [entry.physical_offset for entry in file.entries(text)]
        taken.append(time.perf_counter_ns() - begin)
        offsets += found
    middle = statistics.median(taken) / 1e9
    return {"seconds": together, "median": middle, "found": len(offsets), "offsetSum": sum(offsets)}


REQUESTS: dict[str, Callable[..., Answer]] = {
    "rebuild": rebuild,
    "verify": verify,
    "lookup": lookup,
}


def main() -> None:
    """Answer until the input ends."""
    # What libraries and child processes print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with _engine(sys.argv[1]) as engine:
        for line in sys.stdin:
            name, *words = line.rstrip("\n").split("\t")
            try:
                answer = REQUESTS[name](engine, *words)
            except MqlakeError as error:
                answer = {"error": str(error)}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


@contextmanager
def _engine(name: str) -> Iterator[Engine]:
    if name == "local":
        from mqlake.jobs.local import LocalEngine

        yield LocalEngine()
    else:
        from mqlake.spark.session import open_session

        with open_session() as session:
            yield session.engine


if __name__ == "__main__":
    main()
