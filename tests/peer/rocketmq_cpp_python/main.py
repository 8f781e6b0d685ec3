"""Features of rocketmq-client-cpp, which is inside the wheel of the Python package `rocketmq`.

Runs in an environment of its own, without mqlake: `main.py NAMES TOPIC... COUNT` prints one JSON
object with what happened; COUNT messages of the first topic must come. Its clients stay, and commit
their offsets, until standard input ends.
`tests/peer/test_cpp_client.py` judges it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from rocketmq.client import (
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
    RecvMessage,
    dll,
    ffi_check,
)

SECONDS = 60
"""For which a feature waits."""
PROBE = "probe"
SUCCESS, LATER = 0, 1
"""What a callback answers."""


class Listener(PushConsumer):
    """Collects messages; fails once on those whose bodies begin with "retry"."""

    def __init__(self, names, topic, expression="*", orderly=False):
        super().__init__(f"G_{topic}", orderly=orderly)
        self.consumed, self.probed, self._lock = [], set(), threading.Lock()
        self.set_namesrv_addr(names)
        # `subscribe` of the package loses the answer of a callback that fails.
        ffi_check(dll.Subscribe(self._handle, topic.encode(), expression.encode()))
        self._register_callback(self._take)
        self.start()

    def _take(self, _, handle):
        described = describe(RecvMessage(handle))
        with self._lock:
            if described["body"] == PROBE:
                self.probed.add(described["queue"])
                return SUCCESS
            self.consumed.append(described)
        is_failure = described["body"].startswith("retry") and described["times"] == 0
        return LATER if is_failure else SUCCESS

    def wait(self, count):
        """Wait for messages."""
        end = time.monotonic() + SECONDS
        while len(self.consumed) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{count} messages awaited, not {self.consumed}")
            time.sleep(0.02)


def describe(message):
    """Return what a consumer sees of a message."""
    return {
        "body": message.body.decode(),
        "tags": message.tags.decode(),
        "keys": message.keys.decode(),
        "colour": (message["colour"] or b"").decode(),
        "queue": message.queue_id,
        "times": message.reconsume_times,
        "at": int(time.time() * 1000),
    }


def new(topic, body, tags="TagA", delay=0):
    """Make a message."""
    message = Message(topic)
    message.set_body(body)
    message.set_tags(tags)
    message.set_keys(f"key of {body}")
    message.set_property("colour", "blue")
    if delay:
        message.set_delay_time_level(delay)
    return message


def probe(producer, topic, listener, queues):
    """Send until a listener reads all queues of its topic.

    A new group begins where its queues end when it asks: messages sent before are not for it.
    """
    end = time.monotonic() + SECONDS
    while len(listener.probed) < queues:
        if time.monotonic() > end:
            raise TimeoutError(f"{topic}: only queues {listener.probed} are read")
        producer.send_sync(new(topic, PROBE))
        time.sleep(0.1)


def run(names, plain, ordered, delayed, expected):
    """Send in every way, and consume by push, in order and by pull."""
    listeners = {
        "plain": Listener(names, plain, "TagA || TagB"),
        "ordered": Listener(names, ordered, orderly=True),
        "delayed": Listener(names, delayed),
    }
    producer = Producer(f"P_{plain}", timeout=1000 * SECONDS)
    producer.set_namesrv_addr(names)
    producer.start()
    for topic, (name, queues) in {
        plain: ("plain", 4),
        ordered: ("ordered", 4),
        delayed: ("delayed", 1),
    }.items():
        probe(producer, topic, listeners[name], queues)
    statuses = [producer.send_sync(new(plain, f"sync {number}")).status for number in range(8)]
    for number in range(8):
        producer.send_oneway(new(plain, f"oneway {number}", "TagB"))
    statuses.append(producer.send_sync(new(plain, "another tag", "TagC")).status)
    batch = [new(plain, f"batch {number}") for number in range(8)]
    statuses.append(producer.send_batch(batch).status)
    for number in range(6):
        for shard in range(3):
            result = producer.send_orderly(new(ordered, f"{shard} {number}"), shard)
            statuses.append(result.status)
    sent = int(time.time() * 1000)
    # Alone in its topic: a failure is one of all messages that came together.
    statuses.append(producer.send_sync(new(delayed, "retry", delay=1)).status)
    for name, count in (("plain", int(expected)), ("ordered", 18), ("delayed", 2)):
        listeners[name].wait(count)
    puller = PullConsumer(f"L_{plain}")
    puller.set_namesrv_addr(names)
    puller.start()
    pulled = [describe(message) for message in puller.pull(ordered)]
    pulled = [message for message in pulled if message["body"] != PROBE]
    consumed = {name: listener.consumed for name, listener in listeners.items()}
    return {"statuses": list(map(int, statuses)), "sent": sent, "pulled": pulled, **consumed}


def main():
    """Print what happened."""
    # What libraries print must not mix with the answer.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    answer.write(json.dumps(run(*sys.argv[1:])) + "\n")
    answer.flush()
    sys.stdin.read()
    os._exit(0)  # the client leaves threads behind


if __name__ == "__main__":
    main()
