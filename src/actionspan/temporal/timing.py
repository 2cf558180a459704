"""Where the seconds of a training run go."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Stopwatch:
    """Seconds since it was made, and the parts of them spent on named things."""

    begun: float = field(default_factory=time.perf_counter)
    spent: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, begun: float) -> None:
        """Add the time since `begun` (of `time.perf_counter`) to `name`."""
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - begun

    def waiting(self, items: Iterable[Any], name: str) -> Iterator[Any]:
        """Yield `items`; the time each takes to come is added to `name`."""
        source = iter(items)
        while True:
            begun = time.perf_counter()
            item = next(source, None)
            self.add(name, begun)
            if item is None:
                return
            yield item

    def report(self) -> dict[str, float]:
        """Return all seconds: `seconds` in total and `{name}_seconds` for each part."""
        total = time.perf_counter() - self.begun
        return {"seconds": total} | {f"{name}_seconds": part for name, part in self.spent.items()}
