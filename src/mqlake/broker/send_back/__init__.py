"""CONSUMER_SEND_MSG_BACK (docs/broker.md)."""
