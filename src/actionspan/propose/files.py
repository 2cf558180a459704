"""Which videos a person means by the files, folders and patterns of a command line."""

from collections.abc import Iterable, Iterator
from glob import has_magic, iglob
from pathlib import Path

from actionspan.dataset.sharding import VIDEO_SUFFIXES, find_videos, left_out
from actionspan.errors import InputError


def named_videos(words: Iterable[Path]) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the videos that `words` name, by id, and why others were left out.

    A folder stands for its video files, told by their suffix; sub-folders are not searched. A
    pattern that the shell did not expand, such as `"*.mp4"`, is expanded here. Of videos with the
    same id, the name without its suffix, the first counts.

    Returns:
        Paths by video id in the order of `words`, and reasons by path.

    Raises:
        InputError: A folder holds no video or cannot be read, or no file matches a pattern.
    """
    videos: dict[str, Path] = {}
    passed: dict[str, str] = {}
    for word in words:
        for path in _expanded(word, passed):
            if not path.exists():
                passed[str(path)] = "no such file"
            elif videos.setdefault(path.stem, path) != path:
                passed[str(path)] = f"{videos[path.stem]} has the same name; rename one"
    return videos, passed


def _expanded(word: Path, passed: dict[str, str]) -> Iterator[Path]:
    if word.is_dir():
        found = find_videos(word)
        passed |= left_out(word)
        if not found:
            suffixes = " ".join(sorted(VIDEO_SUFFIXES))
            raise InputError(f"{word}: no video here: no file ends with one of {suffixes}")
        yield from found.values()
    elif has_magic(str(word)) and not word.exists():
        matches = sorted(map(Path, iglob(str(word), recursive=True)))  # noqa: PTH207, of any root
        if not matches:
            raise InputError(f"{word}: no file matches")
        yield from (match for match in matches if not match.is_dir())
    else:
        yield word
