"""`python -m tests.peer.live_writer STORE SETTINGS SEED COUNT`: put, and end as kill -9 does.

Writes mqlake's answers to standard output as one line of JSON before it ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from mqlake.store.append.message import MessageBatch
from mqlake.store.blocking import BlockingMessageStore
from tests.peer.workload import Answer, Put, puts, to_answer, to_message


def put_all(store: BlockingMessageStore, described: list[Put]) -> list[Answer]:
    """Put described messages one after the other; return the answers in Java's words."""
    answers: list[Answer] = []
    for message in map(to_message, described):
        is_batch = isinstance(message, MessageBatch)
        answers.append(to_answer(store.put_batch(message) if is_batch else store.put(message)))
    return answers


def main() -> None:
    path, settings, seed, count = sys.argv[1:]
    store = BlockingMessageStore.open(path, json.loads(settings))
    answers = put_all(store, puts(int(seed), int(count)))
    sys.stdout.write(json.dumps(answers))
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
