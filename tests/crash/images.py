"""What a crash may leave of a disk."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tests.crash.pending import PAGE_SECTORS, PendingDisk
from tests.crash.snapshot import Snapshot
from tests.crash.trace import ROOT, Step, Write

_BARE = 0.2


class Limits(NamedTuple):
    """How many images of one moment are looked at."""

    exhaustive: int
    """All combinations, where there are no more than this."""
    single: int
    """Else the plainest, and twice so many of which just one thing is lost, or survived,"""
    samples: int
    """and so many at random."""


def killed_within(now: Snapshot, before: Snapshot, last: Step | None) -> Iterator[Snapshot]:
    """Yield what the end of the process leaves that was changing a mapping, or appending.

    Args:
        now, before: the disk, and what it was before the last step.
        last: the last step.
    """
    if not isinstance(last, Write):
        return
    old, new = (snapshot.contents[last.node] for snapshot in (before, now))
    end, length = last.offset + len(last.data), len(last.data)
    if len(new) > len(old):
        for cut in (last.offset + 1, last.offset + length // 2, end - 1):
            yield Snapshot(now.folders, {**now.contents, last.node: new[: max(cut, len(old))]})
    if not last.is_mapped:
        return
    for cut in {last.offset + length // 3, last.offset + length // 2, end - length // 3}:
        for data in (new[:cut] + old[cut:], old[:cut] + new[cut:]):
            yield Snapshot(now.folders, {**now.contents, last.node: data})


class _Point(NamedTuple):
    """One thing that may be found in several ways after a power cut."""

    kind: str
    node: int
    key: str | int
    ways: int


Choice = Mapping[_Point, int]


@dataclass
class PowerCuts:
    """What the end of the machine may leave of a disk."""

    disk: PendingDisk

    def __post_init__(self) -> None:
        self.points = list(self._find_points())
        self.combinations = math.prod(point.ways for point in self.points)

    def _find_points(self) -> Iterator[_Point]:
        for node in sorted(self._reachable()):
            if (folder := self.disk.folders.get(node)) is not None:
                for name in folder.changed():
                    yield _Point("name", node, name, len(folder.names[name]))
                continue
            file = self.disk.files[node]
            if len(file.sizes) > 1:
                yield _Point("size", node, 0, len(file.sizes))
            for number in file.changed():
                yield _Point("sector", node, number, len(file.sectors[number]))

    def _reachable(self) -> set[int]:
        found, todo = {ROOT}, [ROOT]
        while todo:
            folder = self.disk.folders.get(todo.pop())
            if folder is not None:
                nodes = {*folder.now.values(), *itertools.chain(*folder.names.values())} - {None}
                todo += (
                    fresh := [node for node in nodes if node is not None and node not in found]
                )
                found.update(fresh)
        return found

    def images(self, dice: random.Random, limits: Limits) -> Iterator[Snapshot]:
        """Yield images: all, or first the plainest, then some of which one thing is odd, then any.

        The same dice give the same ones. One image may come more than once.
        """
        if self.combinations <= limits.exhaustive:
            for ways in itertools.product(*(range(point.ways) for point in self.points)):
                yield self.build(dict(zip(self.points, ways, strict=True)))
            return
        for choice in itertools.chain(self._plain(), self._single(dice, limits.single)):
            yield self.build(choice)
        for _ in range(limits.samples):
            yield self.build(self._any(dice))

    def draw(self, dice: random.Random) -> Snapshot:
        """Return one image: in one of five cases with nothing but what is certain, else any."""
        if dice.random() < _BARE:
            return self.build(self._all(name=True, size=True, sector=True))
        return self.build(self._any(dice))

    def _all(self, **old: bool) -> dict[_Point, int]:
        """Choose the newest of everything, the oldest of the kinds that are true."""
        return {point: 0 if old.get(point.kind) else point.ways - 1 for point in self.points}

    def _plain(self) -> Iterator[Choice]:
        yield self._all(name=True, size=True, sector=True)
        yield self._all(name=True)
        yield self._all(size=True, sector=True)
        yield self._all(sector=True)
        yield self._all()

    def _single(self, dice: random.Random, count: int) -> Iterator[Choice]:
        lost, kept = self._all(), self._all(sector=True)
        for point in dice.sample(self.points, min(count, len(self.points))):
            yield {**lost, point: dice.randrange(point.ways - 1)}
            yield {**kept, point: dice.randrange(point.ways - 1) + 1}

    def _any(self, dice: random.Random) -> Choice:
        by_page, newness = dice.random() < 0.5, dice.choice((0.1, 0.5, 0.9))
        names = dice.choice((0.5, 0.9, 1))
        pages: dict[tuple[int, int], bool] = {}
        choice: dict[_Point, int] = {}
        for point in self.points:
            if point.kind == "sector" and by_page:
                page = point.node, int(point.key) // PAGE_SECTORS
                is_new = pages.setdefault(page, dice.random() < newness)
                choice[point] = point.ways - 1 if is_new else 0
            elif dice.random() < (newness if point.kind == "sector" else names):
                choice[point] = point.ways - 1
            else:
                choice[point] = dice.randrange(point.ways - 1)
        return choice

    def _with_whole_renames(self, choice: Choice) -> Choice:
        """Let no directory have two names, nor none after a rename: file systems see to that.

        Of files they do, too, but nobody is to rely on it.
        """
        slots: dict[int, list[_Point]] = {}
        for point in self.points:
            if point.kind == "name":
                for node in {*self.disk.folders[point.node].names[str(point.key)]}:
                    if node in self.disk.folders:
                        slots.setdefault(node, []).append(point)
        moved = {node: points for node, points in slots.items() if self._is_moved(node, points)}
        chosen, is_settled = dict(choice), not moved
        while not is_settled:
            is_settled = True
            for node, points in moved.items():
                is_settled &= self._settle(node, points, chosen)
        return chosen

    def _values(self, point: _Point) -> list[int | None]:
        return self.disk.folders[point.node].names[str(point.key)]

    def _places(self, node: int) -> list[tuple[int, str]]:
        """Return where a directory is now."""
        return [
            (above, name)
            for above, folder in self.disk.folders.items()
            for name, there in folder.now.items()
            if there == node
        ]

    def _is_moved(self, node: int, points: list[_Point]) -> bool:
        places = {(point.node, str(point.key)) for point in points}
        return len({*places, *self._places(node)}) > 1

    def _settle(self, node: int, points: list[_Point], chosen: dict[_Point, int]) -> bool:
        """Choose later values until the directory has one name; say whether it had."""
        named = [point for point in points if self._values(point)[chosen[point]] == node]
        places = self._places(node)
        pending = {(point.node, str(point.key)) for point in points}
        is_certain = any(place not in pending for place in places)
        if len(named) + is_certain == 1 or not places:
            return True
        if not named:
            [point] = [point for point in points if (point.node, str(point.key)) in places]
            values = self._values(point)
            chosen[point] = len(values) - 1 - values[::-1].index(node)
            return False
        for point in named:
            if (point.node, str(point.key)) not in places:
                values = self._values(point)
                chosen[point] = len(values) - 1 - values[::-1].index(node) + 1
        return False

    def build(self, choice: Choice) -> Snapshot:
        """Return the image in which each point is found in its chosen way."""
        choice = self._with_whole_renames(choice)
        names: dict[int, dict[str, int | None]] = {}
        sizes: dict[int, int] = {}
        sectors: dict[int, dict[int, bytes]] = {}
        for (kind, node, key, _), way in choice.items():
            if kind == "name":
                names.setdefault(node, {})[str(key)] = self.disk.folders[node].names[str(key)][way]
            elif kind == "size":
                sizes[node] = self.disk.files[node].sizes[way]
            else:
                sectors.setdefault(node, {})[int(key)] = self.disk.files[node].sectors[int(key)][
                    way
                ]
        return Snapshot(
            {node: folder.build(names.get(node, {})) for node, folder in self.disk.folders.items()},
            {
                node: file.whole()
                if file.is_certain
                else file.build(sizes.get(node, file.sizes[0]), sectors.get(node, {}))
                for node, file in self.disk.files.items()
            },
        )
