"""The handle with which a producer recalls a delayed message.

Upstream: `RecallMessageHandle`. The answer to the send has it as `recallHandle`.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NamedTuple

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

_VERSION: Final = "v1"
_WORDS: Final = 5
_MOST: Final = 2048
"""Characters: more than the longest names take."""
_NUMBER: Final = re.compile("[0-9]{1,18}", re.ASCII)


class RecallHandle(NamedTuple):
    """Which message is to be taken back.

    Attributes:
        topic: the topic that it was sent to.
        broker_name: the broker that has it.
        deliver_ms: a time (ms) that rounds down to the one at which it is delivered.
        unique_key: of the message.
    """

    topic: str
    broker_name: str
    deliver_ms: int
    unique_key: str

    @property
    def text(self) -> str:
        """Return the handle as clients keep it."""
        words = f"{_VERSION} {self.topic} {self.broker_name} {self.deliver_ms} {self.unique_key}"
        return urlsafe_b64encode(words.encode()).decode()


def parse_recall_handle(text: str) -> RecallHandle:
    """Return the handle that a client gives back.

    Raises:
        RemotingError: ILLEGAL_OPERATION: the text is no handle.
    """
    if len(text) > _MOST:
        raise _no_handle()
    try:
        words = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().split(" ")
    except ValueError:
        raise _no_handle() from None
    # Words after the fifth are ignored, as upstream ignores them.
    if len(words) < _WORDS or words[0] != _VERSION or not _NUMBER.fullmatch(words[3]):
        raise _no_handle()
    _, topic, broker_name, deliver_ms, unique_key, *_ = words
    return RecallHandle(topic, broker_name, int(deliver_ms), unique_key)


def _no_handle() -> RemotingError:
    return RemotingError(ResponseCode.ILLEGAL_OPERATION, "recall handle is invalid")
