"""The errors of a client.

ClientError
├── ClosedError             the producer, the consumer or its connections are closed
├── NoRouteError            no broker is known that has the topic, or accepts messages for it
├── SendError               a message was not acknowledged
│   ├── NotStoredError      no broker stored it: it may be sent again
│   │   └── RefusedError    a broker refused it, and will again: `code` says why
│   └── PerhapsStoredError  no broker answered: if it is sent again, it may be stored twice
├── NoReplyError            a request was sent, and nobody replied in time
└── BrokerError             a broker refused something other than a message: `code` says why
"""

from __future__ import annotations

from mqlake.errors import MqlakeError


class ClientError(MqlakeError):
    """An error between a client and its cluster."""


class ClosedError(ClientError):
    """The producer, the consumer or its connections are closed."""


class NoRouteError(ClientError):
    """No broker is known that has the topic, or that takes messages for it."""


class SendError(ClientError):
    """A message was not acknowledged.

    Attributes:
        tries: how many times it was sent.
    """

    def __init__(self, reason: str, tries: int = 1) -> None:
        super().__init__(reason)
        self.tries = tries


class NotStoredError(SendError):
    """No broker stored the message: it may safely be sent again."""


class RefusedError(NotStoredError):
    """A broker refused the message for a reason that does not pass.

    Attributes:
        code: a number of `mqlake.protocol.codes.ResponseCode`.
    """

    def __init__(self, code: int, reason: str, tries: int = 1) -> None:
        super().__init__(reason, tries)
        self.code = code


class PerhapsStoredError(SendError):
    """No broker answered: the message may be stored.

    If it is sent again, consumers may get it twice, under two message ids.
    """


class NoReplyError(ClientError):
    """A request was sent, and nobody replied within its time."""


class BrokerError(ClientError):
    """A broker refused a request that is not a send.

    Attributes:
        code: a number of `mqlake.protocol.codes.ResponseCode`.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
