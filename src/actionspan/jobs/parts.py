"""Work on the videos of a shard, a part file for each, so that a killed job can resume.

A shard's result is an HDF5 file with a group for each video. While the job runs, each group has a
file under `{result}.parts/`; these survive a kill and are merged at the end. A part counts as done
only if it is whole and its digest fits the settings and the source. The reason for which a video
was rejected is a part too, so that the next start does not try it again.
"""

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py

from actionspan.errors import InputError, JobError, printable
from actionspan.jobs.apart import Prepare, error_line, is_disk_full, work_apart
from actionspan.jobs.progress import progress
from actionspan.jobs.shards import ShardWork
from actionspan.storage.checksums import CheckedFile
from actionspan.storage.text import file_name
from actionspan.storage.writing import create_h5, open_h5

Work = Callable[[Any, h5py.Group], None]

_REJECTED = "rejected"  # attributes of a file: JSON objects of reasons by video id
_LONGEST = 30_000  # bytes of such an attribute: HDF5 takes no longer one than 64 KiB
_ROWS = 64  # of a part, read at once to see whether it is whole
DAMAGED = (OSError, KeyError, RuntimeError, ValueError, TypeError, AttributeError)
"""What h5py raises at a damaged file, wherever the damage is."""


class _Task(NamedTuple):
    """The input of a process that makes a part."""

    part: Path
    name: str
    source: Any
    digest: str
    keeps_passing: bool


