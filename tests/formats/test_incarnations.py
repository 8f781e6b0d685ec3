"""`config/incarnations.json`: what its page says, and content that is not such a table."""

from __future__ import annotations

import random
import re

import pytest

from mqlake.errors import FormatError
from mqlake.formats import config
from mqlake.formats.incarnations import EndedIncarnations
from mqlake.store.incarnations.checksum import decode_checked
from tests.formats.hex_blocks import PAGES
from tests.formats.test_hostile import changed


def decode(text: str) -> EndedIncarnations:
    return config.decode(text.encode(), EndedIncarnations)


def test_the_example_means_what_the_page_says() -> None:
    page = (PAGES / "incarnations.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    found = decode(example)
    assert found.topics == {"TopicTest": 40960}
    assert found.groups == {"G_pop": 53248}
    assert found.deletions == {"TopicTest": 40960}
    assert found.data_version == config.DataVersion(2, 0, 1795206887469)
    assert decode_checked(example.encode()) == found
    with pytest.raises(FormatError, match="crc32"):
        decode_checked(example.replace("40960", "40961").encode())


def test_names_without_an_entry_and_unknown_fields() -> None:
    assert decode("{}") == EndedIncarnations()
    assert decode('{"topics":{"T":0},"later":[1]}').topics == {"T": 0}
    assert decode('{"topics":{"T":9223372036854775807}}').topics == {"T": 2**63 - 1}


@pytest.mark.parametrize(
    "table",
    ["[]", "1", '{"T":-1}', '{"T":9223372036854775808}', '{"T":"x"}', '{"T":{}}', '{"T":1.5e300}'],
)
@pytest.mark.parametrize("field", ["topics", "groups", "deletions"])
def test_what_is_no_offset_is_damage(field: str, table: str) -> None:
    with pytest.raises(FormatError):
        decode(f'{{"{field}":{table}}}')


def test_a_changed_table_is_damage_or_has_offsets() -> None:
    dice = random.Random("incarnations")
    data = b'{"dataVersion":{"counter":2},"groups":{"G":53248},"topics":{"T":40960,"U":0}}'
    good = 0
    for _ in range(1000):
        try:
            found = config.decode(changed(data, dice), EndedIncarnations)
        except FormatError:
            continue
        good += 1
        assert all(0 <= each < 1 << 63 for each in [*found.topics.values(), *found.groups.values()])
    assert 0 < good < 1000
