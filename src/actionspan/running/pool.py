"""Worker processes that never outlive this process."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor


def worker_pool(processes: int) -> ProcessPoolExecutor:
    """Return a pool of fresh processes that end with this process, even when it is killed.

    Workers of a killed job would otherwise go on, hold memory, and write to the same files as the
    next start of the job.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent)


def end_with_parent() -> None:
    """End this process when its parent ends, whatever it is doing."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
