"""Writing a clip: its frames and flow planes, scaled to one size and compressed as JPEG.

A clip is one HDF5 group in the form of `video.jpeg_writing`, with the attributes `label` and
`subset`.
"""

import itertools
from collections.abc import Iterable

import h5py

from actionspan.errors import InputError
from actionspan.recognition.clip_settings import ClipSettings
from actionspan.video.jpeg_writing import Position, write_jpegs


def write_clip(
    group: h5py.Group,
    positions: Iterable[Position],
    settings: ClipSettings,
    *,
    label: str,
    subset: str,
    bound: float,
) -> None:
    """Write a clip of positions in order of time into an empty group, in the form above.

    Raises:
        InputError: There is no position, or too many planes.
    """
    remaining = iter(positions)
    first = next(remaining, None)
    if first is None:
        raise InputError("no frame lies in the clip")
    write_jpegs(
        group,
        itertools.chain([first], remaining),
        height=settings.height,
        width=settings.width,
        quality=settings.jpeg_quality,
        bound=bound,
    )
    group.attrs.update(label=label, subset=subset)
