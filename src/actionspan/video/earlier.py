"""What earlier steps made of a shard, and features of earlier runs that are still valid.

A grown data set encodes its new videos alone.

A recipe names all that features are made by: settings, weights, code and libraries. A video's
features are valid if a shard has them by the same recipe and the video is the same file. Shards are
looked for next to the recipe: in `shards/`, and in the folders of `earlier/`, where the workflow
keeps those that it makes again.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py

from actionspan.annotations.tables import Video
from actionspan.dataset.sharding import possible_shards
from actionspan.errors import InputError
from actionspan.jobs.parts import DAMAGED, rejected_videos, take_over
from actionspan.storage.writing import digest, open_h5, read_json

if TYPE_CHECKING:
    from actionspan.video.zones import Cameras

RECIPE = "recipe"
"""The attribute of a file that holds the digest of the recipe its features are made by."""
FEATURES = "features"
"""The member of a video's group of frames or flow that replaces images by valid features."""


class Made(NamedTuple):
    """The facts of a shard's videos in its files."""

    hashes: dict[str, str]  # of the videos, in the order of the last file
    digests: tuple[str, ...]  # of the files
    settings: str  # of the last file, JSON
    rejected: dict[str, str]  # the videos that it lacks, and why
    recipe: dict[str, str]  # its attribute that names the recipe of features


def read_made(*files: Path) -> Made:
    """Read the records of `video frames` and `video flow` of a shard; the last file counts.

    Raises:
        InputError: A file is missing or incomplete, or another lacks a video of the last.
    """
    with ExitStack() as stack:
        opened = [stack.enter_context(open_h5(path)) for path in files]
        last = opened[-1]
        for path, file in zip(files, opened, strict=True):
            missing = [name for name in last if name not in file]
            if missing:
                raise InputError(f"{path}: lacks {missing[0]}, which {files[-1]} holds")
        return Made(
            {name: str(group.attrs["sha256"]) for name, group in last.items()},
            tuple(str(file.attrs["digest"]) for file in opened),
            str(last.attrs.get("settings", "{}")),
            rejected_videos(last),
            recipe_attribute(last.attrs.get(RECIPE, "")),
        )


def recipe_digest(recipe: Path | None) -> str:
    """Return the digest of a recipe; an empty text if there is none.

    Raises:
        InputError: The file is missing or is not JSON.
    """
    return digest(read_json(recipe)) if recipe else ""


def recipe_attribute(made_by: str) -> dict[str, str]:
    """Return the attribute of a file with features made by a recipe of this digest."""
    return {RECIPE: made_by} if made_by else {}


def earlier_features(
    videos: Sequence[Video], recipe: Path | None, cameras: "Cameras | None" = None
) -> dict[str, Path]:
    """Return the files that have features of these videos by the same recipe, by video id.

    They are valid only within the zones of each video's name among `cameras`.

    Files of another recipe that are kept for this purpose are removed, to make room. The `recipe`
    is what `features recipe` writes; without it, no features are valid.
    """
    if recipe is None:
        return {}
    from actionspan.video.zones import WHOLE, zones_attributes, zones_of  # which imports OpenCV

    made_by, folder = recipe_digest(recipe), recipe.parent
    kept = sorted((folder / "earlier").glob("*"))
    known: dict[Path, dict[str, dict[str, Any]]] = {}  # attributes of the videos of each file
    valid = {}
    for video in videos:
        within = zones_attributes(zones_of(cameras or WHOLE, video.video_id))
        wanted = video.attributes | {"zones": ""} | within
        shards = [f"{shard}.h5" for shard in possible_shards(video.video_id)]
        # those in shards/ last: another job may be about to make them again
        for path in (place / shard for place in (*kept, folder / "shards") for shard in shards):
            if path not in known:
                known[path] = _held(path, made_by, path.parent in kept)
            held = {"zones": ""} | known[path].get(video.video_id, {})
            if wanted.items() <= held.items():
                valid[video.video_id] = path
                break
    return valid


def take_features(path: Path | None, video: Video, group: h5py.Group) -> bool:
    """Fill a video's group of frames with its features of a file, if they are whole there.

    Returns:
        Whether they were.
    """
    if path is None or not take_over(path, video.video_id, group, FEATURES):
        return False
    group.attrs.update(group[FEATURES].attrs)
    return True


def _held(path: Path, made_by: str, kept: bool) -> dict[str, dict[str, Any]]:
    """Return the attributes of a file's videos, none if it is damaged or of another recipe."""
    try:
        with open_h5(path) as file:
            if file.attrs.get(RECIPE) == made_by:
                return {name: dict(group.attrs) for name, group in file.items()}
    except (*DAMAGED, InputError):
        return {}
    if kept:
        path.unlink(missing_ok=True)
    return {}
