"""Hypothesis strategies for values of the formats."""

from __future__ import annotations

import ipaddress
import struct

from hypothesis import strategies as st

from mqlake.formats import record

INT = st.integers(-(1 << 31), (1 << 31) - 1)
LONG = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def _host(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> str:
    if address.version == 4:
        return f"{address}:{port}"
    # Python 3.14 spells addresses that hold an IPv4 address with dots.
    groups = (f"{group:x}" for group in struct.unpack(">8H", address.packed))
    return f"[{':'.join(groups)}]:{port}"


HOSTS = st.builds(_host, st.ip_addresses(), st.integers(0, (1 << 32) - 1))

_NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02"), min_size=1, max_size=20
)
_VALUES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x02"), min_size=1, max_size=40
)
PROPERTIES = st.dictionaries(_NAMES, _VALUES, max_size=6)

_TOPIC_LETTERS = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\")
TOPICS = st.text(_TOPIC_LETTERS, min_size=1, max_size=250).filter(
    lambda name: len(name.encode()) <= 255 and name not in (".", "..")
)

RECORD_FIELDS = st.fixed_dictionaries(
    {
        "topic": TOPICS,
        "body": st.binary(max_size=300),
        "properties": PROPERTIES,
        "queue_id": INT,
        "queue_offset": LONG,
        "physical_offset": LONG,
        "flag": INT,
        "sys_flag": INT,
        "born_timestamp": LONG,
        "born_host": HOSTS,
        "store_timestamp": LONG,
        "store_host": HOSTS,
        "reconsume_times": INT,
        "prepared_transaction_offset": LONG,
    }
)
RECORDS = RECORD_FIELDS.map(lambda fields: record.encode(**fields))
