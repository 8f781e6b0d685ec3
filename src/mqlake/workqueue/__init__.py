"""Topics as work queues, for the task libraries that run on RocketMQ: `mqlake.kombu` and
`mqlake.taskiq`.

Messages are popped. Their invisible time is extended until they are acknowledged or returned.
"""
