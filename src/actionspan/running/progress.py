"""A progress bar on a terminal, and a line for every tenth of the work in a log file."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

from actionspan.running.doing import doing

Item = TypeVar("Item")


def progress(items: Iterable[Item], title: str, total: int, unit: str = "video") -> Iterator[Item]:
    """Yield `items` and show on standard error how far the loop is.

    `title` is what the loop does, e.g. `"decoding"`, and `unit` what an item is.
    """
    doing(title)
    if sys.stderr.isatty():
        yield from tqdm(items, desc=title, total=total, unit=unit, leave=False)
        return
    started, shown = time.monotonic(), 0
    for count, item in enumerate(items, start=1):
        yield item
        if count * 10 // max(total, 1) > shown or count == total:
            shown = count * 10 // max(total, 1)
            seconds = time.monotonic() - started
            print(f"{title}: {count}/{total} {unit}s in {seconds:.1f} s", file=sys.stderr)
