"""The messages and enums of `apache.rocketmq.v2`.

Enums are `IntEnum`; the fields of messages hold plain numbers, also those that no enum has.
`__init__.pyi` declares all of them.
"""

from mqlake.grpc.messages.build import classes

globals().update(classes())
