"""Which trimmed clips a folder holds, their classes and subsets, and the settings of clips.

The Snakefile imports this module each time it is read, so it must stay quick to import and to run
over tens of thousands of files. A folder has one of two formats:

- `CLASS/clip.avi`, as UCF101 and HMDB51 come; split files may list which clip is in which subset,
  else some groups of each class are held out;
- `training/CLASS/clip.avi` and `validation/CLASS/clip.avi`; without validation, groups of training
  are held out.

Split files of UCF101, split n: `trainlist0n.txt` and `testlist0n.txt` with lines `Class/v_x.avi 1`,
where the number is optional and the class's in `classInd.txt` (`1 Class`). HMDB51, split n: for
each class `{class}_test_splitn.txt` with lines `name.avi 1`: 1 is for training, 2 for testing, 0
for neither. Their testing clips measure a classifier: our subset `validation`.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from actionspan.dataset.sharding import find_videos, scan_videos
from actionspan.errors import InputError, printable
from actionspan.settings import Checked, option
from actionspan.storage.text import hash_of, read_utf8
from actionspan.video.settings import JPEG_BLOCK, JPEG_LONGEST

BACKGROUND = "background"  # the class of stretches without an action; always the last
_SUBSETS = {"training", "validation", "testing"}  # as in the canonical tables
_FORMS = "expected CLASS/clip.avi, or training/CLASS/clip.avi and validation/CLASS/clip.avi"
# UCF101 and UCF11 cut several clips out of one recording: v_Archery_g01_c02, v_biking_01_02
_GROUPED = re.compile(r"(v_.+_g?\d+)_c?\d+")
_LONGEST_ID = 240  # bytes: the id is the name of a file while the clip is stored
_EXPECTED = (
    "expected trainlist0{0}.txt and testlist0{0}.txt of UCF101, or {{class}}_test_split{0}.txt of "
    "HMDB51"
)
_HMDB_SUBSETS = {"0": "", "1": "training", "2": "validation"}


@dataclass(frozen=True, kw_only=True)
class ClipSettings(Checked):
    """The stored form of a clip, and the choice of clips from untrimmed videos and folders."""

    stack: int = option(
        10,
        "L, flow fields at a position of a trimmed clip, and in all videos where features are "
        "scores; otherwise segments of untrimmed videos have the L of the video stage",
        least=1,
    )
    snippet_frames: int = option(
        8, "distance between the stored positions of a trimmed clip", unit="frames", least=1
    )
    height: int = option(
        256, "height of stored frames and flow, a multiple of 8", unit="pixels", least=32
    )
    width: int = option(
        340, "their width, at least the height", unit="pixels", least=32, most=JPEG_LONGEST
    )
    jpeg_quality: int = option(90, "JPEG quality of stored frames and flow", least=1, most=100)
    background: bool = option(
        True, "stretches of videos between instances are clips of the class background"
    )
    background_margin: float = option(
        0.5, "distance of background from the nearest instance", unit="seconds", least=0
    )
    background_ratio: float = option(
        1.0,
        "most background clips of a video for each instance; inf (YAML: .inf): all",
        above=0,
        also=float("inf"),
    )
    validation_fraction: float = option(
        0.25,
        "share of each class's clips, or of the training videos, held out for validation where no "
        "split or subset folder names them",
        least=0,
        below=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.height % JPEG_BLOCK:
            # the planes of a position are one image: no block of it may hold two of them
            raise ValueError(f"height {self.height}: must be a multiple of {JPEG_BLOCK}")
        if self.height > self.width:
            raise ValueError(f"width {self.width}: at least the height, {self.height}")
        if 2 * self.stack * self.height > JPEG_LONGEST:
            most = JPEG_LONGEST // (2 * self.height)
            raise ValueError(f"stack {self.stack}: at most {most} planes of such a height fit")


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
        folder: In one of the formats above.
        splits: Folder of split files, which choose and divide the clips.
        split: Which of the splits.
        fraction: Of the groups of each class, held out for validation where neither split files
            nor folders name them; a clip without a group is its own.

    Raises:
        InputError: The folder or the split files have another format, or a clip that the split
            names is missing.
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


def excluded_files(folder: Path) -> dict[str, str]:
    """Return the video files of a folder's classes that `list_clips` passes over, and why."""
    reasons: dict[str, str] = {}
    for name in _folders(folder):
        for each in [name, *(f"{name}/{inner}" for inner in _folders(folder / name))]:
            reasons |= scan_videos(folder / each)[1]
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
    return sorted(names, key=lambda name: (hash_of(f"held out {name}"), name))[:count]


