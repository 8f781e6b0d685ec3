"""SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE (docs/broker.md).

Upstream: `SendMessageProcessor`, `AbstractSendMessageProcessor`.
"""
