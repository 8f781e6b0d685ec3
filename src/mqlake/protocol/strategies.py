"""How consumers share the queues of a topic.

Upstream: `AllocateMessageQueueStrategy` and its implementations,
`QueryAssignmentProcessor.allocate4Pop`. All members have queues and clients in the same order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from hashlib import md5

from mqlake.protocol.bodies.message_queue import MessageQueue

ALL_QUEUES = -1

Strategy = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]
"""Return the queues of a client; empty if it is not one of the clients."""


def averagely(
    client: str, queues: Sequence[MessageQueue], clients: Sequence[str]
) -> list[MessageQueue]:
    """Give each client neighbouring queues; the first ones get one more if there is a remainder."""
    if client not in clients:
        return []
    index = clients.index(client)
    each, more = divmod(len(queues), len(clients))
    start = index * each + min(index, more)
    return list(queues[start : start + each + (index < more)])


def by_circle(
    client: str, queues: Sequence[MessageQueue], clients: Sequence[str]
) -> list[MessageQueue]:
    """Deal the queues out one by one."""
    return list(queues[clients.index(client) :: len(clients)]) if client in clients else []


def by_consistent_hash(virtual_nodes: int = 10) -> Strategy:
    """Return a strategy that moves few queues when a client joins or leaves.

    Args:
        virtual_nodes: points of each client on the ring; the same for all members of the group.
    """

    def strategy(
        client: str, queues: Sequence[MessageQueue], clients: Sequence[str]
    ) -> list[MessageQueue]:
        ring = {
            _ring_place(f"{name}-{number}"): name
            for name in clients
            for number in range(virtual_nodes)
        }
        places = sorted(ring)

        def owner(queue: MessageQueue) -> str:
            text = (
                f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name},"
                f" queueId={queue.queue_id}]"
            )
            at = bisect_left(places, _ring_place(text))
            return ring[places[at % len(places)]]

        if client not in clients or not places:
            return []
        return [queue for queue in queues if owner(queue) == client]

    return strategy


def by_machine_room(rooms: Collection[str]) -> Strategy:
    """Return a strategy for brokers named `room@name` that reads only those in these rooms."""

    def strategy(
        client: str, queues: Sequence[MessageQueue], clients: Sequence[str]
    ) -> list[MessageQueue]:
        if client not in clients:
            return []
        names = (queue.broker_name.split("@") for queue in queues)
        near = [
            queue
            for queue, parts in zip(queues, names, strict=True)
            if len(parts) == 2 and parts[0] in rooms
        ]
        index, each = clients.index(client), len(near) // len(clients)
        mine = near[each * index : each * (index + 1)]
        return mine + near[each * len(clients) + index :][:1]

    return strategy


def by_nearest_machine_room(
    strategy: Strategy,
    room_of_queue: Callable[[MessageQueue], str],
    room_of_client: Callable[[str], str],
) -> Strategy:
    """Return a strategy that shares queues by room.

    The clients of a queue's room share it; all clients do if no client is in that room.

    Args:
        strategy: how they share.
        room_of_queue, room_of_client: the room of a broker's queue, and of a client id.
    """

    def share_by_rooms(
        client: str, queues: Sequence[MessageQueue], clients: Sequence[str]
    ) -> list[MessageQueue]:
        if client not in clients:
            return []
        by_room: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_room.setdefault(room_of_queue(queue), []).append(queue)
        members: dict[str, list[str]] = {}
        for name in clients:
            members.setdefault(room_of_client(name), []).append(name)
        own = room_of_client(client)
        mine = strategy(client, by_room.pop(own, []), members[own])
        for room, others in sorted(by_room.items()):
            if room not in members:
                mine += strategy(client, others, clients)
        return mine

    return share_by_rooms


def by_configuration(queues: Sequence[MessageQueue]) -> Strategy:
    """Return a strategy that gives a client exactly these queues."""

    def strategy(
        client: str,  # noqa: ARG001
        known: Sequence[MessageQueue],  # noqa: ARG001
        clients: Sequence[str],  # noqa: ARG001
    ) -> list[MessageQueue]:
        return list(queues)

    return strategy


def _ring_place(text: str) -> int:
    digest = md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


STRATEGIES: dict[str, Strategy] = {"AVG": averagely, "AVG_BY_CIRCLE": by_circle}


def share(
    strategy: Strategy,
    client: str,
    queues: Sequence[MessageQueue],
    clients: Sequence[str],
    others: int,
) -> list[MessageQueue]:
    """Return the queues that a client pops: its own, and those of the `others` clients after it.

    If `others` is 0 or nearly all, each client pops all queues of each broker.
    """
    if others <= 0 or others >= len(clients) - 1:
        return [MessageQueue(queue.topic, queue.broker_name, ALL_QUEUES) for queue in queues]
    if client not in clients:
        return []
    index = clients.index(client)
    if len(clients) > len(queues):
        return [queues[index % len(queues)]] if queues else []
    turns = (clients[(index + number) % len(clients)] for number in range(others + 1))
    return [queue for turn in turns for queue in strategy(turn, queues, clients)]
