"""Messages as lines of JSON."""

from __future__ import annotations

import pytest

from mqlake.client.message_json import message_from_json
from mqlake.errors import FormatError


@pytest.mark.parametrize("line", [b"", b"[]", b'{"body":1}', b'{"bodyBase64":"?"}', b"\xff"])
def test_invalid_lines_of_json_are_refused(line: bytes) -> None:
    with pytest.raises(FormatError, match="not a message"):
        message_from_json(line, "t")
