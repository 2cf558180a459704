"""Work on the videos of a shard, one part file a video, so that a killed job resumes where it was.

A shard's result is one HDF5 file with a group for each video. While the job runs, each video's
group lives in a file of its own under `{result}.parts/`; these survive a kill and are merged at
the end. A part counts as done only when its digest names the same settings and the same source.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import h5py

from actionspan.errors import InputError
from actionspan.files.storage import create_h5
from actionspan.running.pool import worker_pool
from actionspan.running.progress import progress

Work = Callable[[Any, h5py.Group], None]


def _make_part(work: Work, folder: Path, name: str, source: Any, part_digest: str) -> str:
    """Make one video's part unless it is there; return the reason if the input is bad, else ''."""
    part = folder / f"{name}.h5"
    if part.exists():
        with h5py.File(part, "r") as file:
            if file.attrs["digest"] == part_digest:
                return str(file.attrs.get("error", ""))
    error = ""
    try:
        with create_h5(part, part_digest) as file:
            work(source, file.create_group(name))
    except InputError as bad:
        error = str(bad)
        with create_h5(part, part_digest) as file:
            file.attrs["error"] = error
    return error


def _call(task: tuple[Any, ...]) -> str:
    return _make_part(*task)


def map_videos(
    out: Path,
    names: Sequence[str],
    sources: Sequence[Any],
    digests: Sequence[str],
    work: Work,
    *,
    title: str,
    processes: int = 1,
    settings_digest: str = "",
    attributes: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Make `out`, an HDF5 file with a group for each video, filled by `work(source, group)`.

    Videos run in `processes` processes; with one, in this process. Parts already whole are kept.
    A video for which `work` raises `InputError` gets no group: its reason goes to standard error
    and into the file's attribute `rejected`, a JSON object by video id.

    Args:
        out: The shard's HDF5 file.
        names: Video ids, the group names.
        sources: What `work` gets for each video; must pickle when `processes` > 1.
        digests: For each video, what its part depends on (settings and source).
        work: A function of (source, group), importable by name when `processes` > 1.
        title: What the work is, for the progress bar.
        processes: How many videos at once.
        settings_digest: Written as the digest of `out`.
        attributes: Further attributes of `out`.

    Returns:
        The reasons of the rejected videos by video id.
    """
    folder = out.with_name(out.name + ".parts")
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [
        (work, folder, name, source, part_digest)
        for name, source, part_digest in zip(names, sources, digests, strict=True)
    ]
    errors: dict[str, str] = {}
    with _executor(min(processes, len(tasks))) as run:
        for name, error in zip(names, progress(run(tasks), title, len(tasks)), strict=True):
            if error:
                errors[name] = error
                print(f"rejected {name}: {error}", file=sys.stderr)
    with create_h5(out, settings_digest) as merged:
        merged.attrs["rejected"] = json.dumps(errors)
        merged.attrs.update(attributes or {})
        for name in names:
            if name not in errors:
                with h5py.File(folder / f"{name}.h5", "r") as part:
                    part.copy(name, merged)
    shutil.rmtree(folder)
    return errors


class _executor:  # noqa: N801 - used as a function
    """`map` over tasks in order: in this process for one, else in a pool of fresh processes."""

    def __init__(self, processes: int) -> None:
        self.pool = worker_pool(processes) if processes > 1 else None

    def __enter__(self) -> Callable[[Sequence[tuple[Any, ...]]], Iterator[str]]:
        return partial(self.pool.map if self.pool else map, _call)  # type: ignore[return-value]

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.pool:
            self.pool.shutdown(cancel_futures=True)


def shard_videos(file: h5py.File) -> list[str]:
    """Return the ids of the videos a shard file holds, sorted."""
    return list(file)
