"""A channel of kombu: queues are topics that are popped, exchanges are topics that are followed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from mqlake.errors import MqlakeError
from mqlake.kombu.border import Payload, VirtualMessage
from mqlake.kombu.cluster_transport import ClusterTransport
from mqlake.kombu.errors import RequestRefusedError
from mqlake.kombu.feed import Feed
from mqlake.kombu.names import exchange_topic
from mqlake.kombu.payloads import (
    delivery_time,
    is_reply,
    is_task,
    mark_redelivered,
    message_of,
    payload_of,
)
from mqlake.kombu.queues import QueueChannel
from mqlake.storage.clock import SystemClock
from mqlake.workqueue.deliveries import Delivery

_log = logging.getLogger(__name__)
_tags = count(1)


class Channel(QueueChannel):
    """Publishes, consumes and acknowledges on one connection."""

    supports_fanout = True
    do_restore = False  # The broker redelivers; `close` gives back unfinished messages.

    def __init__(self, connection: ClusterTransport, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self._window = connection.call(self._session.open_window)
        self._feeds: dict[str, Feed] = {}
        self._delivered: dict[str, Delivery] = {}

    # Publish

    def basic_publish(self, message: Payload, exchange: str, routing_key: str, **_: Any) -> None:
        """Store a message in the queues that it is routed to; return once brokers have it.

        Raises:
            RequestRefusedError: it is a task that would reach no known queue.
        """
        self._inplace_augment_message(message, exchange, routing_key)
        if message["properties"].get("priority"):
            self._transport.warn_of_priorities()
        if not exchange:
            self._put(routing_key, message)
            return
        bound = self._bound(exchange, routing_key)
        if not bound and is_task(message) and self.typeof(exchange).type != "fanout":
            raise RequestRefusedError(
                f"a task for exchange {exchange!r}, routing key {routing_key!r} would be lost:"
                " this process has declared no queue for it; name the queue, or add it to"
                " task_queues"
            )
        takes_from = self._transport.queues.takes_from
        queues = [queue for queue in bound if takes_from(queue, exchange)]
        for queue in queues:
            self._put(queue, message)
        if len(queues) < len(bound) or not bound:
            self._send_to_exchange(exchange, message)

    def _put(self, queue: str, message: Payload, **_: Any) -> None:
        deliver_at = None
        if self._settings.broker_eta:
            longest = int(self._settings.max_delay * 1000)
            deliver_at = delivery_time(message, SystemClock().milliseconds(), longest)
        queues, topic = self._transport.queues, self._topic(queue)
        if not queues.reads_own_topic(queue):
            self._send_to_exchange(next(iter(queues.followed[queue])), message)
            return
        if is_reply(message) and not self._transport.run(self._session.topics.exists(topic)):
            # The client that asked is gone; a new topic would stay forever.
            _log.debug("a reply to %s was dropped: the queue does not exist any more", queue)
            return
        self._transport.send(message_of(topic, message, deliver_at))

    def _send_to_exchange(self, exchange: str, message: Payload) -> None:
        topic = exchange_topic(exchange, self._settings.topic_prefix)
        self._transport.run(self._session.send_to_exchange(message_of(topic, message)))

    def _bound(self, exchange: str, routing_key: str) -> list[str]:
        """Return the queues that were bound to an exchange on this connection and match a key.

        None for fanout exchanges: all queues read their topics.
        """
        kind = self.typeof(exchange)
        if kind.type == "fanout" or exchange not in self.state.exchanges:
            return []
        return sorted(kind.lookup(self.get_table(exchange), exchange, routing_key, None))

    # Consume

    def basic_consume(
        self,
        queue: str,
        no_ack: bool,
        callback: Callable[[VirtualMessage], object],
        consumer_tag: str,
        **_: Any,
    ) -> None:
        """Consume a queue: messages arrive by `Transport.drain_events`."""
        feed = Feed(partial(self._message, no_ack=no_ack), callback)

        def arrive(payload: Payload, delivery: Delivery | None) -> None:
            feed.waiting.append((payload, delivery))
            self._transport.arrivals.put(feed)

        feed.subscription = self._transport.call(lambda: self._session.subscribe(self._window))
        self._consumers.add(consumer_tag)
        self._tag_to_queue[consumer_tag] = queue
        self._feeds[consumer_tag] = feed
        queues, run = self._transport.queues, self._transport.run
        for exchange, offsets in queues.followed.get(queue, {}).items():
            is_for_queue = self._selection(exchange, queue)
            run(self._session.follow_exchange(feed.subscription, offsets, is_for_queue, arrive))
        if not queues.reads_own_topic(queue):
            return
        if queues.is_transient(queue):
            queues.temporary.add(self._topic(queue))
        for source in self._sources(queue):
            run(self._session.read_queue(feed.subscription, source, self._window, arrive))

    def basic_cancel(self, consumer_tag: str) -> None:
        """Stop a consumer; what it has delivered can still be acknowledged."""
        feed = self._feeds.pop(consumer_tag, None)
        if feed is None:
            return
        self._consumers.discard(consumer_tag)
        self._tag_to_queue.pop(consumer_tag, None)
        if self._transport.thread.is_own:
            self._transport.run(feed.stop())

    def basic_get(self, queue: str, no_ack: bool = False, **_: Any) -> VirtualMessage | None:
        """Return a message of a queue if it has one now."""
        if not self._transport.queues.reads_own_topic(queue):
            raise RequestRefusedError(
                f"queue {queue!r} follows an exchange: consume it, `basic_get` cannot read it"
            )
        for source in self._sources(queue):
            delivery = self._transport.run(self._session.get(source, self._window))
            if delivery is not None:
                return self._got(delivery, queue, no_ack=no_ack)
        return None

    def _got(self, delivery: Delivery, queue: str, *, no_ack: bool) -> VirtualMessage | None:
        payload = payload_of(delivery.message)
        if payload is None:
            self._transport.run(delivery.ack())
            _log.error("message %s of queue %s is not kombu's", delivery.message.message_id, queue)
            return None
        mark_redelivered(payload, delivery.message)
        return self._message(payload, delivery, no_ack=no_ack)

    def _message(
        self, payload: Payload, delivery: Delivery | None, *, no_ack: bool
    ) -> VirtualMessage | None:
        # A redelivered message must not take the place of the one that was delivered before.
        tag = payload["properties"]["delivery_tag"] = f"rocketmq-{next(_tags)}"
        try:
            message = self.Message(payload, channel=self)
        except Exception:  # noqa: BLE001 (decoders of bodies raise what they like)
            # Nobody can read it, and a worker that fails at it would fail again and again.
            _log.exception("a message that kombu cannot read is acknowledged and dropped")
            message, no_ack = None, True
        if delivery is not None and no_ack:
            self._ack_unasked(delivery)
        elif delivery is not None:
            self._delivered[tag] = delivery
        return message

    def _ack_unasked(self, delivery: Delivery) -> None:
        """Acknowledge a message that the consumer will not acknowledge; failures are logged.

        The broker may have executed a request that failed, and `Delivery` retries it in the
        background. An error would lose the message, which the consumer has not received yet. If the
        message is delivered regardless, it is at worst delivered again.
        """
        try:
            self._transport.run(delivery.ack())
        except MqlakeError as error:
            name = f"{delivery.message.message_id} of {delivery.message.topic}"
            _log.warning("message %s may be redelivered: it was not acknowledged: %s", name, error)

    # Finish

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        """Acknowledge a message; return once the broker has confirmed it."""
        if multiple:
            raise RequestRefusedError(
                "multiple=True is not supported: each message is acknowledged by itself"
            )
        delivery = self._delivered.pop(delivery_tag, None)
        if delivery is not None:
            self._transport.run(delivery.ack())

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Drop a message, or let it be redelivered at once."""
        delivery = self._delivered.pop(delivery_tag, None)
        if delivery is not None:
            self._transport.run(delivery.give_back() if requeue else delivery.ack())

    def basic_recover(self, requeue: bool = False) -> None:
        """Have all unfinished messages redelivered."""
        if not requeue:
            raise RequestRefusedError("basic_recover needs requeue=True")
        for tag in list(self._delivered):
            self.basic_reject(tag, requeue=True)

    def basic_qos(
        self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False
    ) -> None:
        """Set how many unfinished messages may be delivered, 0 for no limit."""
        super().basic_qos(prefetch_size, prefetch_count, apply_global)
        window = self._window
        window.limit = prefetch_count
        self._transport.thread.call(window.wake)

    def close(self) -> None:
        """Stop all consumers, and have unfinished messages redelivered."""
        if not self.closed and self._transport.thread.is_own:
            for tag in list(self._feeds):
                self.basic_cancel(tag)
            try:
                self._transport.run(self._session.close_window(self._window))
            except MqlakeError as error:
                _log.warning("a channel was not closed cleanly: %s", error)
        self._delivered.clear()
        super().close()
