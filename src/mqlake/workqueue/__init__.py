"""Topics as work queues, for the task libraries that run on RocketMQ: `mqlake.kombu` and
`mqlake.taskiq`.

Messages are popped, and held by extensions until they are acknowledged or given back.
"""
