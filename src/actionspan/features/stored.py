"""Stored pictures of a video in the form of its frames and flow, decoded when asked for."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from actionspan.arrays import UInt8
from actionspan.video.jpegs import JpegPictures, Stream

VIDEO_SHA = "video_sha256"  # how a store calls the checksum of the video


class _StoredStream:
    """Pictures of a stream: (T, H, W, 3) frames, or (T, 2L, H, W) planes of flow."""

    def __init__(self, pictures: JpegPictures, stream: Stream) -> None:
        self._pictures, self._stream = pictures, stream
        size = (pictures.height, pictures.width)
        count, planes = pictures.count, pictures.planes
        self.shape = (count, *size, 3) if stream == "rgb" else (count, planes, *size)
        self.attrs = {"bound": pictures.bound}

    def __getitem__(self, rows: slice | int) -> UInt8:
        """Decode some snippets, or one."""
        if isinstance(rows, int):
            return self._one(rows)
        return np.stack([self._one(row) for row in range(*rows.indices(self.shape[0]))])

    def _one(self, row: int) -> UInt8:
        picture = self._pictures.read(self._stream, row)
        return picture if self._stream == "rgb" else picture.transpose(2, 0, 1)


def stored_streams(pictures: JpegPictures, group: Any) -> tuple[Any, Any]:
    """Return what stands for a video's groups of `video frames` and `video flow`.

    Args:
        pictures: Those of the video.
        group: Its group in the store, for all but pictures.
    """
    attributes: Mapping[str, Any] = dict(group.attrs)
    facts = {"fps", "frame_count", "stated_frames", "duration_seconds", "snippet_frames"}
    kept = {key: value for key, value in attributes.items() if key in facts}
    kept["sha256"] = attributes[VIDEO_SHA]
    flow = _Group({**group, "flow": _StoredStream(pictures, "flow")}, kept)
    return {"rgb": _StoredStream(pictures, "rgb")}, flow


class _Group(SimpleNamespace):
    """A mapping with attributes, as HDF5 groups are."""

    def __init__(self, members: Mapping[str, Any], attrs: Mapping[str, Any]) -> None:
        super().__init__(members=members, attrs=attrs)

    def __getitem__(self, key: str) -> Any:
        return self.members[key]

    def __contains__(self, key: str) -> bool:
        return key in self.members
