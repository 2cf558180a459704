"""Reading stored clips, as training does: any position of any clip, in any order and thread.

The compressed pictures are mapped from the files, not read at the start: the operating system keeps
in memory what fits, once for all processes of a machine, and no lock is needed between threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import cv2
import h5py
import numpy as np
from numpy.typing import NDArray

from actionspan.errors import InputError
from actionspan.files.storage import digest, open_h5

Bytes = NDArray[np.uint8]
Stream = Literal["rgb", "flow"]
STREAMS: tuple[Stream, ...] = ("rgb", "flow")
BACKGROUND = "background"  # the class of stretches without an action; always the last


@dataclass(frozen=True, kw_only=True)
class Clip:
    """One stored clip: `label` is an index of the store's classes, `positions` their number."""

    clip_id: str
    label: int
    subset: str
    positions: int


@dataclass(frozen=True, kw_only=True)
class _Pictures:
    """Where the JPEG pictures of one stream of a clip are."""

    path: Path
    data: Bytes  # (bytes,) mapped
    offsets: NDArray[np.int64]  # (P + 1,)

    def __getitem__(self, position: int) -> Bytes:
        return self.data[self.offsets[position] : self.offsets[position + 1]]


class ClipStore:
    """The clips of one or more shards, in the order of their ids.

    Attributes:
        clips: Id, label, subset and number of positions of each.
        classes: The labels, sorted; `background` is last.
        height: Of every picture in pixels.
        width: Of every picture in pixels.
        channels: Channels of a picture by stream: 3 and 2L.
        bound: Pixels of motion at code 255.
        data: The name of the data set.
        fingerprint: Changes with any picture, label or subset; the order of the files and the
            settings of the disk do not matter.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Open the stores.

        Raises:
            InputError: A file is missing or is no clip store, a clip is in two of them, they were
                made with different settings, or there is no clip at all.
        """
        found: dict[str, tuple[Path, dict[str, Any], dict[Stream, _Pictures]]] = {}
        for path in paths:
            for clip_id, facts, pictures in _read_shard(path):
                if clip_id in found:
                    raise InputError(f"{path}: clip {clip_id} is in {found[clip_id][0]} too")
                found[clip_id] = path, facts, pictures
        if not found:
            raise InputError(f"{', '.join(map(str, paths)) or 'no file'}: no clip is in there")
        with open_h5(paths[0]) as file:
            self.data = str(file.attrs.get("data", "clips without a name"))
        found = dict(sorted(found.items()))
        first, (first_path, shape, _) = next(iter(found.items()))
        for clip_id, (path, facts, _) in found.items():
            for key in ("height", "width", "planes", "bound"):
                if facts[key] != shape[key]:
                    raise InputError(
                        f"{path}: clip {clip_id} has {key} {facts[key]}, but {first} of "
                        f"{first_path} has {shape[key]}; make all with the same settings"
                    )
        self.height, self.width, self.bound = shape["height"], shape["width"], shape["bound"]
        self.channels: dict[Stream, int] = {"rgb": 3, "flow": shape["planes"]}
        labels = {facts["label"] for _, facts, _ in found.values()}
        self.classes = sorted(labels - {BACKGROUND}) + sorted(labels & {BACKGROUND})
        self.clips = [
            Clip(
                clip_id=clip_id,
                label=self.classes.index(facts["label"]),
                subset=facts["subset"],
                positions=len(pictures["rgb"].offsets) - 1,
            )
            for clip_id, (_, facts, pictures) in found.items()
        ]
        self._pictures = [pictures for _, _, pictures in found.values()]
        self.fingerprint = digest(
            [
                [clip_id, facts["label"], facts["subset"], facts["sha256"]]
                for clip_id, (_, facts, _) in found.items()
            ]
        )

    def rows(self, subset: str) -> NDArray[np.int64]:
        """Return the places in `clips` of those of a subset."""
        places = [place for place, clip in enumerate(self.clips) if clip.subset == subset]
        return np.array(places, np.int64)

    def read(self, stream: Stream, clip: int, position: int) -> Bytes:
        """Return one picture.

        Args:
            stream: `rgb` or `flow`.
            clip: Place in `clips`.
            position: From 0.

        Returns:
            (height, width, 3), or (height, width, 2L) codes 1 … 255 of the flow, which is a view
            of planes that follow each other in memory.

        Raises:
            InputError: The file is damaged.
        """
        pictures = self._pictures[clip][stream]
        flags = cv2.IMREAD_COLOR_RGB if stream == "rgb" else cv2.IMREAD_GRAYSCALE
        image: Any = cv2.imdecode(pictures[position], flags)
        planes = 1 if stream == "rgb" else self.channels["flow"]
        if image is None or image.shape[:2] != (planes * self.height, self.width):
            raise InputError(
                f"{pictures.path}: {stream} of clip {self.clips[clip].clip_id} is damaged at "
                f"position {position}; delete the file and run again"
            )
        if stream == "rgb":
            return np.asarray(image, np.uint8)
        np.maximum(image, 1, out=image)  # JPEG may turn 1 into 0, which codes nothing
        stack: Bytes = image.reshape(planes, self.height, self.width).transpose(1, 2, 0)
        return stack


def _read_shard(path: Path) -> list[tuple[str, dict[str, Any], dict[Stream, _Pictures]]]:
    """Return id, attributes and pictures of each clip of a file."""
    clips = []
    with open_h5(path) as file:
        mapped = np.memmap(path, np.uint8, "r")
        for clip_id, group in file.items():
            try:
                facts: dict[str, Any] = {
                    "label": str(group.attrs["label"]),
                    "subset": str(group.attrs["subset"]),
                    "height": int(group.attrs["height"]),
                    "width": int(group.attrs["width"]),
                    "planes": int(group.attrs["planes"]),
                    "bound": float(group.attrs["bound"]),
                    "sha256": str(group.attrs["sha256"]),
                }
                pictures = {
                    stream: _Pictures(
                        path=path,
                        data=_mapped(mapped, group[stream]),
                        offsets=group[f"{stream}_offsets"][:],
                    )
                    for stream in STREAMS
                }
            except (AttributeError, KeyError):
                raise InputError(
                    f"{path}: not a clip store: {clip_id} is no clip; make it with "
                    "`actionspan recognition clips` or `segments`"
                ) from None
            clips.append((clip_id, facts, pictures))
    return clips


def _mapped(file: Bytes, dataset: h5py.Dataset) -> Bytes:
    """Return the bytes of an uncompressed dataset within the bytes of its file."""
    begin = dataset.id.get_offset()
    if begin is None or dataset.dtype != np.uint8:
        raise KeyError("not plain bytes")
    return file[begin : begin + dataset.size]
