"""Measure the bytes that an encoder, a head and a video need, on copies without memory."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from actionspan.memory.counting import AllocatedBytes, identity, saved_bytes
from actionspan.memory.encoding import Frames, inputs_of

Head = nn.Module | Callable[[Tensor], Tensor]
"""From features (T, C) to a loss; of a module's output that is not a scalar the sum is taken."""

_FEW, _MORE = 2, 5  # rows between which bytes are taken as linear; one row may run other kernels


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The needs of an encoder, a head and a video, in bytes unless stated otherwise."""

    longest: int
    """Rows of the longest video, T."""
    row_bytes: int
    """Saved for backward of a row in the encoder, a."""
    fixed_bytes: int
    """Saved in the encoder whatever the number of rows."""
    head_bytes: int
    """Saved in the head for the longest video, M_c."""
    value_bytes: int
    """All weights and buffers."""
    trained_bytes: int
    """The weights that learn."""
    trained_head_bytes: int
    """The head's."""
    picture_bytes: int
    """The longest video as it is held."""
    transient_bytes: int
    """The most that one operator reads and makes of a row."""
    feature_bytes: int
    """A row of features."""


class _LightFrames:
    """Rows of the same shape as another video's, on `meta`."""

    def __init__(self, row: Tensor | tuple[Tensor, ...], count: int) -> None:
        self._row, self._count = row, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, rows: Tensor, /) -> Tensor | tuple[Tensor, ...]:
        """Return `len(rows)` rows; making numbers of images needs them twice for a moment."""

        def made(row: Tensor) -> Tensor:
            size = (len(rows), *row.shape[1:])
            return torch.empty(size, dtype=row.dtype, device="meta").clone()

        return made(self._row) if isinstance(self._row, Tensor) else tuple(map(made, self._row))


def light_frames(frames: Frames, count: int) -> Frames:
    """Return a video like another, of `count` rows and without memory."""
    if isinstance(frames, Tensor):
        return torch.empty((count, *frames.shape[1:]), dtype=frames.dtype, device="meta")
    return _LightFrames(frames[torch.zeros(1, dtype=torch.int64)], count)


def probe(encoder: nn.Module, head: Head, frames: Frames) -> Probe:
    """Probe an encoder and a head for the longest video."""
    # 1. bytes saved in the encoder, for two lengths
    light_encoder, light_head = light_copies(encoder, head)
    video = light_frames(frames, max(_MORE, len(frames)))
    few, more = (_encoder_saves(light_encoder, video, count) for count in (_FEW, _MORE))
    row_bytes = (more - few) // (_MORE - _FEW)
    # 2. the largest operator, and bytes saved in the head
    rows = inputs_of(video, torch.arange(_FEW))
    with torch.no_grad(), AllocatedBytes() as counted:
        features = light_encoder(*rows)
    features = features.new_empty((len(frames), *features.shape[1:])).requires_grad_()
    with torch.enable_grad(), saved_bytes(*modules_of(light_encoder, light_head)) as saved:
        scalar(light_head, features)
    # 3. weights
    modules = modules_of(encoder, head)
    values = [t for module in modules for t in (*module.parameters(), *module.buffers())]
    learned = [[p for p in module.parameters() if p.requires_grad] for module in modules]
    return Probe(
        longest=len(frames),
        row_bytes=row_bytes,
        fixed_bytes=max(0, few - _FEW * row_bytes),
        head_bytes=saved.total,
        value_bytes=_bytes(values),
        trained_bytes=_bytes(chain(*learned)),
        trained_head_bytes=_bytes(chain(*learned[1:])),
        picture_bytes=_picture_bytes(frames),
        transient_bytes=counted.largest // _FEW,
        feature_bytes=features[0].numel() * features.element_size(),
    )


def light_copies(encoder: nn.Module, head: Head) -> tuple[nn.Module, Head]:
    """Return copies of an encoder and a head with their tensors on `meta`.

    A head that is a function stays as it is, and is run on zeros on the encoder's device.
    """
    memo: dict[int, Any] = {}
    parts = modules_of(encoder, head)
    # Beforehand: parameters are copied by a function of their own, which takes memory.
    memo |= {id(p): _light(p) for module in parts for p in module.parameters()}
    with _LightCopies():
        light = copy.deepcopy(encoder, memo)
        if isinstance(head, nn.Module):
            return light, copy.deepcopy(head, memo)
    first = next((t for t in (*encoder.parameters(), *encoder.buffers())), torch.empty(0))
    device = torch.empty(0).device if first.is_meta else first.device
    # Elsewhere than its features, which are on `meta`.
    return light, lambda features: _Elsewhere.apply(features, head, device)  # type: ignore[no-untyped-call]


class _LightCopies(TorchFunctionMode):
    """Copy tensors to `meta`, wherever in an object they are: buffers, labels, fixed matrices."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.__deepcopy__:
            tensor, memo = args
            return memo.setdefault(id(tensor), _light(tensor))
        return func(*args, **(kwargs or {}))


def scalar(head: Head, features: Tensor) -> Tensor:
    """Return the loss of features on `meta` by a light copy of a head, joined by autograd."""
    output: Tensor = head(features)
    return output if output.ndim == 0 else output.sum()


class _Elsewhere(torch.autograd.Function):
    """A head that is a function, on real zeros; its own weights get no gradient."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, head: Callable[[Tensor], Tensor], device: torch.device
    ) -> Tensor:
        zeros = torch.zeros(features.shape, dtype=features.dtype, device=device, requires_grad=True)
        with torch.enable_grad():
            loss = head(zeros)
        ctx.loss, ctx.zeros = loss, zeros
        return features.new_empty(())

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor, None, None]:
        loss, zeros = ctx.loss, ctx.zeros
        ctx.loss = ctx.zeros = None
        if loss.requires_grad:
            (gradient,) = torch.autograd.grad(loss, zeros, allow_unused=True)
            if gradient is not None:
                return gradient.to("meta"), None, None
        raise ValueError("the head's loss does not depend on the features")


def modules_of(encoder: nn.Module, head: Head) -> list[nn.Module]:
    """Return the modules among the two."""
    return [part for part in (encoder, head) if isinstance(part, nn.Module)]


def _picture_bytes(frames: Frames) -> int:
    """Return the bytes of a video as it is held: by its `nbytes`, or a byte a number."""
    held = getattr(frames, "nbytes", None)
    if held is not None:
        return int(held)
    return len(frames) * sum(row.numel() for row in inputs_of(frames, torch.arange(1)))


def _encoder_saves(encoder: nn.Module, video: Frames, count: int) -> int:
    with torch.enable_grad(), saved_bytes(encoder) as counted:
        encoder(*inputs_of(video, torch.arange(count)))
    return counted.total


def _light(tensor: Tensor) -> Tensor:
    made = torch.empty_like(tensor, device="meta", requires_grad=False)
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made


def _bytes(tensors: Iterable[Tensor]) -> int:
    """Return the bytes of the storages of tensors, each once."""
    storages = {identity(tensor): tensor.untyped_storage() for tensor in tensors}
    return sum(storage.nbytes() for storage in storages.values())
