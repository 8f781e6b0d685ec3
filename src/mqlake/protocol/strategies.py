"""How consumers share the queues of a topic.

Upstream: `AllocateMessageQueueAveragely`, `AllocateMessageQueueAveragelyByCircle`,
`QueryAssignmentProcessor.allocate4Pop`. Queues and clients are in the same order for everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mqlake.protocol.bodies.message_queue import MessageQueue

ALL_QUEUES = -1

Strategy = Callable[[str, Sequence[MessageQueue], Sequence[str]], list[MessageQueue]]
"""Return the queues of a client; none where it is none of the clients."""


def averagely(
    client: str, queues: Sequence[MessageQueue], clients: Sequence[str]
) -> list[MessageQueue]:
    """Give each client neighbouring queues, the first ones one more where they do not come out."""
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


STRATEGIES: dict[str, Strategy] = {"AVG": averagely, "AVG_BY_CIRCLE": by_circle}


def share(
    strategy: Strategy,
    client: str,
    queues: Sequence[MessageQueue],
    clients: Sequence[str],
    others: int,
) -> list[MessageQueue]:
    """Return the queues that a client pops: its own, and those of so many clients behind it.

    Where `others` is none or nearly all, each client pops all queues of each broker.
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
