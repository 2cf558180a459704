"""What this process is doing, and how far it is.

It is a progress bar on a terminal and a line for every tenth of the work in a log file. Its
work is noted where the process that watches it can read the note after a kill.
"""

import mmap
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], title: str, total: int, unit: str = "video") -> Iterator[Item]:
    """Yield `items` and show on standard error how far the loop is, under its `title`."""
    doing(title)
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, desc=title, total=total, unit=unit, leave=False)
        return
    started, shown = time.monotonic(), 0
    for count, item in enumerate(items, start=1):
        yield item
        if count * 10 // max(total, 1) > shown or count == total:
            shown = count * 10 // max(total, 1)
            seconds = time.monotonic() - started
            print(f"{title}: {count}/{total} {unit}s in {seconds:.1f} s", file=sys.stderr)


@contextmanager
def video_progress(title: str, *, quiet: bool = False) -> Iterator[Callable[[float, float], None]]:
    """Yield a function that shows how much of a video is done, given that and its length.

    Both are in seconds. On a terminal it moves a bar, elsewhere it prints the first call and a line
    for each tenth; nothing if `quiet`. `title` precedes the figures.
    """
    from tqdm import tqdm

    doing(title)
    started, shown = time.monotonic(), -1
    on_terminal = sys.stderr.isatty()
    look = "{desc}: {percentage:3.0f}%|{bar}| {postfix}"
    hidden = quiet or not on_terminal
    with tqdm(desc=title, leave=False, bar_format=look, disable=hidden) as bar:

        def show(done: float, length: float) -> None:
            nonlocal shown
            done = min(done, length)
            speed = done / max(time.monotonic() - started, 1e-9)
            left = f", {clock((length - done) / speed)} left" if speed > 0 else ""
            state = f"{clock(done)} of {clock(length)}, {speed:.1f} x real time{left}"
            tenth = int(10 * done / length) if length > 0 else 10
            if not hidden:
                bar.total = length
                bar.set_postfix_str(state, refresh=False)
                bar.update(done - bar.n)
            elif not quiet and tenth > shown:
                shown = tenth
                print(f"{title}: {state}", file=sys.stderr, flush=True)

        yield show


def clock(seconds: float) -> str:
    """Return a time as m:ss or h:mm:ss."""
    minutes, second = divmod(round(max(seconds, 0.0)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


_SIZE = 200
_board: mmap.mmap | None = None


def make_board() -> mmap.mmap:
    """Return memory that a child process of this one shares."""
    global _board
    _board = mmap.mmap(-1, _SIZE)
    return _board


def doing(what: str) -> None:
    """Note what this process is doing, e.g. "training, epoch 3", if another watches."""
    if _board is not None:
        _board[:] = what.encode()[:_SIZE].ljust(_SIZE)


def last_activity(board: mmap.mmap) -> str:
    """Return the last note of the child, or ""."""
    return board[:].decode(errors="ignore").strip("\0 ")
