"""Headers of RECALL_MESSAGE.

Upstream: `RecallMessageRequestHeader`, `RecallMessageResponseHeader`.
"""

from __future__ import annotations

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
    """The unique key of the message that is taken back."""

    msg_id: str
