"""Gradients gathered in flat buckets while backward runs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from actionspan.parallel.transfer import zeros


@dataclass
class Bucket:
    """Some parameters and a flat tensor of all their gradients, with one `views` for each.

    The tensor ends in one count a parameter: 1 where this rank has a gradient; after the exchange,
    the number of ranks that have one. `here` has the places of the gradients that are complete,
    `begun` of those to which passes before the step's last have added.
    """

    parameters: list[nn.Parameter]
    flat: Tensor
    views: list[Tensor]
    counts: Tensor
    here: set[int] = field(default_factory=set)
    begun: set[int] = field(default_factory=set)

    def take(self, place: int) -> bool:
        """Move a parameter's gradient into the bucket; return whether there is one.

        Raises:
            ValueError: The gradient is sparse.
        """
        parameter, view = self.parameters[place], self.views[place]
        gradient = parameter.grad
        if gradient is None:
            return False
        if gradient.is_sparse:
            raise ValueError("a sparse gradient: buckets hold dense ones only")
        if gradient is not view:
            view.copy_(gradient)
            parameter.grad = view  # a further pass adds to it there
        return True


Room = Callable[[int, torch.dtype, torch.device], Tensor]


def plan_buckets(
    parameters: Iterable[nn.Parameter], bucket_bytes: int, room: Room = zeros
) -> list[Bucket]:
    """Divide parameters among buckets, last parameter first, as backward finishes them.

    A bucket holds parameters of one type and device, and at most `bucket_bytes` unless a single
    parameter is larger. The plan depends on the parameters alone, so all ranks have the same.
    `room` makes the flat tensors, of a length, type and device; they are zeros.

    Raises:
        ValueError: No parameter requires a gradient.
    """
    groups: list[list[nn.Parameter]] = []
    for parameter in reversed([each for each in parameters if each.requires_grad]):
        group = groups[-1] if groups else []
        same = group and (group[0].dtype, group[0].device) == (parameter.dtype, parameter.device)
        if same and sum(member.nbytes for member in group) + parameter.nbytes <= bucket_bytes:
            group.append(parameter)
        else:
            groups.append([parameter])
    if not groups:
        raise ValueError("the model has no parameter that requires a gradient")
    return [_bucket(group, room) for group in groups]


def _bucket(group: list[nn.Parameter], room: Room) -> Bucket:
    sizes = [*(parameter.numel() for parameter in group), len(group)]
    flat = room(sum(sizes), group[0].dtype, group[0].device)
    *parts, counts = torch.split(flat, sizes)
    views = [_like(part, parameter) for part, parameter in zip(parts, group, strict=True)]
    return Bucket(group, flat, views, counts)


def _like(part: Tensor, parameter: nn.Parameter) -> Tensor:
    """Return the numbers of `part` in the shape of a parameter, and in its order in memory."""
    if parameter.ndim != 4 or not parameter.is_contiguous(memory_format=torch.channels_last):
        return part.view_as(parameter)
    return part.as_strided(parameter.shape, parameter.stride(), part.storage_offset())


class GradientBuckets:
    """Moves each gradient into its bucket as soon as backward has finished it.

    `parameter.grad` becomes a view of the bucket, so the optimiser reads the exchanged values.
    `ready` is called with a bucket's number when all its gradients are complete. A step has one
    backward pass; where it has several, all but the last run in `accumulating()`.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        bucket_bytes: int,
        ready: Callable[[int], None],
        room: Room = zeros,
    ) -> None:
        self.buckets = plan_buckets(parameters, bucket_bytes, room)
        self._ready = ready
        self._accumulating = False
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                self._hook(number, place)
            )
            for number, bucket in enumerate(self.buckets)
            for place, parameter in enumerate(bucket.parameters)
        ]

    @contextmanager
    def accumulating(self) -> Iterator[None]:
        """Let the backward passes in a block add to the gradients, none of which is complete yet.

        The step's last pass runs outside, or there is none: `fill` completes what has begun.
        """
        before, self._accumulating = self._accumulating, True
        try:
            yield
        finally:
            self._accumulating = before

    def fill(self) -> None:
        """Complete all buckets, with zeros where this rank has no gradient in this step.

        A gradient that only passes before the last gave counts as any other.
        """
        for number, bucket in enumerate(self.buckets):
            if len(bucket.here) < len(bucket.parameters):
                bucket.counts.fill_(1)
                for place in set(range(len(bucket.parameters))) - bucket.here:
                    if place in bucket.begun and bucket.take(place):
                        bucket.here.add(place)
                    else:
                        bucket.views[place].zero_()
                        bucket.counts[place] = 0
                self._ready(number)

    def hand_out(self) -> None:
        """Give every parameter its exchanged gradient, or None where no rank had one.

        Optimisers skip a parameter without a gradient; with a gradient of zero, momentum and weight
        decay would still move it.
        """
        for bucket in self.buckets:
            complete = len(bucket.here) == len(bucket.parameters)
            for place, parameter in enumerate(bucket.parameters):
                anywhere = complete or float(bucket.counts[place]) > 0
                parameter.grad = bucket.views[place] if anywhere else None
            bucket.here.clear()
            bucket.begun.clear()

    def close(self) -> None:
        """Remove the hooks."""
        for hook in self._hooks:
            hook.remove()

    def _hook(self, number: int, place: int) -> Callable[[Tensor], None]:
        bucket = self.buckets[number]

        def gradient_ready(_: Tensor) -> None:
            if place in bucket.here:
                raise RuntimeError("a second backward pass before the exchange of the first")
            bucket.take(place)
            if self._accumulating:
                bucket.begun.add(place)
                return
            bucket.here.add(place)
            if len(bucket.here) == len(bucket.parameters):
                bucket.counts.fill_(1)
                self._ready(number)

        return gradient_ready
