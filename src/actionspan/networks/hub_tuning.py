"""Tuning image networks of timm and transformers: what of them learns, and how it is saved.

What is tuned sees squares. It is saved as its library saves models, with a preprocessing that makes
such squares: `find_source` and `load_network` then take the folder as any other.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.networks.division import stages
from actionspan.networks.hub import Source, telling
from actionspan.networks.hub_images import HubInputs, hf_model, timm_model


def unfreeze(network: nn.Module, name: str, side: int) -> list[nn.Module]:
    """Let the parameters of a network learn that its vectors depend on; return its stages.

    A stage is what comes before the blocks, each block, or what comes after them.

    Raises:
        InputError: It does not take squares of `side` pixels.
    """
    network.requires_grad_(True)
    with telling(f"{name}, of squares of {side} pixels (finetune.input_size)"):
        network(torch.zeros(1, 3, side, side)).sum().backward()
    for each in network.parameters():
        each.requires_grad_(each.grad is not None)
        each.grad = None
    model = getattr(network, "vision", network.get_submodule("model"))
    if hasattr(model, "layer1"):  # a ResNet of timm
        return list(stages(model))
    lists = (each for each in model.modules() if isinstance(each, nn.ModuleList | nn.Sequential))
    blocks = max(lists, key=lambda each: sum(one.numel() for one in each.parameters()))
    inside = {id(each) for each in blocks.parameters()}
    around: tuple[list[nn.Parameter], list[nn.Parameter]] = [], []
    behind = False
    for each in model.parameters():
        behind |= id(each) in inside
        if id(each) not in inside:
            around[behind].append(each)
    before, after = map(nn.ParameterList, around)
    return [part for part in (before, *blocks, after) if any(True for _ in part.parameters())]


def save_tuned(
    source: Source, inputs: HubInputs, state: Mapping[str, Tensor], side: int, folder: Path
) -> None:
    """Write a tuned network as a folder of its library.

    Args:
        source: Where the network came from.
        inputs: Its own preprocessing.
        state: What it has learned, by the names of the library's model.
        side: Of the squares that it sees, in pixels.
        folder: To write.
    """
    with telling(source.name):
        if source.package == "timm":
            from timm.models import save_for_hf

            model = timm_model(source)
            model.load_state_dict(state)
            sees = {"input_size": (3, side, side), "crop_pct": 1.0, "crop_mode": "squash"}
            save_for_hf(model, str(folder), safe_serialization=True, data_config=sees)
            return
        from transformers import ViTImageProcessor

        model, _ = hf_model(source)
        model.load_state_dict(state, strict=False)  # words are as they were
        model.save_pretrained(folder)
        square: dict[str, Any] = {"height": side, "width": side}
        ViTImageProcessor(
            size=square,
            rescale_factor=1.0,
            image_mean=list(inputs.mean),
            image_std=list(inputs.std),
            resample=inputs.resample,
        ).save_pretrained(folder)
