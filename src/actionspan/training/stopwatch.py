"""Where the seconds of a training go."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from actionspan.parallel.member import Replica


@dataclass
class Stopwatch:
    """Seconds since `begun` (of `time.perf_counter`), and the parts of them `spent` on things."""

    begun: float = field(default_factory=time.perf_counter)
    spent: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, start: float, without: float = 0.0) -> None:
        """Add the time since `start`, less `without` seconds, to `name`."""
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - start - without

    @contextmanager
    def part(self, name: str, replica: Replica) -> Iterator[None]:
        """Add the time of a block to `name`, without the replica's waiting for others in it."""
        start, waited = time.perf_counter(), replica.seconds["exchange"]
        yield
        self.add(name, start, without=replica.seconds["exchange"] - waited)

    def loop(self, items: Iterable[Any], coming: str, work: str, replica: Replica) -> Iterator[Any]:
        """Yield `items`; add the time they take to come to `coming`, the loop's body to `work`."""
        source = iter(items)
        while True:
            start = time.perf_counter()
            item = next(source, None)
            self.add(coming, start)
            if item is None:
                return
            with self.part(work, replica):
                yield item

    def report(self) -> dict[str, float]:
        """Return all seconds: `seconds` in total and `{name}_seconds` for each part."""
        total = time.perf_counter() - self.begun
        return {"seconds": total} | {f"{name}_seconds": part for name, part in self.spent.items()}
