from __future__ import annotations

from mqlake.console.sql.chart import chart_of
from mqlake.console.sql.statement import SqlResult


def result(types: list[str], rows: list[list[object]]) -> SqlResult:
    return SqlResult([f"c{number}" for number in range(len(types))], types, rows)


def test_numbers_over_times_are_lines_in_the_order_of_time() -> None:
    found = chart_of(
        result(
            ["TIMESTAMP WITH TIME ZONE", "BIGINT", "VARCHAR"],
            [["2026-01-01 00:00:02+00:00", 5, "x"], ["2026-01-01 00:00:01+00:00", None, "y"]],
        )
    )
    assert found is not None
    first, second = found["values"]
    assert first == [1767225601.0, 1767225602.0]
    assert second == [None, 5]
    assert (found["time"], found["series"]) == (True, [{"label": "c1"}])


def test_texts_and_single_rows_have_no_chart() -> None:
    assert chart_of(result(["VARCHAR", "BIGINT"], [["a", 1], ["b", 2]])) is None
    assert chart_of(result(["BIGINT", "VARCHAR"], [[1, "a"], [2, "b"]])) is None
    assert chart_of(result(["BIGINT", "BIGINT"], [[1, 1]])) is None
    assert chart_of(result(["BIGINT"], [[1], [2]])) is None
    assert chart_of(SqlResult(error="no")) is None
