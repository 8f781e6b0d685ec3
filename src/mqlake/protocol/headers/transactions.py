"""Headers of transactions.

Upstream: `EndTransactionRequestHeader`, `CheckTransactionStateRequestHeader`.
"""

from __future__ import annotations

import msgspec

from mqlake.protocol.header import Header, Int32, Int64


class EndTransactionHeader(Header):
    """END_TRANSACTION.

    Attributes:
        tran_state_table_offset: queue offset of the half message.
        commit_log_offset: its physical offset.
        commit_or_rollback: the transaction bits of a system flag; none if it is not known yet.
        from_transaction_check: whether this answers CHECK_TRANSACTION_STATE.
    """

    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    topic: str | None = None
    from_transaction_check: bool | None = None
    msg_id: str | None = None
    transaction_id: str | None = None


class CheckTransactionHeader(Header):
    """CHECK_TRANSACTION_STATE: a broker asks a producer what has become of a half message.

    Attributes:
        tran_state_table_offset, commit_log_offset: of the half message as it is now.
        topic: brokers before 5.0 omit it.
        msg_id, transaction_id: its unique key.
        offset_msg_id: its offset message id.
        broker_name: who asks.
    """

    tran_state_table_offset: Int64
    commit_log_offset: Int64
    topic: str | None = None
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    broker_name: str | None = msgspec.field(default=None, name="bname")


class ResumeCheckHeader(Header):
    """RESUME_CHECK_HALF_MESSAGE.

    Attributes:
        topic: not used.
        msg_id: the offset message id of the half message.
    """

    topic: str | None = None
    msg_id: str | None = None
