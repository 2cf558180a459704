"""Which trimmed clips a folder holds, their classes and subsets; standard library only.

The Snakefile imports this module each time it is read, so it must stay quick to import and to run
over tens of thousands of files. A folder has one of two forms:

- `CLASS/clip.avi`, as UCF101 and HMDB51 come; split files may say which clip is in which subset
  (`actionspan.recognition.split_files`), else some groups of each class are held out;
- `training/CLASS/clip.avi` and `validation/CLASS/clip.avi`; without validation, groups of training
  are held out.
"""

import hashlib
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from actionspan.dataset.sharding import find_videos, left_out
from actionspan.errors import InputError, printable
from actionspan.recognition.split_files import read_splits

_SUBSETS = {"training", "validation", "testing"}  # as in the canonical tables
_FORMS = "expected CLASS/clip.avi, or training/CLASS/clip.avi and validation/CLASS/clip.avi"
# UCF101 and UCF11 cut several clips out of one recording: v_Archery_g01_c02, v_biking_01_02
_GROUPED = re.compile(r"(v_.+_g?\d+)_c?\d+")
_LONGEST_ID = 240  # bytes: the id is the name of a file while the clip is stored


class TrimmedClip(NamedTuple):
    """A file that shows one action from its start to its end."""

    clip_id: str  # its path in the folder with dots for slashes and without suffix
    path: Path
    label: str
    subset: str


def list_clips(
    folder: Path, splits: Path | None = None, split: int = 1, fraction: float = 0.25
) -> list[TrimmedClip]:
    """Return the clips of a folder, sorted by id.

    Args:
        folder: In one of the forms above.
        splits: Folder of split files, which choose and divide the clips.
        split: Which of the splits.
        fraction: Of the groups of each class, held out for validation where neither split files
            nor folders say which; a clip without a group is its own.

    Raises:
        InputError: The folder or the split files have another form, or a clip that the split names
            is missing.
    """
    classes = _folders(folder)
    by_subset = bool(classes) and set(classes) <= _SUBSETS
    if splits is not None:
        if by_subset:
            raise InputError(
                f"{folder}: split files divide clips in CLASS/clip.avi; this folder is divided "
                f"into {', '.join(classes)}: leave the split files out"
            )
        return _split(folder, classes, splits, split)
    if not by_subset:
        return sorted(_hold_out(_read_classes(folder, folder, "training"), fraction))
    if "training" not in classes:
        raise InputError(f"{folder}: no folder training; {_FORMS}")
    clips = {subset: _read_classes(folder, folder / subset, subset) for subset in classes}
    if "validation" not in clips:
        clips["training"] = _hold_out(clips["training"], fraction)
    return sorted(clip for subset in clips.values() for clip in subset)


def files_left_out(folder: Path) -> dict[str, str]:
    """Return the video files of a folder's classes that `list_clips` passes over, and why."""
    reasons: dict[str, str] = {}
    for name in _folders(folder):
        for each in [name, *(f"{name}/{inner}" for inner in _folders(folder / name))]:
            reasons |= left_out(folder / each)
    return reasons


def group_of(stem: str) -> str:
    """Return the recording a clip was cut from, by UCF's names, else the clip's own name."""
    match = _GROUPED.fullmatch(stem)
    return match[1] if match else stem


def held_out_names(names: Collection[str], fraction: float) -> list[str]:
    """Return which of different names are held out for validation, whatever their order.

    They are the first by a hash: `fraction` of all, rounded, but at least one of two or more where
    `fraction` is above 0, and never all.
    """
    if fraction == 0 or len(names) < 2:
        return []
    count = min(max(1, round(fraction * len(names))), len(names) - 1)
    return sorted(names, key=lambda name: (stable_hash("held out", name), name))[:count]


def stable_hash(*parts: str) -> bytes:
    """Return bytes that follow from some text, the same on every machine."""
    return hashlib.sha256(" ".join(parts).encode("utf-8", "surrogateescape")).digest()


def _folders(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted; hidden ones do not count."""
    try:
        with os.scandir(folder) as entries:
            return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder}: not a folder of clips: {error.strerror}") from None


def _read_classes(root: Path, folder: Path, subset: str) -> list[TrimmedClip]:
    """Return the clips of a folder of classes, in or below the root, all in one subset."""
    labels = _folders(folder)
    if not labels:
        raise InputError(f"{folder}: no folder of a class; {_FORMS}")
    clips = []
    for label in labels:
        videos = find_videos(folder / label)
        if not videos:
            raise InputError(f"{folder / label}: no video; {_FORMS}")
        clips += [_clip(root, path, subset) for path in videos.values()]
    return clips


def _clip(root: Path, path: Path, subset: str) -> TrimmedClip:
    folders = path.parts[len(root.parts) : -1]
    clip_id = ".".join((*folders, path.stem))
    for what, text in (("class", folders[-1]), ("clip", clip_id)):
        if not text.isprintable():
            raise InputError(
                f"{printable(str(path))}: the name of the {what} is not UTF-8 or holds a control "
                "character; rename it"
            )
    if len(clip_id.encode()) > _LONGEST_ID:
        raise InputError(f"{path}: class and name are longer than {_LONGEST_ID} bytes; rename it")
    return TrimmedClip(clip_id, path, folders[-1], subset)


def _hold_out(clips: Sequence[TrimmedClip], fraction: float) -> list[TrimmedClip]:
    """Put some groups of each class into the subset validation."""
    groups: dict[str, set[str]] = {}
    for clip in clips:
        groups.setdefault(clip.label, set()).add(group_of(clip.path.stem))
    held_out = {label: set(held_out_names(names, fraction)) for label, names in groups.items()}
    return [
        clip._replace(subset="validation")
        if group_of(clip.path.stem) in held_out[clip.label]
        else clip
        for clip in clips
    ]


def _split(folder: Path, classes: Sequence[str], splits: Path, split: int) -> list[TrimmedClip]:
    """Return the clips that split files name; others in the folder do not count."""
    videos: dict[str, Mapping[str, Path]] = {}
    clips = []
    for (label, stem), entry in read_splits(splits, split).items():
        if label not in classes:
            raise InputError(f"{entry.where}: class {label}: no such folder in {folder}")
        if label not in videos:
            videos[label] = find_videos(folder / label)
        if stem not in videos[label]:
            raise InputError(f"{entry.where}: {label}/{stem}: no such clip in {folder}")
        clips.append(_clip(folder, videos[label][stem], entry.subset))
    return sorted(clips)
