"""Items made ahead in a thread, so that reading overlaps with work."""

import threading
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


def prefetched(items: Iterator[T], ahead: int = 2) -> Generator[T, None, None]:
    """Yield `items` in their order while a thread makes the next `ahead` items at most.

    The thread starts when the first item is asked for, and alone uses `items` from then on. An
    error of `items` is raised where its item would have come. Closing this generator ends the
    thread after its current item: a `for` loop that ends early does so by itself; where a variable
    holds the generator, `contextlib.closing` does it even after an error.

    Raises:
        ValueError: `ahead` is below 1.
    """
    if ahead < 1:
        raise ValueError(f"ahead is {ahead}: at least 1")
    return _prefetched(items, ahead)


def _prefetched(items: Iterator[T], ahead: int) -> Generator[T, None, None]:
    made: SimpleQueue[tuple[T] | BaseException] = SimpleQueue()  # an error, StopIteration too, ends
    room = threading.Semaphore(ahead)
    stopped = threading.Event()

    def make() -> None:
        try:
            while room.acquire() and not stopped.is_set():
                made.put((next(items),))
        except BaseException as error:
            made.put(error)
        finally:
            if isinstance(items, Generator):
                items.close()

    thread = threading.Thread(target=make, name="prefetched", daemon=True)
    try:
        thread.start()
        while True:
            item = made.get()
            if isinstance(item, StopIteration):
                return
            if isinstance(item, BaseException):
                raise item
            room.release()
            yield item[0]
    finally:
        stopped.set()
        room.release()
        if thread.is_alive():
            thread.join()
