"""RocketMQ's remoting protocol as values: commands, headers, bodies, and names both sides know.

Nothing here opens a connection, and nothing needs NumPy. Page: docs/formats/remoting.md. Headers
and bodies of each request are in the modules of `headers` and `bodies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.protocol.body import decode_body as decode_body
    from mqlake.protocol.body import encode_body as encode_body
    from mqlake.protocol.codes import RequestCode as RequestCode
    from mqlake.protocol.codes import ResponseCode as ResponseCode
    from mqlake.protocol.command import Command as Command
    from mqlake.protocol.command import Serialization as Serialization
    from mqlake.protocol.command import oneway as oneway
    from mqlake.protocol.command import request as request
    from mqlake.protocol.command import response as response
    from mqlake.protocol.errors import BodyError as BodyError
    from mqlake.protocol.errors import FrameError as FrameError
    from mqlake.protocol.errors import HeaderError as HeaderError
    from mqlake.protocol.errors import RemotingError as RemotingError
    from mqlake.protocol.header import Header as Header
    from mqlake.protocol.permission import Permission as Permission
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "decode_body": "body",
            "encode_body": "body",
            "RequestCode": "codes",
            "ResponseCode": "codes",
            "Command": "command",
            "Serialization": "command",
            "oneway": "command",
            "request": "command",
            "response": "command",
            "BodyError": "errors",
            "FrameError": "errors",
            "HeaderError": "errors",
            "RemotingError": "errors",
            "Header": "header",
            "Permission": "permission",
        },
    )
