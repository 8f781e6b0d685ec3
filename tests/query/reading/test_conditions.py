"""Conditions that are values of their own."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mqlake.query.reading.conditions import TopicShare


@given(
    topics=st.sets(st.text(), max_size=20),
    count=st.integers(1, 5),
    known=st.dictionaries(st.text(), st.integers(0, 4)),
)
def test_each_topic_is_in_one_group(topics: set[str], count: int, known: dict[str, int]) -> None:
    groups = {topic: number % count for topic, number in known.items()}
    shares = [TopicShare(groups, count, number) for number in range(count)]
    for topic in topics | set(groups):
        assert sum(share.holds(topic) for share in shares) == 1
    assert all(shares[number].holds(topic) for topic, number in groups.items())
