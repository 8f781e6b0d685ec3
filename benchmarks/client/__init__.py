"""mqlake's client beside RocketMQ's own, against the same broker."""
