"""The split files of UCF101 and HMDB51: which clip is in which subset; standard library only.

UCF101, split n: `trainlist0n.txt` and `testlist0n.txt` with lines `Class/v_x.avi 1`, where the
number is optional and the class's in `classInd.txt` (`1 Class`). HMDB51, split n: for each class
`{class}_test_splitn.txt` with lines `name.avi 1`: 1 is for training, 2 for testing, 0 for neither.

What these call testing is what a classifier is measured on: our subset `validation`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from actionspan.errors import InputError
from actionspan.files.text import read_utf8

_EXPECTED = (
    "expected trainlist0{0}.txt and testlist0{0}.txt of UCF101, or {{class}}_test_split{0}.txt of "
    "HMDB51"
)
_HMDB_SUBSETS = {"0": "", "1": "training", "2": "validation"}


class Entry(NamedTuple):
    """The subset of a clip, and the line that says so, for messages."""

    subset: str
    where: str


Entries = dict[tuple[str, str], Entry]  # by class and name without suffix


def read_splits(folder: Path, split: int) -> Entries:
    """Return the subset, `training` or `validation`, of each clip of a split.

    Raises:
        InputError: There are no such files, or a line has another form, contradicts another or the
            table of classes.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of split files; {_EXPECTED.format(split)}")
    entries: Entries = {}
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
        if all(entry.subset != subset for entry in entries.values()):
            raise InputError(f"{folder}: split {split} has no {subset} clip")
    return entries


def _read_ucf101(index: Path, lists: list[Path], entries: Entries) -> None:
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
            _add(entries, label, name, Entry(subset, where))


def _read_hmdb51(path: Path, label: str, entries: Entries) -> None:
    for where, words in _lines(path):
        # names hold spaces in some copies; the last word is the number
        if len(words) < 2 or words[-1] not in _HMDB_SUBSETS:
            raise InputError(f"{where}: {' '.join(words)!r} is not clip.avi and 0, 1 or 2")
        if subset := _HMDB_SUBSETS[words[-1]]:
            _add(entries, label, " ".join(words[:-1]), Entry(subset, where))


def _add(entries: Entries, label: str, name: str, entry: Entry) -> None:
    # clips may have been converted: the suffix does not count
    clip = label, Path(name).stem
    if clip in entries:
        raise InputError(f"{entry.where}: {label}/{name} is in {entries[clip].where} too")
    entries[clip] = entry


def _lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield where each line of words is, and its words."""
    for number, line in enumerate(read_utf8(path).splitlines(), start=1):
        if words := line.split():
            yield f"{path}: row {number}", words
