"""RocketMQ's gRPC client for Python (rocketmq-python-client), which does what its input asks.

Runs in an environment of its own, without mqlake: `main.py ENDPOINT`. Each line of standard input
is a JSON object {"n": number, "do": operation, ...}, each line of standard output the answer
{"n": number, "is": value} or {"n": number, "error": {...}}, in the order in which they are ready.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf import json_format
from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    LitePushConsumer,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)
from rocketmq.grpc_protocol import FilterType, service_pb2, service_pb2_grpc

THREADS = 128
SHOWN = 200
"""Bytes of a body that are shown; of a longer one, its length and digest."""


def shown(body):
    """Return a body as text."""
    if len(body) <= SHOWN:
        return body.decode()
    return f"{len(body)} bytes {hashlib.sha1(body).hexdigest()[:10]}"


def described(message):
    """Return what a consumer sees of a message."""
    return {
        "topic": message.topic,
        "body": shown(message.body),
        "id": message.message_id,
        "tag": message.tag,
        "keys": sorted(message.keys),
        "properties": dict(message.properties),
        "group": message.message_group,
        "lite": message.lite_topic,
        "priority": message.priority,
        "attempt": message.delivery_attempt,
        "born_host": bool(message.born_host),
        "at": time.time(),
    }


def refuses(body, count):
    """Say whether a listener fails the next time: "fail 2 ..." fails twice, and then succeeds."""
    words = body.split(" ")
    return words[0] == "fail" and count <= int(words[1])


class Listener(MessageListener):
    """Collects messages."""

    def __init__(self):
        self.seen, self._counts = [], Counter()

    def consume(self, message):
        """Take a message, or fail."""
        found = described(message)
        self.seen.append(found)
        self._counts[found["body"]] += 1
        is_refused = refuses(found["body"], self._counts[found["body"]])
        return ConsumeResult.FAILURE if is_refused else ConsumeResult.SUCCESS


class Checker(TransactionChecker):
    """Says what becomes of transactions that nobody ended."""

    def __init__(self):
        self.asked = []

    def check(self, message):
        """Decide by the body."""
        body = message.body.decode()
        self.asked.append(body)
        if body.startswith("late commit"):
            return TransactionResolution.COMMIT
        if body.startswith("late rollback"):
            return TransactionResolution.ROLLBACK
        return TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED


class Operations:
    """What the input may ask for: a method of each name."""

    def __init__(self, endpoint):
        self._endpoint = endpoint
        self._clients, self._listeners, self._checkers = {}, {}, {}
        self._transactions, self._receipts, self._lock = {}, {}, threading.Lock()
        self._streams, self._stub = {}, None

    def _configuration(self, user=None, secret=None, timeout=30):
        return ClientConfiguration(
            self._endpoint, Credentials(user or "", secret or ""), request_timeout=timeout
        )

    def producer(self, name, topics, checks=False, **more):
        """Start a producer."""
        checker = self._checkers[name] = Checker() if checks else None
        self._start(name, Producer(self._configuration(**more), tuple(topics), checker))

    def _start(self, name, client):
        client.startup()
        self._clients[name] = client

    def send(self, client, message, transaction=None):
        """Send a message, in a transaction if one is named."""
        made = Message()
        made.topic = message["topic"]
        made.body = message["body"].encode() * message.get("times", 1)
        if "tag" in message:
            made.tag = message["tag"]
        for key in message.get("keys", ()):
            made.keys = key
        for key, value in message.get("properties", {}).items():
            made.add_property(key, value)
        if "group" in message:
            made.message_group = message["group"]
        if "lite" in message:
            made.lite_topic = message["lite"]
        if "delay" in message:
            made.delivery_timestamp = int(time.time()) + message["delay"]
        if "priority" in message:
            made.priority = message["priority"]
        producer = self._clients[client]
        if transaction is None:
            receipt = producer.send(made)
        else:
            begun = self._transactions[transaction] = producer.begin_transaction()
            receipt = producer.send(made, begun)
        return {"id": receipt.message_id, "recall": receipt.recall_handle or None}

    def end(self, transaction, commits):
        """End a transaction."""
        begun = self._transactions.pop(transaction)
        begun.commit() if commits else begun.rollback()

    def asked(self, client):
        """Return the bodies of the transactions that the server asked for."""
        return list(self._checkers[client].asked)

    def recall(self, client, topic, handle):
        """Recall a delayed message; return its id."""
        found = self._clients[client].recall_message(topic, handle)
        return getattr(found, "message_id", found)

    @staticmethod
    def _expressions(subscriptions):
        types = {"tag": FilterType.TAG, "sql": FilterType.SQL}
        return {
            topic: FilterExpression(text, types[kind])
            for topic, (kind, text) in subscriptions.items()
        }

    def simple(self, name, group, subscriptions, wait=5, **more):
        """Start a simple consumer."""
        client = SimpleConsumer(
            self._configuration(**more),
            group,
            self._expressions(subscriptions),
            await_duration=wait,
        )
        self._start(name, client)

    def receive(self, client, most, hidden):
        """Receive messages."""
        messages = self._clients[client].receive(most, hidden)
        return [described(each) | {"receipt": self._kept(each)} for each in messages]

    def _kept(self, message):
        with self._lock:
            number = len(self._receipts)
            self._receipts[number] = message
        return number

    def ack(self, client, receipt):
        """Acknowledge a message."""
        self._clients[client].ack(self._receipts[receipt])

    def hide(self, client, receipt, seconds):
        """Change the time for which a message is invisible."""
        self._clients[client].change_invisible_duration(self._receipts[receipt], seconds)

    def push(self, name, group, subscriptions, **more):
        """Start a push consumer."""
        listener = self._listeners[name] = Listener()
        client = PushConsumer(
            self._configuration(**more), group, listener, self._expressions(subscriptions)
        )
        self._start(name, client)

    def lite_push(self, name, group, topic, **more):
        """Start a push consumer of lite topics."""
        listener = self._listeners[name] = Listener()
        configuration = self._configuration(**more)
        self._start(name, LitePushConsumer(configuration, group, topic, listener))

    def follow(self, client, lite):
        """Subscribe to a lite topic."""
        self._clients[client].subscribe_lite(lite)

    def unfollow(self, client, lite):
        """End the subscription to a lite topic."""
        self._clients[client].unsubscribe_lite(lite)

    def seen(self, client, begin=0):
        """Return what a push consumer has received, from a number of messages on."""
        return self._listeners[client].seen[begin:]

    def subscribe(self, client, topic, kind, text):
        """Add a subscription, or replace it."""
        expression = self._expressions({topic: (kind, text)})[topic]
        self._clients[client].subscribe(topic, expression)

    def close(self, client):
        """Shut a client down."""
        self._clients.pop(client).shutdown()

    def _stubs(self):
        with self._lock:
            if self._stub is None:
                channel = grpc.insecure_channel(
                    self._endpoint, options=[("grpc.max_receive_message_length", -1)]
                )
                self._stub = service_pb2_grpc.MessagingServiceStub(channel)
            return self._stub

    def call(self, method, request, metadata, timeout=30):
        """Call a method without any client; return the messages of the answer, or the status."""
        kind = service_pb2.DESCRIPTOR.services_by_name["MessagingService"].methods_by_name[method]
        message = getattr(service_pb2, kind.input_type.name)()
        json_format.ParseDict(request, message)
        stub = getattr(self._stubs(), method)
        try:
            if kind.client_streaming:
                answers = list(
                    stub(iter([message]), metadata=list(metadata.items()), timeout=timeout)
                )
            elif kind.server_streaming:
                answers = list(stub(message, metadata=list(metadata.items()), timeout=timeout))
            else:
                answers = [stub(message, metadata=list(metadata.items()), timeout=timeout)]
        except grpc.RpcError as error:
            return {"grpc": error.code().name}
        return [json_format.MessageToDict(each) for each in answers]

    def telemetry(self, name, metadata, timeout=600):
        """Open a stream of commands."""
        self._streams[name] = Stream(self._stubs(), list(metadata.items()), timeout)

    def tell(self, stream, command):
        """Send a command on a stream."""
        message = service_pb2.TelemetryCommand()
        json_format.ParseDict(command, message)
        self._streams[stream].tell(message)

    def told(self, stream):
        """Return the commands of the server so far, and how the stream has ended."""
        return self._streams[stream].told()

    def cut(self, stream):
        """Cancel a stream."""
        self._streams.pop(stream).cut()


class Stream:
    """A stream of Telemetry."""

    def __init__(self, stub, metadata, timeout):
        self._out, self._is_over, self._changed = [], False, threading.Condition()
        self._commands, self._end = [], None
        self._calls = stub.Telemetry(self._requests(), metadata=metadata, timeout=timeout)
        threading.Thread(target=self._read, daemon=True).start()

    def _requests(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._out or self._is_over)
                if self._is_over:
                    return
                message = self._out.pop(0)
            yield message

    def _read(self):
        try:
            for message in self._calls:
                self._commands.append(json_format.MessageToDict(message))
            self._end = "OK"
        except grpc.RpcError as error:
            self._end = error.code().name

    def tell(self, message):
        """Send a command."""
        with self._changed:
            self._out.append(message)
            self._changed.notify()

    def told(self):
        """Return what came."""
        return {"commands": list(self._commands), "end": self._end}

    def cut(self):
        """Cancel it."""
        self._calls.cancel()
        with self._changed:
            self._is_over = True
            self._changed.notify()


def failure(error):
    """Return an error as its kind, its code and its text."""
    code = getattr(error, "code", None)
    code = code() if callable(code) else code
    known = code if isinstance(code, int) else getattr(code, "name", None)
    return {"kind": type(error).__name__, "code": known, "text": str(error)}


def main():
    """Answer until the input ends."""
    # What libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    lock = threading.Lock()
    operations = Operations(sys.argv[1])

    def answer(wanted):
        number, name = wanted.pop("n"), wanted.pop("do")
        try:
            found = {"n": number, "is": getattr(operations, name)(**wanted)}
        except Exception as error:  # noqa: BLE001 (whoever asked is told)
            found = {"n": number, "error": failure(error)}
        with lock:
            answers.write(json.dumps(found) + "\n")

    with ThreadPoolExecutor(THREADS) as threads:
        for line in sys.stdin:
            threads.submit(answer, json.loads(line))
        os._exit(0)  # the clients leave threads behind


if __name__ == "__main__":
    main()
