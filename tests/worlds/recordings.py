"""Consecutive files of one camera, whose frames are those of one video."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from video.numbered import numbered_picture, write_film


def write_parts(
    folder: Path,
    names: Sequence[str],
    pictures: Sequence[np.ndarray],
    borders: Sequence[int],
    **how: Any,
) -> list[Path]:
    """Write pictures as files that end before the frames `borders`; the last has the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = [0, *borders, len(pictures)]
    return [
        write_film(folder / name, pictures[first:last], **how)
        for name, first, last in zip(names, edges, edges[1:], strict=False)
    ]


def numbered_parts(folder: Path, names: Sequence[str], frames: int = 25, **how: Any) -> list[Path]:
    """Write files of so many numbered frames each, which count on from file to file."""
    pictures = [numbered_picture(number) for number in range(frames * len(names))]
    borders = [frames * place for place in range(1, len(names))]
    return write_parts(folder, names, pictures, borders, **how)
