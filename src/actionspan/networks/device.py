"""The device a network runs on."""

import torch

from actionspan.errors import InputError


def choose_device(wanted: str) -> torch.device:
    """Return the device of a setting: `auto` is a CUDA device where there is one.

    Raises:
        InputError: A CUDA device is wanted and there is none.
    """
    has_cuda = torch.cuda.is_available()
    if wanted == "cuda" and not has_cuda:
        raise InputError("device is cuda, but no CUDA device is visible; give auto or cpu")
    return torch.device("cuda" if has_cuda and wanted != "cpu" else "cpu")