def map_videos(
    out: Path,
    names: Sequence[str],
    sources: Sequence[Any],
    digests: Sequence[str],
    work: Work,
    *,
    title: str,
    how: ShardWork | None = None,
    prepare: Prepare | None = None,
    settings_digest: str = "",
    attributes: Mapping[str, str] | None = None,
    before: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Make `out`, an HDF5 file with a group for each video, filled by `work(source, group)`.

    Complete parts are kept. A video gets no group if its work fails in any way, crashes its process
    or stalls: the reason goes to standard error and into the file, for `rejected_videos`.

    Args:
        out: The shard's HDF5 file.
        names: Video ids, the group names.
        sources: What `work` gets for each video; must pickle.
        digests: For each video, of what its part depends on (settings and source).
        work: A function of (source, group), importable by name: it runs in other processes.
        title: Name of the work, for the progress bar.
        how: How many videos at once, and what happens where work fails.
        prepare: Called first in each process; its exceptions are not a video's fault.
        settings_digest: Written as the digest of `out`.
        attributes: Further attributes of `out`.
        before: The reasons of videos that earlier steps rejected, which go into `out` too.

    Returns:
        The reasons of the rejected videos by video id.

    Raises:
        JobError: The disk is full, `prepare` failed or somebody ended a process; parts are kept.
        InputError: A video was rejected and `how.faults` asks to stop; the other parts are kept.
    """
    # 1. a part for each video
    how = how or ShardWork()
    faults = how.faults
    folder = out.with_name(out.name + ".parts")
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [
        _Task(folder / f"{file_name(name)}.h5", name, source, part, faults.on_bad_input == "skip")
        for name, source, part in zip(names, sources, digests, strict=True)
    ]
    done = work_apart(
        partial(_make_part, work),
        tasks,
        prepare=prepare,
        processes=how.processes,
        stall_seconds=faults.stall_seconds,
    )
    # 2. the reasons of those that failed, kept as parts too
    found: dict[str, str] = {}
    for index, outcome in progress(done, title, len(tasks)):
        task, reason = tasks[index], outcome.value or outcome.reason
        if reason:
            found[task.name] = printable(reason)
            print(f"rejected {printable(task.name)}: {found[task.name]}", file=sys.stderr)
        if outcome.reason:
            if shutil.disk_usage(folder).free < 1 << 20:  # HDF5 may crash on a full disk
                raise JobError(f"{folder}: the disk is full; make room and run it again")
            with create_h5(task.part, task.digest) as file:
                file.attrs.update(error=printable(reason), passing=outcome.passing)
    errors = {name: found[name] for name in names if name in found}
    if errors and faults.on_bad_input == "fail":
        raise InputError(
            f"{out}: {len(errors)} rejected (above); correct them, or skip them with on_bad_input "
            "skip; the finished ones are kept for the next start"
        )
    # 3. one file of all parts
    with create_h5(out, settings_digest) as merged:
        merged.attrs.update(_packed({**(before or {}), **errors}))
        merged.attrs.update(attributes or {})
        for task in tasks:
            if task.name not in errors:
                with open_h5(task.part) as part:
                    part.copy(task.name, merged)
    shutil.rmtree(folder)
    return errors


def rejected_videos(file: h5py.File) -> dict[str, str]:
    """Return the reasons of the videos that a shard lacks, reasons of earlier steps first."""
    reasons: dict[str, str] = {}
    for key in sorted(key for key in file.attrs if key.split(" ")[0] == _REJECTED):
        reasons |= json.loads(file.attrs[key])
    return reasons


def take_over(path: Path, name: str, target: h5py.Group, key: str) -> bool:
    """Copy a video's group of another result to `target[key]`, replacing the one there.

    Nothing is copied, and the answer is false, if it is not whole by its checksums.

    Raises:
        JobError: The file was damaged between its check and the copy.
    """
    with ExitStack() as opened:
        try:
            if not opened.enter_context(closing(CheckedFile(path))).has_checksums:
                return False  # somebody changed it
            file = opened.enter_context(open_h5(path))
            _read_all(file[name])
        except (*DAMAGED, InputError):
            return False
        if key in target:
            del target[key]
        file.copy(name, target, key)
    return True


def _packed(reasons: Mapping[str, str]) -> dict[str, str]:
    """Return attributes that hold the reasons, several where one would be too long."""
    packs: dict[str, dict[str, str]] = {_REJECTED: {}}
    size, key = 0, _REJECTED
    for name, reason in reasons.items():
        length = len(json.dumps({name: reason}))
        if size + length > _LONGEST:
            size, key = 0, f"{_REJECTED} {len(packs):06d}"
        packs.setdefault(key, {})[name] = reason
        size += length
    return {key: json.dumps(pack) for key, pack in packs.items()}


def _make_part(work: Work, task: _Task) -> str:
    """Make a video's part unless it is there; return the reason that it holds, or ''."""
    kept = _kept(task)
    if kept is not None:
        return kept
    own: BaseException | None = None  # an error of the work, not of the file around it
    try:
        with create_h5(task.part, task.digest) as file:
            try:
                work(task.source, file.create_group(task.name))
            except BaseException as error:
                own = error
                raise
    except Exception as error:
        if own is None and not isinstance(error, InputError) and not is_disk_full(error):
            raise JobError(f"{task.part}: cannot be written: {error_line(error)}") from error
        raise
    return ""


def _kept(task: _Task) -> str | None:
    """Return the reason that a part holds, '' if it holds the group, None if it does not count."""
    # under another name while it is read: one that crashes HDF5 is not met again
    looked_at = task.part.with_suffix(".looked_at")
    try:
        task.part.replace(looked_at)
        with open_h5(looked_at) as file:
            if file.attrs["digest"] != task.digest:
                return None
            if "error" in file.attrs:
                if file.attrs["passing"] and not task.keeps_passing:
                    return None
                reason = str(file.attrs["error"])
            else:
                reason = ""
                _read_all(file[task.name])
    except (*DAMAGED, InputError):
        return None
    looked_at.replace(task.part)
    return reason


def _read_all(group: h5py.Group) -> None:
    """Read everything in a group: h5py raises an error where it is damaged."""

    def read(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            for start in range(0, len(item) if item.shape else 0, _ROWS):
                item[start : start + _ROWS]

    dict(group.attrs)
    group.visititems(read)
