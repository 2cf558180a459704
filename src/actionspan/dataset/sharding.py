"""Videos of a folder and their shards, the unit of work; standard library only.

The Snakefile imports this module each time it is read, so it must stay quick to import, and to run
on tens of thousands of files.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from actionspan.errors import InputError, printable

VIDEO_SUFFIXES = frozenset(
    ".3g2 .3gp .asf .avi .divx .f4v .flv .gif .m2ts .m4v .mkv .mov .mp4 .mpeg .mpg .mts .mxf .ogv "
    ".ts .vob .webm .wmv".split()
)
AUTO_VIDEOS_PER_SHARD = 16  # enough work for the seconds that each job takes to start
AUTO_MIN_SHARDS = 4  # so that small sets too use several cores
AUTO_FEW_SHARDS = 1024  # planned quickly; larger sets first get larger shards
AUTO_MOST_VIDEOS = 64  # a shard on average: what a job leaves on the disk stays small


def find_videos(folder: Path) -> dict[str, Path]:
    """Return the videos of a folder by id, the file's stem, sorted by id.

    A file is a video by its suffix, in any case; sub-folders are not searched. Of files with the
    same stem the first by name counts; `left_out` names the others.

    Raises:
        InputError: The folder is missing or cannot be read.
    """
    return _scan(folder)[0]


def left_out(folder: Path) -> dict[str, str]:
    """Return the video files of a folder that `find_videos` passes over, and why."""
    return _scan(folder)[1]


def _scan(folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    videos: dict[str, Path] = {}
    passed: dict[str, str] = {}
    try:
        with os.scandir(folder) as entries:
            files = sorted((entry.name, entry.is_file(), entry.is_dir()) for entry in entries)
    except OSError as error:
        raise InputError(f"{folder}: not a folder of videos: {error.strerror}") from None
    for name, is_file, is_folder in files:
        video_id, suffix = os.path.splitext(name)
        if suffix.lower() not in VIDEO_SUFFIXES or is_folder:
            continue
        path = os.path.join(folder, printable(name))
        if not name.isprintable():  # control characters, or bytes that are not UTF-8
            reason = "the file's name is not UTF-8 or holds a control character; rename the file"
            passed[path] = reason
        elif not is_file:
            passed[path] = "a link to a file that does not exist"
        elif video_id in videos:
            passed[path] = f"video id '{video_id}' is taken by {videos[video_id].name}"
        else:
            videos[video_id] = Path(path)
    return dict(sorted(videos.items())), passed


def assign_shards(
    ids: Sequence[str], videos_per_shard: int | Literal["auto"]
) -> dict[str, list[str]]:
    """Distribute videos over shards so that a further video changes at most two shards.

    Linear hashing (Litwin 1980): an id's shard follows from its SHA-256 and the number of shards.
    A new video changes its own shard; if it also adds a shard, exactly one other splits.

    Args:
        ids: Video ids, without repetition, in any order.
        videos_per_shard: Videos of a shard on average; `"auto"`: 16, fewer if that makes fewer than
            4 shards, more if it makes more than 1,024, but never above 64; 1: each video's shard
            has its name. Shards that are not split yet hold up to twice as many as split ones.

    Returns:
        The sorted ids of each shard that is not empty.

    Raises:
        ValueError: `videos_per_shard` is neither `"auto"` nor at least 1.
    """
    if videos_per_shard == 1 and not isinstance(videos_per_shard, bool):
        return dict(sorted((_file_name(video_id), [video_id]) for video_id in ids))
    shards: dict[str, list[str]] = {}
    count = _shard_count(len(ids), videos_per_shard)
    if count == 0:
        return shards
    level = 1 << (count - 1).bit_length()  # the power of two at or above `count`
    for video_id in sorted(ids):
        value = int.from_bytes(_digest(video_id)[:8], "big")
        bucket = value % level
        if bucket >= count:
            bucket = value % (level // 2)
        shards.setdefault(f"{bucket:04d}", []).append(video_id)
    return dict(sorted(shards.items()))


def _shard_count(videos: int, videos_per_shard: int | str) -> int:
    if videos_per_shard == "auto":
        least = min(videos, AUTO_MIN_SHARDS)
        few = min(max(-(-videos // AUTO_VIDEOS_PER_SHARD), least), AUTO_FEW_SHARDS)
        return max(few, -(-videos // AUTO_MOST_VIDEOS))
    if not isinstance(videos_per_shard, int) or videos_per_shard < 1:
        raise ValueError(f"videos_per_shard: {videos_per_shard!r} is not 'auto' or at least 1")
    return -(-videos // videos_per_shard)


def _digest(video_id: str) -> bytes:
    return hashlib.sha256(video_id.encode("utf-8", "surrogateescape")).digest()


def _file_name(video_id: str) -> str:
    """Return a name that is safe in shells and file systems, and different for each id."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", video_id):
        return video_id
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", video_id)[:80].lstrip(".-")
    return f"{safe}~{_digest(video_id).hex()[:12]}"
