"""mqlake's live store as a process that is measured: `python -m benchmarks.live_store.peer`.

Answers the same requests as the JVM of `tests/peer/rocketmq/`, with the same words.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from benchmarks.live_store.puts import PutLoad, put_waiting
from mqlake.errors import MqlakeError
from mqlake.store.append.message import Message
from mqlake.store.blocking import BlockingMessageStore
from mqlake.store.reads.live_result import LiveGetResult

A_CALL = 32
QUIET_SECONDS = 2

FORMS: dict[str, Callable[[LiveGetResult], Any]] = {
    "bytes": lambda result: result.raw,
    "decoded": lambda result: result.records,
    "arrow": lambda result: result.to_arrow(),
}
SUMS: dict[str, Callable[[list[Any]], int]] = {
    "bytes": lambda answers: sum(map(len, chain.from_iterable(answers))),
    "decoded": lambda answers: sum(map(_QUEUE_OFFSET, chain.from_iterable(answers))),
    "arrow": lambda answers: _sum_of_column([batch.column("queueOffset") for batch in answers]),
}
"""Sizes of messages, or their queue offsets, of several answers: what shows that they are right."""

SUMMED = 512
"""Messages after which answers are added up and released. Adding up must cost little compared with
reading, and a program that uses each answer does not keep many of them either."""

_QUEUE_OFFSET = attrgetter("queue_offset")

Answer = dict[str, Any]


class Peer:
    """At most one open store."""

    def __init__(self) -> None:
        self._path = ""
        self._settings: dict[str, object] = {}
        self._open_store: BlockingMessageStore | None = None

    @property
    def store(self) -> BlockingMessageStore:
        assert self._open_store is not None, "no store is open"
        return self._open_store

    def open(self, path: str, settings: str) -> Answer:
        """Open a store, until all is dispatched."""
        self._path, self._settings = path, json.loads(settings)
        begin = time.perf_counter()
        self._open_store = BlockingMessageStore.open(path, self._settings)
        seconds = time.perf_counter() - begin
        queues = self.store.core.queues
        ranges = [(queues.min_offset(*each), queues.max_offset(*each)) for each in queues.queues()]
        return {"seconds": seconds, "messages": sum(end - start for start, end in ranges)}

    def close(self) -> Answer:
        """Close the store."""
        self.store.close()
        self._open_store = None
        return {}

    def put_load(self, load: str) -> Answer:
        """Put a load of messages."""
        words = json.loads(load)
        if waiting := words.pop("waiting", 0):
            self.close()
            answer = put_waiting(self._path, self._settings, waiting, **words)
            self.open(self._path, json.dumps(self._settings))
            return answer
        return PutLoad(self.store, **words).run()

    def scan(self, way: str) -> Answer:
        """Pull all queues in one of FORMS, which "-checked" (the CRC of all bodies is checked) and
        the number of messages per call may follow."""
        name, *more = way.split("-")
        crc = "checked" in more
        a_call = next((int(word) for word in more if word.isdigit()), A_CALL)
        store, form, add = self.store, FORMS[name], SUMS[name]
        answers: list[Any] = []
        messages = total = 0
        begin = time.perf_counter()
        for topic in store.topics():
            for queue_id in store.queues(topic):
                offset, end = store.queue(topic, queue_id)
                while offset < end:
                    result = store.get(topic, queue_id, offset, a_call, crc=crc)
                    assert len(result), (result.status, topic, queue_id, offset)
                    messages += len(result)
                    answers.append(form(result))
                    if len(answers) * a_call >= SUMMED:
                        total += add(answers)
                        answers.clear()
                    offset = result.next_offset
        total += add(answers)
        return {"seconds": time.perf_counter() - begin, "messages": messages, "sum": total}

    def roll(self, count: str) -> Answer:
        """Put messages until so many more files of the log have begun; count what is open."""
        log = self.store.core.log
        message = Message("topic-0", bytes(log.file_size // 2))
        for _ in range(int(count)):
            end = log.end // log.file_size
            while log.end // log.file_size == end:
                self.store.put(message)
        with self.store.lock:
            self.store.core.durability.checkpoint()
        time.sleep(QUIET_SECONDS)  # a sync that another thread began holds its files
        mappings = Path("/proc/self/maps").read_bytes().count(b"\n")
        return {"descriptors": len(os.listdir("/proc/self/fd")), "mappings": mappings}


def _sum_of_column(chunks: list[Any]) -> int:
    import pyarrow as pa

    return int(pa.chunked_array(chunks, pa.int64()).to_numpy().sum())


def main() -> None:
    """Answer until the input ends."""
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    peer = Peer()
    requests: dict[str, Callable[..., Answer]] = {
        "open": peer.open,
        "put-load": peer.put_load,
        "scan": peer.scan,
        "roll": peer.roll,
        "close": peer.close,
    }
    for line in sys.stdin:
        name, *words = line.rstrip("\n").split("\t")
        try:
            answer = requests[name](*words)
        except MqlakeError as error:
            answer = {"error": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
