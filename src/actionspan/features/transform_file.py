"""The transform of a model file, which may be a stranger's."""

import numpy as np
import torch
from numpy.typing import NDArray

from actionspan.errors import InputError
from actionspan.features.cues import REACHES
from actionspan.features.transform import CURVES, Transform
from actionspan.files.torch_files import Part

MOST_STEPS = 8192  # of a row
_MOST_SNIPPETS = 1_000_000  # that a row may depend on, or that may be in no window
_METHODS = ("mean", "bins", "linear", "nearest")
_STREAMS = ("rgb", "flow", "clip")


def transform_from(part: Part) -> Transform:
    """Return the transform of a model file, of which `to_arrays` made the tensors.

    Raises:
        InputError: It is none.
    """
    arrays: dict[str, NDArray[np.generic]] = {}

    def take(key: str, *shape: int | None, kind: torch.dtype = torch.float32) -> Part:
        found: NDArray[np.generic] = part[key].tensor(*shape, kind=kind).numpy()
        arrays[key] = found
        text = found.tobytes().decode("latin1") if kind == torch.uint8 else ""
        return Part(text or found.tolist(), part[key].name)

    steps = take("steps", kind=torch.int64).whole(1, MOST_STEPS)
    take("method", None, kind=torch.uint8).text(_METHODS)
    named = take("streams", None, kind=torch.uint8).text()
    streams = named.split(",")
    if len(set(streams)) < len(streams) or not set(streams) <= set(_STREAMS):
        part["streams"].refuse(f"some of {', '.join(_STREAMS)}")
    if "windows" in part:
        stride, rest = take("windows", 2, kind=torch.int64).items(2, 2)
        stride.whole(1, steps)
        rest.whole(0, _MOST_SNIPPETS)
    if "cues" in part:
        take("cues", kind=torch.bool)
    if "past/horizon" in part:
        take("past/horizon", kind=torch.int64).whole(1, _MOST_SNIPPETS)
        take("past/ahead", kind=torch.int64).whole(1, MOST_STEPS)
        cues = len(REACHES) * len(streams) + CURVES
        take("past/mean", cues)
        if min(take("past/deviation", cues).value) <= 0:
            raise InputError(f"{part.name}: past/deviation: above 0")
    for name in streams:
        width = len(take(f"{name}/mean", None).value)
        kept = len(take(f"{name}/components", None, width).value)
        take(f"{name}/scale", kept or width)
    return Transform.from_arrays(arrays)
