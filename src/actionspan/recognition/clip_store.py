"""Reading stored clips, as training does: any position of any clip, in any order and thread.

The compressed pictures are mapped from the files, not read at the start: the operating system keeps
in memory what fits, once for all processes of a machine, and threads need no lock between them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import cv2
import h5py
import numpy as np

from actionspan.arrays import Int64, UInt8
from actionspan.errors import InputError
from actionspan.files.storage import digest, open_h5

Stream = Literal["rgb", "flow"]
STREAMS: tuple[Stream, ...] = ("rgb", "flow")
BACKGROUND = "background"  # the class of stretches without an action; always the last
_ATTRIBUTES = {"label": str, "subset": str, "height": int, "width": int, "planes": int}
_ATTRIBUTES |= {"bound": float, "sha256": str}


@dataclass(frozen=True, kw_only=True)
class Clip:
    """A stored clip: `label` is an index of the store's classes, `positions` their number."""

    clip_id: str
    label: int
    subset: str
    positions: int


class _Stored(NamedTuple):
    """A clip as its file has it."""

    path: Path
    attributes: dict[str, Any]
    pictures: dict[Stream, tuple[UInt8, Int64]]  # the bytes of P JPEG files, and P + 1 offsets


class ClipStore:
    """The clips of one or more shards, in the order of their ids.

    Attributes:
        clips: Id, label, subset and number of positions of each.
        classes: The labels, sorted; `background` is last.
        height, width: Of every picture in pixels.
        channels: Channels of a picture by stream: 3 and 2L.
        bound: Pixels of motion at code 255.
        data: The name of the data set.
        fingerprint: Changes with any picture, label or subset, but not with the order of the
            files.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Open the stores.

        Raises:
            InputError: A file is missing or is no clip store, a clip is in two of them, they were
                made with different settings, or there is no clip at all.
        """
        # read the files
        stored: dict[str, _Stored] = {}
        for path in paths:
            for clip_id, clip in _read_shard(path):
                if clip_id in stored:
                    raise InputError(f"{path}: clip {clip_id} is in {stored[clip_id].path} too")
                stored[clip_id] = clip
        if not stored:
            raise InputError(f"{', '.join(map(str, paths)) or 'no file'}: no clip is in there")
        with open_h5(paths[0]) as file:
            self.data = str(file.attrs.get("data", "clips without a name"))
        # compare their settings
        stored = dict(sorted(stored.items()))
        first, (first_path, shape, _) = next(iter(stored.items()))
        for clip_id, (path, attributes, _) in stored.items():
            for key in ("height", "width", "planes", "bound"):
                if attributes[key] != shape[key]:
                    raise InputError(
                        f"{path}: clip {clip_id} has {key} {attributes[key]}, but {first} of "
                        f"{first_path} has {shape[key]}; make all with the same settings"
                    )
        self.height, self.width, self.bound = shape["height"], shape["width"], shape["bound"]
        self.channels: dict[Stream, int] = {"rgb": 3, "flow": shape["planes"]}
        # list clips and classes
        labels = {clip.attributes["label"] for clip in stored.values()}
        self.classes = sorted(labels - {BACKGROUND}) + sorted(labels & {BACKGROUND})
        self.clips = [
            Clip(
                clip_id=clip_id,
                label=self.classes.index(clip.attributes["label"]),
                subset=clip.attributes["subset"],
                positions=len(clip.pictures["rgb"][1]) - 1,
            )
            for clip_id, clip in stored.items()
        ]
        self._stored = list(stored.values())
        shown = ("label", "subset", "sha256")
        self.fingerprint = digest(
            [[name, *(clip.attributes[key] for key in shown)] for name, clip in stored.items()]
        )

    def rows(self, subset: str) -> Int64:
        """Return the places in `clips` of those of a subset."""
        places = [place for place, clip in enumerate(self.clips) if clip.subset == subset]
        return np.array(places, np.int64)

    def read(self, stream: Stream, clip: int, position: int) -> UInt8:
        """Return a picture: (height, width, 3), or (height, width, 2L) codes 1 … 255 of the flow.

        Flow is a view of planes that follow each other in memory. `clip` is a place in `clips`.

        Raises:
            InputError: The file is damaged.
        """
        path, _, pictures = self._stored[clip]
        data, offsets = pictures[stream]
        flags = cv2.IMREAD_COLOR_RGB if stream == "rgb" else cv2.IMREAD_GRAYSCALE
        image: Any = cv2.imdecode(data[offsets[position] : offsets[position + 1]], flags)
        planes = 1 if stream == "rgb" else self.channels["flow"]
        if image is None or image.shape[:2] != (planes * self.height, self.width):
            raise InputError(
                f"{path}: {stream} of clip {self.clips[clip].clip_id} is damaged at position "
                f"{position}; delete the file and run again"
            )
        if stream == "rgb":
            return np.asarray(image, np.uint8)
        np.maximum(image, 1, out=image)  # JPEG may turn 1 into 0, which codes nothing
        stack: UInt8 = image.reshape(planes, self.height, self.width).transpose(1, 2, 0)
        return stack


def _read_shard(path: Path) -> Iterator[tuple[str, _Stored]]:
    with open_h5(path) as file:
        mapped = np.memmap(path, np.uint8, "r")
        for clip_id, group in file.items():
            try:
                attributes = {key: kind(group.attrs[key]) for key, kind in _ATTRIBUTES.items()}
                pictures = {
                    stream: (_mapped(mapped, group[stream]), group[f"{stream}_offsets"][:])
                    for stream in STREAMS
                }
            except (AttributeError, KeyError):
                raise InputError(
                    f"{path}: not a clip store: {clip_id} is no clip; make it with "
                    "`actionspan recognition clips` or `segments`"
                ) from None
            yield clip_id, _Stored(path, attributes, pictures)


def _mapped(file: UInt8, dataset: h5py.Dataset) -> UInt8:
    """Return the bytes of an uncompressed dataset within the bytes of its file."""
    begin = dataset.id.get_offset()
    if begin is None or dataset.dtype != np.uint8:
        raise KeyError("not plain bytes")
    return file[begin : begin + dataset.size]
