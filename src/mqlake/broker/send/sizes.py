"""The maximum size of a sent message, so that it can be put again later.

A record can have 32767 bytes of properties, and a file of the log contains whole records. The room
for the properties that brokers and clients add (`own_properties`) is reserved in both.
"""

from __future__ import annotations

from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats import record
from mqlake.formats.file_name import MAX_NAME_BYTES
from mqlake.formats.own_properties import LARGEST, LONGEST_SENT, pair_size
from mqlake.formats.properties import MAX_LENGTH, TRANSACTION_ID
from mqlake.formats.property_edits import own_size, without_repeats
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

_LARGEST = {name.encode(): size for name, size in LARGEST.items()}
_HEAD = record.HEAD_SIZES[-1] + 2 + MAX_NAME_BYTES + 2
"""Maximum bytes of a record in addition to its body and its properties."""


class SendSizes:
    """The sizes that a broker accepts.

    Attributes:
        properties, body: bytes within which no further check is needed; of the properties as they
            are stored.
        half_properties: the same for those of a half message together with its unique key.
    """

    def __init__(self, state: BrokerState) -> None:
        kept = MAX_LENGTH - LONGEST_SENT
        self._most = state.store.appends.largest_record - _HEAD - kept
        self.properties = max(0, min(LONGEST_SENT, self._most // 2))
        self.half_properties = self.properties - pair_size(TRANSACTION_ID, 0)
        self.body = max(0, self._most - self.properties)

    def check(self, properties: bytes, body: int, unique_key: str | None = None) -> bytes:
        """Return the properties to store for an unusually long message.

        If a property occurs twice, the last one is stored; those that brokers and clients add do
        not count: a client that sends a message to its retry topic includes them.

        Args:
            properties: as they would be stored.
            body: the size of the body.
            unique_key: of a half message, which gets it a second time (`__transactionId__`).

        Raises:
            RemotingError: MESSAGE_ILLEGAL: the message could not be put again.
        """
        properties = without_repeats(properties)
        size = len(properties) - own_size(properties, _LARGEST)
        if unique_key is not None:
            size += pair_size(TRANSACTION_ID, len(unique_key.encode()))
        if size > LONGEST_SENT:
            raise _refusal(
                f"the properties have {size} bytes; the maximum is {LONGEST_SENT}: a record "
                f"can have {MAX_LENGTH}, and the rest is reserved for those that the broker "
                "adds when it delivers the message again"
            )
        if body + size > self._most:
            raise _refusal(
                f"body and properties have {body + size} bytes; the maximum is {self._most}, "
                "which fits into a file of the log (mappedFileSizeCommitLog)"
            )
        return properties

    def check_batch(self, body: int) -> None:
        """Check the size of a batch.

        Raises:
            RemotingError: MESSAGE_ILLEGAL.
        """
        if body > self._most:
            raise _refusal(
                f"the batch has {body} bytes; the maximum is {self._most}, which fits into a "
                "file of the log (mappedFileSizeCommitLog)"
            )


def _refusal(reason: str) -> RemotingError:
    return RemotingError(ResponseCode.MESSAGE_ILLEGAL, f"the message is illegal: {reason}")
