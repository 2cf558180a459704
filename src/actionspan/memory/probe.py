"""Find out what an encoder, a head and a video need, on copies without memory."""

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from actionspan.memory.counting import allocated_bytes, identity, saved_bytes
from actionspan.memory.encoding import Frames, inputs_of

Head = nn.Module | Callable[[Tensor], Tensor]
"""From features (T, C) to a loss; of a module's output that is no scalar the sum is taken."""

_FEW, _MORE = 2, 5  # rows between which bytes are taken as linear; one row may run other kernels


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What an encoder, a head and a video need, in bytes unless it says otherwise."""

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
    """Those of the head."""
    picture_bytes: int
    """The longest video as it is held."""
    transient_bytes: int
    """The most that one operator reads and makes of a row."""
    feature_bytes: int
    """A row of features."""
    feature_shape: tuple[int, ...]
    """Of a row."""


class _LightFrames:
    """Rows like those of another video, on `meta`."""

    def __init__(self, rows: tuple[Tensor, ...], alone: bool, count: int) -> None:
        self._rows, self._alone, self._count = rows, alone, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, rows: Tensor, /) -> Tensor | tuple[Tensor, ...]:
        """Return `len(rows)` rows; making numbers of pictures needs them twice for a moment."""
        made = tuple(
            torch.empty((len(rows), *row.shape[1:]), dtype=row.dtype, device="meta").clone()
            for row in self._rows
        )
        return made[0] if self._alone else made


def light_frames(frames: Frames, count: int) -> Frames:
    """Return a video like another, of `count` rows and without memory."""
    if isinstance(frames, Tensor):
        return torch.empty((count, *frames.shape[1:]), dtype=frames.dtype, device="meta")
    row = frames[torch.zeros(1, dtype=torch.int64)]
    alone = isinstance(row, Tensor)
    return _LightFrames((row,) if isinstance(row, Tensor) else tuple(row), alone, count)


def probe(encoder: nn.Module, head: Head, frames: Frames) -> Probe:
    """Probe an encoder and a head for the longest video."""
    light_encoder, light_head = light_copies(encoder, head)
    video = light_frames(frames, max(_MORE, len(frames)))
    few, more = (_encoder_saves(light_encoder, video, count) for count in (_FEW, _MORE))
    row_bytes = (more - few) // (_MORE - _FEW)
    rows = inputs_of(video, torch.arange(_FEW))
    with torch.no_grad(), allocated_bytes() as counted:
        features = light_encoder(*rows)
    features = features.new_empty((len(frames), *features.shape[1:])).requires_grad_()
    with torch.enable_grad(), saved_bytes(*modules_of(light_encoder, light_head)) as saved:
        scalar(light_head, features)
    modules = modules_of(encoder, head)
    parameters = [p for module in modules for p in module.parameters()]
    buffers = [b for module in modules for b in module.buffers()]
    return Probe(
        longest=len(frames),
        row_bytes=row_bytes,
        fixed_bytes=max(0, few - _FEW * row_bytes),
        head_bytes=saved.total,
        value_bytes=_bytes([*parameters, *buffers]),
        trained_bytes=_bytes(p for p in parameters if p.requires_grad),
        trained_head_bytes=_bytes(
            p for module in modules[1:] for p in module.parameters() if p.requires_grad
        ),
        picture_bytes=picture_bytes(frames),
        transient_bytes=counted.largest // _FEW,
        feature_bytes=features[0].numel() * features.element_size(),
        feature_shape=tuple(features.shape[1:]),
    )


def light_copies(encoder: nn.Module, head: Head) -> tuple[nn.Module, Head]:
    """Return copies of an encoder and a head whose tensors are on `meta`.

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
    return light, _OnDevice(head, torch.empty(0).device if first.is_meta else first.device)


@dataclass(frozen=True)
class _OnDevice:
    """A head that is a function, and the device of its features."""

    head: Callable[[Tensor], Tensor]
    device: torch.device

    def __call__(self, features: Tensor) -> Tensor:
        return self.head(features)


class _LightCopies(TorchFunctionMode):
    """Copy tensors to `meta`, wherever in an object they are: buffers, labels, fixed matrices."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func is Tensor.__deepcopy__:
            tensor, memo = args
            return memo.setdefault(id(tensor), _light(tensor))
        return func(*args, **(kwargs or {}))


def scalar(head: Head, features: Tensor) -> Tensor:
    """Return the loss of features on `meta`, joined to them by autograd."""
    if isinstance(head, nn.Module):
        output: Tensor = head(features)
        return output if output.ndim == 0 else output.sum()
    return _Elsewhere.apply(features, head)  # type: ignore[no-any-return, no-untyped-call]


class _Elsewhere(torch.autograd.Function):
    """A head that is a function, on real zeros; its own weights get no gradient."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, head: Callable[[Tensor], Tensor]) -> Tensor:
        device = head.device if isinstance(head, _OnDevice) else None
        zeros = torch.zeros(features.shape, dtype=features.dtype, device=device, requires_grad=True)
        with torch.enable_grad():
            loss = head(zeros)
        ctx.loss, ctx.zeros = loss, zeros
        return features.new_empty(())

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor, None]:
        loss, zeros = ctx.loss, ctx.zeros
        ctx.loss = ctx.zeros = None
        if loss.requires_grad:
            (gradient,) = torch.autograd.grad(loss, zeros, allow_unused=True)
            if gradient is not None:
                return gradient.to("meta"), None
        raise ValueError("the head's loss does not depend on the features")


def modules_of(encoder: nn.Module, head: Head) -> list[nn.Module]:
    """Return those of the two that are modules."""
    return [part for part in (encoder, head) if isinstance(part, nn.Module)]


def picture_bytes(frames: Frames) -> int:
    """Return the bytes of a video as it is held: by its `nbytes`, or a byte a number."""
    held = getattr(frames, "nbytes", None)
    if held is not None:
        return int(held)
    numbers = sum(row.numel() for row in inputs_of(frames, torch.arange(1)))
    return len(frames) * numbers


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
