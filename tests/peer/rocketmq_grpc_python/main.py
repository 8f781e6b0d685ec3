"""Features of RocketMQ's gRPC client for Python (rocketmq-python-client), all at the same time.

Runs in an environment of its own, without mqlake: `main.py ENDPOINT PREFIX` prints one JSON object
with what happened in each feature. `tests/peer/test_grpc_clients.py` judges it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

SECONDS = 150
"""For which a feature waits."""


class Listener(MessageListener):
    """Collects messages; fails once on those whose bodies begin with "retry"."""

    def __init__(self):
        self.consumed, self._lock = [], threading.Lock()

    def consume(self, message):
        """Take a message, or fail."""
        described = describe(message)
        with self._lock:
            self.consumed.append(described)
        is_failure = described["body"].startswith("retry") and described["attempt"] == 1
        return ConsumeResult.FAILURE if is_failure else ConsumeResult.SUCCESS

    def wait(self, count):
        """Wait for messages, each attempt of which counts once."""
        end = time.monotonic() + SECONDS
        while len(found := {(each["body"], each["attempt"]) for each in self.consumed}) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{len(found)} of {count} messages")
            time.sleep(0.02)


def describe(message):
    """Return what a consumer sees of a message."""
    return {
        "body": message.body.decode(),
        "id": message.message_id,
        "tag": message.tag,
        "keys": list(message.keys),
        "properties": dict(message.properties),
        "group": message.message_group,
        "attempt": message.delivery_attempt,
        "words": len(message.receipt_handle.split(" ")),
        "at": int(time.time() * 1000),
    }


class Checker(TransactionChecker):
    """Says what becomes of transactions that nobody ended."""

    def __init__(self):
        self.asked = []

    def check(self, message):
        """Commit those whose bodies say so."""
        body = message.body.decode()
        self.asked.append(body)
        if not body.startswith("late"):  # its end is on the way
            return TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED
        if body.startswith("late commit"):
            return TransactionResolution.COMMIT
        return TransactionResolution.ROLLBACK

    def late(self):
        """Return those that nobody ended; RocketMQ may ask for those that were just ended, too."""
        return {body for body in self.asked if body.startswith("late")}


class Features:
    """Each feature has a topic and a group of its own."""

    def __init__(self, endpoint, prefix):
        self._configuration = ClientConfiguration(endpoint, Credentials(), request_timeout=30)
        self._prefix = prefix

    def send(self):
        """Send in every way, consume by tags, and fail once."""
        topic = self._topic("send")
        consumer, listener = self._push(topic, FilterExpression("TagA || TagB"))
        producer = self._producer(topic)
        sent = {}
        for number in range(8):
            body = f"sync {number}"
            sent[body] = producer.send(new(topic, body, "TagA", f"key{number}")).message_id
        futures = {
            body: producer.send_async(new(topic, body, "TagB"))
            for body in (f"async {number}" for number in range(8))
        }
        sent |= {body: future.result().message_id for body, future in futures.items()}
        for tag, body in (("TagC", "another tag"), ("TagA", "retry"), ("TagA", "large " * 2000)):
            sent[body] = producer.send(new(topic, body, tag)).message_id
        listener.wait(19)
        consumer.shutdown()
        producer.shutdown()
        return {"sent": sent, "consumed": listener.consumed}

    def simple(self):
        """Receive, acknowledge some, hide others for longer or shorter, leave one."""
        topic = self._topic("simple")
        consumer = SimpleConsumer(
            self._configuration, f"G_{topic}", {topic: FilterExpression()}, await_duration=5
        )
        consumer.startup()  # first: it does not wait until the proxy knows of it
        producer = self._producer(topic)
        for number in range(5):
            producer.send(new(topic, str(number)))
        messages = self._receive(consumer, 5)
        first = [describe(message) for message in messages]
        by_body = {message.body.decode(): message for message in messages}
        for body in ("0", "1"):
            consumer.ack(by_body[body])
        consumer.change_invisible_duration(by_body["2"], 1)
        consumer.change_invisible_duration(by_body["3"], 300)
        consumer.ack(by_body["3"])
        again = self._receive(consumer, 2, acknowledges=True)
        left = consumer.receive(32, 10)
        consumer.shutdown()
        producer.shutdown()
        return {
            "first": first,
            "again": [describe(message) for message in again],
            "left": [message.body.decode() for message in left],
        }

    def delay(self):
        """Send messages that are to be delivered later."""
        topic = self._topic("delay")
        consumer, listener = self._push(topic)
        producer = self._producer(topic)
        due = {}
        for seconds in (3, 5):
            message = new(topic, f"after {seconds}")
            message.delivery_timestamp = int(time.time()) + seconds
            due[f"after {seconds}"] = message.delivery_timestamp * 1000
            producer.send(message)
        listener.wait(2)
        consumer.shutdown()
        producer.shutdown()
        return {"due": due, "consumed": listener.consumed}

    def fifo(self):
        """Send messages of groups, each of which is consumed in order."""
        topic = self._topic("fifo")
        consumer, listener = self._push(topic)
        producer = self._producer(topic)
        for number in range(6):
            for group in ("one", "two", "three"):
                message = new(topic, f"{group} {number}")
                message.message_group = group
                producer.send(message)
        listener.wait(18)
        consumer.shutdown()
        producer.shutdown()
        return {"consumed": listener.consumed}

    def transaction(self):
        """Commit and roll back, at once or when the broker asks."""
        topic = self._topic("transaction")
        consumer, listener = self._push(topic)
        checker = Checker()
        producer = Producer(self._configuration, (topic,), checker)
        producer.startup()
        for number in range(2):
            for ending in ("commit", "rollback", "late commit", "late rollback"):
                transaction = producer.begin_transaction()
                producer.send(new(topic, f"{ending} {number}"), transaction)
                if ending in {"commit", "rollback"}:
                    getattr(transaction, ending)()
        listener.wait(4)
        end = time.monotonic() + SECONDS
        while len(checker.late()) < 4 and time.monotonic() < end:
            time.sleep(0.02)
        consumer.shutdown()
        producer.shutdown()
        return {"asked": sorted(checker.late()), "consumed": listener.consumed}

    def _topic(self, feature):
        return f"{self._prefix}_{feature}"

    def _producer(self, topic):
        producer = Producer(self._configuration, (topic,))
        producer.startup()
        return producer

    def _push(self, topic, expression=None):
        listener = Listener()
        consumer = PushConsumer(
            self._configuration, f"G_{topic}", listener, {topic: expression or FilterExpression()}
        )
        consumer.startup()
        return consumer, listener

    def _receive(self, consumer, count, acknowledges=False):
        """Receive messages, hidden for ten seconds each.

        Acknowledge at once what is not to come again while it waits for others.
        """
        messages, end = [], time.monotonic() + SECONDS
        while len(messages) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{len(messages)} of {count} messages")
            for message in consumer.receive(32, 10):
                if acknowledges:
                    consumer.ack(message)
                messages.append(message)
        return messages


def new(topic, body, tag=None, key=None):
    """Make a message."""
    message = Message()
    message.topic, message.body = topic, body.encode()
    if tag is not None:
        message.tag = tag
        message.add_property("colour", "blue")
    if key is not None:
        message.keys = key
    return message


def attempt(feature):
    """Run a feature; return what happened, or why not."""
    try:
        return feature()
    except Exception as error:  # noqa: BLE001 (whoever asked is told)
        return {"failure": f"{type(error).__name__}: {error}"}


def main():
    """Run all features, and print what happened."""
    # What libraries print must not mix with the answer.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    features = Features(*sys.argv[1:])
    names = ("send", "simple", "delay", "fifo", "transaction")
    with ThreadPoolExecutor(len(names)) as threads:
        running = {name: threads.submit(attempt, getattr(features, name)) for name in names}
        answer.write(json.dumps({name: future.result() for name, future in running.items()}) + "\n")
    answer.flush()
    os._exit(0)  # the clients leave threads behind


if __name__ == "__main__":
    main()
