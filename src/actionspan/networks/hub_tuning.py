"""Tuning image networks of timm and transformers: the parameters that learn, and saving.

A tuned network sees squares. It is saved as its library saves models, with a preprocessing that
makes such squares: `find_source` and `load_network` then take the folder as any other.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.errors import InputError
from actionspan.networks.division import stages
from actionspan.networks.hub_images import HubInputs, hf_model, timm_model
from actionspan.networks.hub_source import Source, input_errors
from actionspan.networks.hub_words import tokenizer_files

_COLOUR = (13, 130, 230)
_PLACES = {"position_embedding", "position_embeddings", "pos_embed"}


def levels_of(inputs: HubInputs, name: str) -> tuple[Tensor, Tensor]:
    """Return the mean (3,) and deviation (3,) of 8-bit levels by which images are standardised.

    They are measured on the library's output for black, for white and for a colour.

    Raises:
        InputError: It does more than that, such as swapping colours.
    """
    seen = torch.tensor([(0,) * 3, (255,) * 3, _COLOUR], dtype=torch.uint8)
    made = inputs(seen.view(3, 1, 1, 3).expand(3, 64, 64, 3).contiguous())
    black, white, colour = made.cpu().mean(dim=(2, 3))
    std = 255 / (white - black)
    mean = -black * std
    if not torch.allclose((torch.tensor(_COLOUR) - mean) / std, colour, atol=1e-3):
        raise InputError(f"{name}: its preprocessing does more than standardise; it is not tuned")
    return mean, std


def unfreeze(network: nn.Module, name: str, side: int) -> list[nn.Module]:
    """Let the parameters of a network learn that its vectors depend on; return its stages.

    Position embeddings stay as they are: on GPUs their resizing does not repeat to the bit. A stage
    is the part before the blocks, each block, or the part after them.

    Raises:
        InputError: It does not take squares of `side` pixels.
    """
    network.requires_grad_(True)
    for key, each in network.named_parameters():
        each.requires_grad_(_PLACES.isdisjoint(key.split(".")))
    for module in network.modules():
        if hasattr(module, "attention_bias_cache"):  # of timm, which would never learn
            module.register_forward_pre_hook(_empty_cache)
    device = next(network.parameters()).device
    with input_errors(f"{name}, of squares of {side} pixels (finetune.input_size)"):
        network(torch.zeros(1, 3, side, side, device=device)).sum().backward()
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


def _empty_cache(module: Any, _: Any) -> None:
    module.attention_bias_cache = {}


def save_tuned(
    source: Source,
    levels: tuple[Tensor, Tensor],
    state: Mapping[str, Tensor],
    side: int,
    folder: Path,
) -> None:
    """Write a tuned network as a folder of its library, replacing an earlier one.

    Args:
        source: Where the network came from.
        levels: The mean and deviation that its images are standardised by, see `levels_of`.
        state: Its parameters, by the names of the library's model.
        side: Of the squares that it sees, in pixels.
        folder: To write.
    """
    partial = folder.with_name(f".{folder.name}")  # the source may be the folder itself
    shutil.rmtree(partial, ignore_errors=True)
    is_timm = source.package == "timm"
    with input_errors(source.name):
        model = timm_model(source) if is_timm else hf_model(source)[0]
        model.load_state_dict(state, strict=is_timm)  # the words' half is as it was
        if is_timm:
            from timm.models import save_for_hf

            sees = {"input_size": (3, side, side), "crop_pct": 1.0, "crop_mode": "squash"}
            save_for_hf(model, str(partial), safe_serialization=True, data_config=sees)
        else:
            model.save_pretrained(partial)
            _squares(levels, side).save_pretrained(partial)
            for file in tokenizer_files(source):
                shutil.copy(file, partial)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def _squares(levels: tuple[Tensor, Tensor], side: int) -> Any:
    """Return a processor of transformers that makes standardised squares."""
    from transformers import ViTImageProcessor

    mean, std = (each.tolist() for each in levels)
    preparing: Any = ViTImageProcessor
    size = {"height": side, "width": side}
    return preparing(size=size, rescale_factor=1.0, image_mean=mean, image_std=std)
