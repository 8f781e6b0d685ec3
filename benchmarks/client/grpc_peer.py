"""RocketMQ's gRPC client for Python as a process that is measured.

Runs in an environment of its own, without mqlake (`benchmarks.client.beside_grpc`). It answers the
requests of `benchmarks.client.peer`, with the address of a proxy instead of name servers.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
)

SECONDS = 300


class Stopwatch:
    """Time, and processor time of this process, since it was started."""

    def __init__(self):
        self._begun, self._used = time.perf_counter(), time.process_time()

    def measured(self, messages):
        """Return seconds and processor seconds since the start, and the messages they were for."""
        return {
            "seconds": time.perf_counter() - self._begun,
            "cpu": time.process_time() - self._used,
            "messages": messages,
        }


class Counted(MessageListener):
    """Counts messages from the first one on."""

    def __init__(self, count):
        self._left, self._count = count, count
        self._lock, self.done = threading.Lock(), threading.Event()
        self._watch, self.answer = None, None

    def consume(self, message):  # noqa: ARG002
        """Take a message."""
        with self._lock:
            self._watch = self._watch or Stopwatch()
            self._left -= 1
            if self._left == 0:
                self.answer = self._watch.measured(self._count)
                self.done.set()
        return ConsumeResult.SUCCESS


class Peer:
    """A client with one producer, and a consumer for each backlog."""

    def __init__(self):
        self._producer = None

    def send(self, endpoint, topic, size, count, most):
        """Send messages, so many in flight."""
        producer, body, count = self._producer_of(endpoint, topic), b"x" * int(size), int(count)
        room, failures = threading.Semaphore(int(most)), []

        def done(future):
            if future.exception() is not None:
                failures.append(future.exception())
            room.release()

        watch = Stopwatch()
        for _ in range(count):
            message = Message()
            message.topic, message.body = topic, body
            room.acquire()
            producer.send_async(message).add_done_callback(done)
        for _ in range(int(most)):
            room.acquire()
        if failures:
            raise failures[0]
        return watch.measured(count)

    def push(self, endpoint, topic, group, count):
        """Consume a backlog with a listener."""
        listener = Counted(int(count))
        consumer = PushConsumer(
            _configuration(endpoint), group, listener, {topic: FilterExpression()}
        )
        consumer.startup()
        try:
            if not listener.done.wait(SECONDS):
                raise TimeoutError(f"not all messages within {SECONDS} s")
        finally:
            consumer.shutdown()
        return listener.answer

    def _producer_of(self, endpoint, topic):
        if self._producer is None:
            self._producer = Producer(_configuration(endpoint), (topic,))
            self._producer.startup()
        return self._producer


def _configuration(endpoint):
    return ClientConfiguration(endpoint, Credentials(), request_timeout=30)


def main():
    """Answer until the input ends."""
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    peer = Peer()
    requests = {"send": peer.send, "push": peer.push}
    for line in sys.stdin:
        name, *words = line.rstrip("\n").split("\t")
        try:
            answer = requests[name](*words)
        except Exception as error:  # noqa: BLE001 (whoever asked is told)
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    os._exit(0)  # the client leaves threads behind


if __name__ == "__main__":
    main()