def _folders(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted, without hidden ones."""
    try:
        with os.scandir(folder) as entries:
            return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    except OSError as error:
        raise InputError(f"{folder}: not a folder of clips: {error.strerror}") from None


def _read_classes(root: Path, folder: Path, subset: str) -> list[TrimmedClip]:
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
    for (label, stem), (subset, where) in _read_splits(splits, split).items():
        if label not in classes:
            raise InputError(f"{where}: class {label}: no such folder in {folder}")
        if label not in videos:
            videos[label] = find_videos(folder / label)
        if stem not in videos[label]:
            raise InputError(f"{where}: {label}/{stem}: no such clip in {folder}")
        clips.append(_clip(folder, videos[label][stem], subset))
    return sorted(clips)


# the subset of a clip and its line in the file, by class and name without suffix
_Entries = dict[tuple[str, str], tuple[str, str]]


def _read_splits(folder: Path, split: int) -> _Entries:
    """Return the subset, `training` or `validation`, of each clip of a split."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of split files; {_EXPECTED.format(split)}")
    entries: _Entries = {}
    lists = [folder / f"{name}list{split:02d}.txt" for name in ("train", "test")]
    if any(path.is_file() for path in lists):
        _read_ucf101(folder / "classInd.txt", lists, entries)
    else:
        ending = f"_test_split{split}.txt"
        files = sorted(path for path in folder.iterdir() if path.name.endswith(ending))
        if not files:
            raise InputError(f"{folder}: no files of split {split}; {_EXPECTED.format(split)}")
        for path in files:
            _read_hmdb51(path, path.name.removesuffix(ending), entries)
    for subset in ("training", "validation"):
        if all(known != subset for known, _ in entries.values()):
            raise InputError(f"{folder}: split {split} has no {subset} clip")
    return entries


def _read_ucf101(index: Path, lists: list[Path], entries: _Entries) -> None:
    numbers = {}
    if index.is_file():
        for where, words in _lines(index):
            if len(words) != 2 or not words[0].isdigit():
                raise InputError(f"{where}: {' '.join(words)!r} is not a number and a class")
            numbers[words[1]] = words[0]
    for path, subset in zip(lists, ("training", "validation"), strict=True):
        for where, words in _lines(path):
            label, slash, name = words[0].partition("/")
            if len(words) > 2 or not slash or not label or not name or "/" in name:
                raise InputError(f"{where}: {' '.join(words)!r} is not Class/clip.avi and a number")
            if numbers and label not in numbers:
                raise InputError(f"{where}: class {label} is not in {index}")
            if numbers and len(words) == 2 and words[1] != numbers[label]:
                raise InputError(f"{where}: class {label} is {numbers[label]} in {index}")
            _add(entries, label, name, subset, where)


def _read_hmdb51(path: Path, label: str, entries: _Entries) -> None:
    for where, words in _lines(path):
        # names hold spaces in some copies; the last word is the number
        if len(words) < 2 or words[-1] not in _HMDB_SUBSETS:
            raise InputError(f"{where}: {' '.join(words)!r} is not clip.avi and 0, 1 or 2")
        if subset := _HMDB_SUBSETS[words[-1]]:
            _add(entries, label, " ".join(words[:-1]), subset, where)


def _add(entries: _Entries, label: str, name: str, subset: str, where: str) -> None:
    # clips may have been converted: the suffix does not count
    clip = label, Path(name).stem
    if clip in entries:
        raise InputError(f"{where}: {label}/{name} is in {entries[clip][1]} too")
    entries[clip] = subset, where


def _lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield where each line of words is, and its words."""
    for number, line in enumerate(read_utf8(path).splitlines(), start=1):
        if words := line.split():
            yield f"{path}: row {number}", words
