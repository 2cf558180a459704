"""Files of features of arrays that tests make."""

from collections.abc import Iterable
from pathlib import Path

import h5py
from numpy.typing import ArrayLike


def write_features(
    path: Path,
    features: ArrayLike,
    video_id: Iterable[str],
    duration_seconds: ArrayLike,
    subset: Iterable[str],
    **more: ArrayLike,
) -> None:
    """Write features (N, T, C) of videos or of their windows; `more` are data sets by name."""
    with h5py.File(path, "w") as file:
        file.attrs["digest"] = "toy"
        file["features"], file["duration_seconds"] = features, duration_seconds
        for name, values in (("video_id", video_id), ("subset", subset)):
            file.create_dataset(name, data=list(values), dtype=h5py.string_dtype())
        for name, given in more.items():
            file[name] = given
