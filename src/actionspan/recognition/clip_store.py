"""Stored clips, read as training does: any position of any clip, in any order and thread.

A clip is one HDF5 group as `video.jpegs` writes it, with the attributes `label` and
`subset`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from actionspan.arrays import Int64, UInt8
from actionspan.errors import InputError
from actionspan.recognition.clip_lists import BACKGROUND, ClipSettings
from actionspan.storage.writing import digest, open_h5
from actionspan.video import jpegs

_MADE_BY = "`actionspan recognition clips` or `segments`"


def read_stores(
    paths: Sequence[Path], kind: str, made_by: str, needed: Sequence[str]
) -> dict[str, jpegs.JpegPictures]:
    """Return the images of all clips or videos of some stores, sorted by id.

    `kind`, `made_by` and `needed` are as for `read_pictures`.

    Raises:
        InputError: A file is missing or no such store, something is in two of them, or all are
            empty.
    """
    stored: dict[str, jpegs.JpegPictures] = {}
    for path in paths:
        for name, pictures in jpegs.read_pictures(path, kind, made_by, needed=needed):
            if name in stored:
                raise InputError(f"{path}: {kind} {name} is in {stored[name].path} too")
            stored[name] = pictures
    if not stored:
        raise InputError(f"{', '.join(map(str, paths)) or 'no file'}: no {kind} is in there")
    return dict(sorted(stored.items()))


class Clip(NamedTuple):
    """A stored clip: `label` is an index of the store's classes, `positions` their number."""

    clip_id: str
    label: int
    subset: str
    positions: int


class ClipStore:
    """The clips of one or more shards, in the order of their ids.

    Attributes:
        clips: Id, label, subset and number of positions of each.
        classes: The labels, sorted; `background` is last.
        height, width: Of every image in pixels.
        channels: Channels of an image by stream: 3 and 2L.
        bound: Pixels of motion at code 255.
        data: The name of the data set.
        fingerprint: Changes with any image, label or subset, whatever the order of the files.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Open the stores.

        Raises:
            InputError: A file is missing or is not a clip store, a clip is in two of them, they are
                made with different settings, or hold no clip.
        """
        stored = read_stores(paths, "clip", _MADE_BY, ("label", "subset"))
        jpegs.check_alike(stored, "clip")
        with open_h5(paths[0]) as file:
            self.data = str(file.attrs.get("data", "clips without a name"))
        self._stored = list(stored.values())
        first = self._stored[0]
        self.height, self.width, self.bound = first.height, first.width, first.bound
        self.channels: dict[jpegs.Stream, int] = {"rgb": 3, "flow": first.planes}
        listed = [
            (name, str(clip.attributes["label"]), str(clip.attributes["subset"]), clip.sha256)
            for name, clip in stored.items()
        ]
        labels = {label for _, label, _, _ in listed}
        self.classes = sorted(labels, key=lambda label: (label == BACKGROUND, label))
        self.clips = [
            Clip(name, self.classes.index(label), subset, stored[name].count)
            for name, label, subset, _ in listed
        ]
        self.fingerprint = digest(listed)

    def rows(self, subset: str) -> Int64:
        """Return the places in `clips` of a subset."""
        places = [place for place, clip in enumerate(self.clips) if clip.subset == subset]
        return np.array(places, np.int64)

    def read(self, stream: jpegs.Stream, clip: int, position: int) -> UInt8:
        """Return an image: (height, width, 3), or (height, width, 2L) codes 1 … 255 of the flow.

        Flow is a view of planes that follow each other in memory. `clip` is a place in `clips`.

        Raises:
            InputError: The file is damaged.
        """
        return self._stored[clip].read(stream, position)


def write_clip(
    group: h5py.Group,
    positions: Iterable[jpegs.Position],
    settings: ClipSettings,
    *,
    label: str,
    subset: str,
    bound: float,
) -> None:
    """Write a clip of positions in order of time into an empty group.

    Raises:
        InputError: No position is given, or too many planes are.
    """
    size = {"height": settings.height, "width": settings.width}
    jpegs.write_jpegs(group, positions, **size, quality=settings.jpeg_quality, bound=bound)
    group.attrs.update(label=label, subset=subset)
