"""Work on the videos of a shard, a part file for each, so that a killed job resumes where it was.

A shard's result is an HDF5 file with a group for each video. While the job runs, each group is in
a file of its own under `{result}.parts/`; these survive a kill and are merged at the end. A part
counts as done only when its digest is that of the same settings and the same source.
"""

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py

from actionspan.errors import InputError, JobError
from actionspan.files.storage import create_h5
from actionspan.running.pool import worker_pool
from actionspan.running.progress import progress

Work = Callable[[Any, h5py.Group], None]


def _make_part(task: tuple[Work, Path, str, Any, str]) -> str:
    """Make a video's part unless it is there; return the reason if the input is bad, else ''."""
    work, folder, name, source, part_digest = task
    part = folder / f"{name}.h5"
    if part.exists():
        with h5py.File(part, "r") as file:
            if file.attrs["digest"] == part_digest:
                return str(file.attrs.get("error", ""))
    try:
        with create_h5(part, part_digest) as file:
            work(source, file.create_group(name))
    except JobError:
        raise  # of the disk or of a damaged result, not of this video
    except InputError as error:
        with create_h5(part, part_digest) as file:
            file.attrs["error"] = str(error)
        return str(error)
    return ""


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

    Complete parts are kept. A video for which `work` raises `InputError` gets no group: its reason
    goes to standard error and into the file's attribute `rejected`, a JSON object by video id.

    Args:
        out: The shard's HDF5 file.
        names: Video ids, the group names.
        sources: What `work` gets for each video; must pickle when `processes` > 1.
        digests: For each video, of what its part depends on (settings and source).
        work: A function of (source, group), importable by name when `processes` > 1.
        title: What the work is, for the progress bar.
        processes: How many videos at once; 1 works in this process.
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
    workers = min(processes, len(tasks))
    pool = worker_pool(workers) if workers > 1 else None
    try:
        done = pool.map(_make_part, tasks) if pool else map(_make_part, tasks)
        for name, error in zip(names, progress(done, title, len(tasks)), strict=True):
            if error:
                errors[name] = error
                print(f"rejected {name}: {error}", file=sys.stderr)
    finally:
        if pool:
            pool.shutdown(cancel_futures=True)
    with create_h5(out, settings_digest) as merged:
        merged.attrs["rejected"] = json.dumps(errors)
        merged.attrs.update(attributes or {})
        for name in names:
            if name not in errors:
                with h5py.File(folder / f"{name}.h5", "r") as part:
                    part.copy(name, merged)
    shutil.rmtree(folder)
    return errors
