"""What goes from stage to stage in one step, the tensors of one sample, and by which links."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

Value = Tensor | tuple[Tensor, ...]
Layout = tuple[tuple[torch.dtype, tuple[int, ...]], ...]
Form = tuple[bool, Layout]


class Message(NamedTuple):
    """One sample on its way.

    `alone` distinguishes a bare tensor from a tuple of one. In messages to the left the tensors are
    gradients, one for each floating tensor of the message that they answer.
    """

    sample: int
    tensors: tuple[Tensor, ...]
    alone: bool

    @property
    def value(self) -> Value:
        """The input of a module."""
        return self.tensors[0] if self.alone else self.tensors


class Answer:
    """The last stage's answer to a sample, in memory of its own.

    `index` is the sample's, counted from 0; `output` a tensor or a tuple of tensors.
    """

    def __init__(self, output: Message, loss: Tensor | None) -> None:
        self.index, self.output, self._loss = output.sample, output.value, loss

    @property
    def loss(self) -> float | None:
        """The loss from before the sample was learned; None: it had no target."""
        return None if self._loss is None else float(self._loss)

    def __repr__(self) -> str:
        alone = isinstance(self.output, Tensor)
        form = alone, layout_of((self.output,) if alone else self.output)  # type: ignore[arg-type]
        return f"Answer(index={self.index}, output={_shown(form)}, loss={self.loss})"


def message_of(sample: int, value: object, what: str) -> Message:
    """Return a message that shares the memory of a tensor or a tuple of tensors.

    Raises:
        TypeError: The value is something else; `what` names it.
    """
    alone = isinstance(value, Tensor)
    tensors = (value,) if alone else value
    if not isinstance(tensors, tuple | list) or not tensors:
        raise TypeError(f"{what}: a tensor or a tuple of tensors, not {type(value).__name__}")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{what}: a tuple of tensors, not of {type(tensor).__name__}")
        if tensor.is_complex():
            raise TypeError(f"{what}: complex; give real and imaginary parts as two tensors")
    return Message(sample, tuple(tensor.detach() for tensor in tensors), alone)


def layout_of(tensors: tuple[Tensor, ...]) -> Layout:
    """Return the type and the shape of each tensor."""
    return tuple((tensor.dtype, tuple(tensor.shape)) for tensor in tensors)


def check_form(forms: dict[str, Form], stream: str, message: Message, what: str) -> None:
    """Check that a message is formed as the first of a stream, which `forms` remembers.

    Raises:
        ValueError: It is not; `what` names it.
    """
    form = message.alone, layout_of(message.tensors)
    first = forms.setdefault(stream, form)
    if form != first:
        raise ValueError(f"{what}: {_shown(form)}; the stream began with {_shown(first)}")


def cloned(message: Message) -> Message:
    """Return a message with memory of its own, dense, its axes in memory in the same order."""
    return message._replace(tensors=tuple(tensor.clone() for tensor in message.tensors))


def bytes_of(tensors: tuple[Tensor, ...]) -> int:
    """Return how many bytes the tensors have."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _shown(form: Form) -> str:
    alone, layout = form
    parts = (f"{str(dtype).removeprefix('torch.')} {list(shape)}" for dtype, shape in layout)
    return " and ".join(parts) + ("" if alone else " in a tuple")


class Ends(NamedTuple):
    """The links of a stage, of the kind that its executor has; None: it has none."""

    left: Any
    right: Any  # the last stage's goes to the host
    back: Any = None
    signals: Any = None  # what comes back from the right
    targets: Any = None


class Host(NamedTuple):
    """The host's ends: two that lead to stages, and one that comes from the last."""

    samples: Any
    targets: Any
    answers: Any


def joined(
    stages: int, learning: bool, link: Callable[[int | None, int | None], tuple[Any, Any]]
) -> tuple[list[Ends], Host]:
    """Return the links of each stage, and the host's.

    `link` makes one, of the stage (None: the host) that sends and the one that receives, and
    returns the ends of both.
    """
    last, nothing = stages - 1, (None, None)
    right = [link(h - 1 if h else None, h) for h in range(stages)] + [link(last, None)]
    back = [link(h + 1, h) if learning else nothing for h in range(last)] + [nothing]
    targets = link(None, last) if learning else nothing
    ends = [
        Ends(
            left=right[h][1],
            right=right[h + 1][0],
            back=back[h - 1][0] if h else None,
            signals=back[h][1],
            targets=targets[1] if h == last else None,
        )
        for h in range(stages)
    ]
    return ends, Host(right[0][0], targets[0], right[-1][1])
