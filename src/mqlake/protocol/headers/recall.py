"""Headers of RECALL_MESSAGE.

Upstream: `RecallMessageRequestHeader`, `RecallMessageResponseHeader`.
"""

from __future__ import annotations

import msgspec

from mqlake.protocol.header import Header


class RecallHeader(Header):
    """RECALL_MESSAGE.

    Attributes:
        recall_handle: from the answer to the send.
    """

    topic: str
    recall_handle: str
    producer_group: str = ""


class RecallAnswerHeader(Header):
    """What clients trace a recall by.

    Attributes:
        msg_id: the unique key of the message that is taken back; None if it is not.
        region: of the broker.
    """

    msg_id: str | None = None
    region: str | None = msgspec.field(default=None, name="MSG_REGION")
