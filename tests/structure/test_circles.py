"""No files import each other in a circle, not even for types or inside of functions."""

from __future__ import annotations

from collections.abc import Mapping

from tests.structure.package import imports, modules


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []
    for root in arrows:
        if root in order:
            continue
        stack = [(root, iter(sorted(arrows[root])))]
        order[root] = low[root] = len(order)
        path.append(root)
        while stack:
            node, rest = stack[-1]
            for following in rest:
                if following not in order:
                    order[following] = low[following] = len(order)
                    path.append(following)
                    stack.append((following, iter(sorted(arrows[following]))))
                    break
                if following in path:
                    low[node] = min(low[node], order[following])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[node])
                if low[node] == order[node]:
                    at = path.index(node)
                    found.append(sorted(path[at:]))
                    del path[at:]
    return [circle for circle in found if len(circle) > 1]


def test_a_circle_is_found() -> None:
    arrows = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set[str]()}
    assert circles(arrows) == [["a", "b", "c"]]


def test_no_files_import_each_other_in_a_circle() -> None:
    known = modules()
    arrows = {
        name: set(imports(path, known)) & known.keys() - {name} for name, path in known.items()
    }
    assert circles(arrows) == []
