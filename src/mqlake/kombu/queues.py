"""The part of a channel that declares, binds, counts, purges and deletes queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlake.kombu.border import Payload, VirtualChannel
from mqlake.kombu.cluster_transport import ClusterTransport
from mqlake.kombu.errors import RequestRefusedError
from mqlake.kombu.names import exchange_topic, queue_topic
from mqlake.kombu.payloads import exchange_of, routing_key_of
from mqlake.kombu.sources import TopicSource, fanout_source, own_source


class QueueChannel(VirtualChannel):
    """Declares queues: durable ones are topics, the others follow the topics of exchanges."""

    def __init__(self, connection: ClusterTransport, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self._transport, self._session = connection, connection.session
        self._settings = connection.settings

    def _new_queue(
        self,
        queue: str,
        durable: bool = True,
        auto_delete: bool = False,
        exclusive: bool = False,
        **_: Any,
    ) -> None:
        topic, queues = self._topic(queue), self._transport.queues
        if queues.declare(queue, durable=durable, auto_delete=auto_delete, exclusive=exclusive):
            self._transport.run(self._session.topics.ensure(topic))

    def _queue_bind(self, exchange: str, *bound: Any) -> None:
        routing_key, _, queue = bound
        try:
            self._bind(exchange, queue)
        except BaseException:
            # kombu notes a binding before it calls this method, and skips bindings that it has
            # noted: the next declaration would succeed without asking the broker.
            self.state.binding_delete(queue, exchange, routing_key)
            self.get_table(exchange).remove(bound)
            raise

    def _bind(self, exchange: str, queue: str) -> None:
        queues, kind = self._transport.queues, self.typeof(exchange).type
        if kind == "direct" and queues.keep(queue):
            self._transport.run(self._session.topics.ensure(self._topic(queue)))
            self._follow(queue, exchange)
        elif queues.is_transient(queue):
            self._follow(queue, exchange)
        elif kind == "fanout":
            shared = queues.shared.setdefault(queue, {})
            if exchange not in shared:
                source = fanout_source(queue, exchange, self._settings)
                self._transport.run(self._session.begin(source))
                shared[exchange] = source

    def _follow(self, queue: str, exchange: str) -> None:
        followed = self._transport.queues.followed
        if exchange not in followed.get(queue, {}):
            topic = exchange_topic(exchange, self._settings.topic_prefix)
            ends = self._transport.run(self._session.ends_of(topic))
            followed.setdefault(queue, {})[exchange] = ends

    def _selection(self, exchange: str, queue: str) -> Callable[[Payload], bool]:
        """Return a function that decides whether a message of an exchange is for a queue."""
        kind = self.typeof(exchange)
        bound = [row for row in self.get_table(exchange) if row[2] == queue]

        def is_for_queue(payload: Payload) -> bool:
            key = routing_key_of(payload)
            if not exchange_of(payload):
                # The message was sent to the queue itself, which reads nothing else.
                return key == queue
            return bool(kind.lookup(bound, exchange, key, None))

        return is_for_queue

    def _has_queue(self, queue: str, **_: Any) -> bool:
        if self._transport.queues.is_transient(queue):
            return True
        return self._transport.run(self._session.topics.exists(self._topic(queue)))

    def _size(self, queue: str) -> int:
        if self._transport.queues.is_transient(queue):
            return 0
        topics = self._session.topics
        return sum(self._transport.run(topics.size(*source)) for source in self._sources(queue))

    def _purge(self, queue: str) -> int:
        queues = self._transport.queues
        if not queues.reads_own_topic(queue) or not self._has_queue(queue):
            return 0
        return sum(
            self._transport.run(self._session.purge(source)) for source in self._sources(queue)
        )

    def queue_delete(
        self, queue: str, if_unused: bool = False, if_empty: bool = False, **_: Any
    ) -> None:
        """Delete a queue with its messages."""
        queues = self._transport.queues
        is_transient = queues.is_transient(queue)
        if if_unused and not is_transient:
            raise RequestRefusedError(
                f"queue {queue!r}: if_unused is not supported: brokers do not know who pops"
            )
        if if_empty and not is_transient and self._size(queue):
            return
        if queues.reads_own_topic(queue):
            self._transport.run(self._session.topics.delete(self._topic(queue)))
        queues.forget(queue)
        self.state.queue_bindings_delete(queue)
        for exchange in self.state.exchanges.values():
            exchange["table"] = [bound for bound in exchange["table"] if bound[2] != queue]

    def exchange_delete(self, exchange: str, **_: Any) -> None:
        """Forget an exchange and its bindings on this connection; its topic and queues remain."""
        self.state.exchanges.pop(exchange, None)
        # kombu skips bindings that it has noted: another exchange of that name would have none.
        for queue, bound, routing_key in list(self.state.bindings):
            if bound == exchange:
                self.state.binding_delete(queue, exchange, routing_key)
        self._transport.queues.forget_exchange(exchange)

    def _topic(self, queue: str) -> str:
        return queue_topic(queue, self._settings.topic_prefix)

    def _sources(self, queue: str) -> list[TopicSource]:
        """Return what the consumers of a queue share, in all processes."""
        shared = self._transport.queues.shared.get(queue, {})
        return [own_source(queue, self._settings), *shared.values()]
