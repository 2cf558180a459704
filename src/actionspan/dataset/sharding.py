"""Videos of a folder, their names and shards, the unit of work; standard library only.

The Snakefile imports this module each time it is read, so it must stay quick to import, and to run
on tens of thousands of files.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from actionspan.annotations.names import LONGEST_ID, VIDEO_SUFFIXES
from actionspan.errors import InputError, printable
from actionspan.storage.inputs import keep
from actionspan.storage.text import file_name, hash_of, wildcard_fault

_VIDEOS_PER_SHARD = 24  # enough work for the seconds that each job takes to start
MIN_SHARDS = 4  # small sets too use several cores
_FEW_SHARDS = 1024  # planned quickly; larger sets first get larger shards
_MOST_VIDEOS = 64  # a shard on average: the temporary files of a job stay small
MOST_SHARDS = 16384  # more take Snakemake long to plan
_FOLDER = "a folder"


def find_videos(folder: Path) -> dict[str, Path]:
    """Return the videos of a folder by id, the file's stem, sorted by id.

    A file is a video by its suffix, in any case; sub-folders are not searched. Of files with the
    same stem the first by name counts; `scan_videos` names the others.

    Raises:
        InputError: The folder is missing or cannot be read.
    """
    videos = {video_id: Path(path) for video_id, path in scan_videos(folder)[0].items()}
    keep(videos.values())
    return videos


def choose_videos(
    folder: str, names: Iterable[str], what_else: Callable[[str], str] = lambda _: ""
) -> tuple[dict[str, str], dict[str, str]]:
    """Choose the videos of a folder by the names of its files, as `find_videos` does.

    Args:
        folder: The prefix of each name.
        names: Of all files.
        what_else: Returns why a name is not a file; empty if it is one.

    Returns:
        The path of each video by id, sorted by id; why others are passed over, by path.
    """
    videos: dict[str, str] = {}
    passed: dict[str, str] = {}
    for name in sorted(names):
        video_id, suffix = os.path.splitext(name)
        if suffix.lower() not in VIDEO_SUFFIXES:
            continue
        not_file = what_else(name)
        if not_file == _FOLDER:
            continue
        path = os.path.join(folder, printable(name))
        if not name.isprintable():
            what = "the file's name is not UTF-8 or holds a control character"
            passed[path] = f"{what}; rename the file"
        elif problem := wildcard_fault(name):
            passed[path] = f"{problem}; rename the file"
        elif len(os.fsencode(video_id)) > LONGEST_ID:
            passed[path] = f"the file's name is too long: at most {LONGEST_ID} bytes and its suffix"
        elif not_file:
            passed[path] = not_file
        elif video_id in videos:
            what = "has the same name, which is the id of a video; rename one of the two"
            passed[path] = f"{os.path.basename(videos[video_id])} {what}"
        else:
            videos[video_id] = path
    return dict(sorted(videos.items())), passed


def scan_videos(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return {id: path} of `find_videos`, and {path: reason} of the files it passes over."""
    try:
        with os.scandir(folder) as entries:
            found = {entry.name: entry for entry in entries}
    except OSError as error:
        raise InputError(f"{folder}: not a folder of videos: {error.strerror}") from None
    return choose_videos(str(folder), found, lambda name: _not_a_file(found[name]))


def _not_a_file(entry: "os.DirEntry[str]") -> str:
    """Return the type of an entry of a folder that is not a file; an empty text if it is one."""
    try:
        if entry.is_file():
            return ""
        mode = entry.stat().st_mode
    except FileNotFoundError:
        return "a link to a file that does not exist"
    except OSError as error:
        looping = error.errno == errno.ELOOP
        return "a link that leads to itself" if looping else f"cannot be read: {error.strerror}"
    types = {stat.S_ISDIR: _FOLDER, stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    kind = next((kind for is_kind, kind in types.items() if is_kind(mode)), "a device")
    return kind if kind == _FOLDER else f"not a file but {kind}"


def assign_shards(
    ids: Sequence[str], videos_per_shard: int | Literal["auto"], least: int = MIN_SHARDS
) -> dict[str, list[str]]:
    """Distribute videos over shards so that a further video changes at most two shards.

    Linear hashing (Litwin 1980): an id's shard follows from its SHA-256 and the number of shards.
    A new video changes its own shard; if it also adds a shard, exactly one other splits.

    Args:
        ids: Video ids, without repetition, in any order.
        videos_per_shard: Videos of a shard on average; `"auto"`: 24, fewer if that makes fewer than
            `least` shards, more if it makes more than 1,024, but never above 64; 1: each video's
            shard has its name. A shard not split yet holds up to twice the videos of a split one.
        least: Minimum number of shards of a small set with `"auto"`.

    Returns:
        The sorted ids of each shard that is not empty.

    Raises:
        ValueError: `videos_per_shard` is neither `"auto"` nor at least 1.
    """
    if videos_per_shard == 1 and not isinstance(videos_per_shard, bool):
        return dict(sorted((file_name(video_id), [video_id]) for video_id in ids))
    shards: dict[str, list[str]] = {}
    count = _shard_count(len(ids), videos_per_shard, least)
    level = 1 << (count - 1).bit_length()  # the power of two at or above `count`
    for video_id in sorted(ids):
        value = _value(video_id)
        bucket = value % level
        if bucket >= count:
            bucket = value % (level // 2)
        shards.setdefault(_bucket_name(bucket), []).append(video_id)
    return dict(sorted(shards.items()))


def possible_shards(video_id: str) -> list[str]:
    """Return every shard that `assign_shards` may give a video, depending on the others.

    There are at most `MOST_SHARDS` in a set.
    """
    value, levels = _value(video_id), MOST_SHARDS.bit_length()
    buckets = [_bucket_name(value % (1 << power)) for power in range(levels)]
    return list(dict.fromkeys([*buckets, file_name(video_id)]))


def _value(video_id: str) -> int:
    return int.from_bytes(hash_of(video_id)[:8], "big")


def _bucket_name(bucket: int) -> str:
    return f"{bucket:04d}"


def _shard_count(videos: int, videos_per_shard: int | str, least: int) -> int:
    if videos_per_shard == "auto":
        least = min(videos, least)
        few = min(max(-(-videos // _VIDEOS_PER_SHARD), least), _FEW_SHARDS)
        return max(few, -(-videos // _MOST_VIDEOS))
    if not isinstance(videos_per_shard, int) or videos_per_shard < 1:
        raise ValueError(f"videos_per_shard: {videos_per_shard!r} is not 'auto' or at least 1")
    return -(-videos // videos_per_shard)
