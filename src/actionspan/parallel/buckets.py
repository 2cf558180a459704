"""Gradients gathered in flat buckets while backward runs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from actionspan.parallel.transfer import zeros


@dataclass
class Bucket:
    """Some parameters and one flat tensor that holds all their gradients.

    At the end of the tensor stands a value for each parameter: 1 where this rank has a gradient.
    After the exchange it is how many ranks had one.
    """

    parameters: list[nn.Parameter]
    flat: Tensor
    views: list[Tensor]
    counts: Tensor
    here: set[int] = field(default_factory=set)


def plan_buckets(parameters: Iterable[nn.Parameter], bucket_bytes: int) -> list[Bucket]:
    """Divide parameters among buckets, last parameter first, as backward finishes them.

    A bucket holds parameters of one type and device and no more than `bucket_bytes`, unless one
    parameter alone is larger. The plan follows from the parameters alone: all ranks have the same.

    Raises:
        ValueError: No parameter wants a gradient.
    """
    groups: list[list[nn.Parameter]] = []
    for parameter in reversed([one for one in parameters if one.requires_grad]):
        group = groups[-1] if groups else []
        same = group and (group[0].dtype, group[0].device) == (parameter.dtype, parameter.device)
        if same and sum(one.nbytes for one in group) + parameter.nbytes <= bucket_bytes:
            group.append(parameter)
        else:
            groups.append([parameter])
    if not groups:
        raise ValueError("the model has no parameter that wants a gradient")
    return [_bucket(group) for group in groups]


def _bucket(group: list[nn.Parameter]) -> Bucket:
    sizes = [one.numel() for one in group]
    flat = zeros(sum(sizes) + len(group), group[0].dtype, group[0].device)
    *parts, counts = torch.split(flat, [*sizes, len(group)])
    views = [part.view_as(one) for part, one in zip(parts, group, strict=True)]
    return Bucket(group, flat, views, counts)


class GradientBuckets:
    """Moves each gradient into its bucket as soon as backward has finished it.

    Afterwards `parameter.grad` is a view of the bucket, so that what is exchanged is what the
    optimiser reads. One backward pass a step.

    Args:
        parameters: Of a model, in its order.
        bucket_bytes: Size of a bucket.
        ready: Called with a bucket's number when all its gradients are there.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        bucket_bytes: int,
        ready: Callable[[int], None],
    ) -> None:
        self.buckets = plan_buckets(parameters, bucket_bytes)
        self._ready = ready
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                self._hook(number, place)
            )
            for number, bucket in enumerate(self.buckets)
            for place, parameter in enumerate(bucket.parameters)
        ]

    def fill(self) -> None:
        """Complete all buckets: a gradient that this rank does not have in this step is zero."""
        for number, bucket in enumerate(self.buckets):
            if len(bucket.here) < len(bucket.parameters):
                bucket.counts.fill_(1)
                for place in set(range(len(bucket.parameters))) - bucket.here:
                    bucket.views[place].zero_()
                    bucket.counts[place] = 0
                self._ready(number)

    def hand_out(self) -> None:
        """Give every parameter its exchanged gradient, or none where no rank had one.

        An optimiser passes over a parameter without a gradient; at one of zero it would still move
        it by momentum and weight decay.
        """
        for bucket in self.buckets:
            complete = len(bucket.here) == len(bucket.parameters)
            for place, parameter in enumerate(bucket.parameters):
                anywhere = complete or float(bucket.counts[place]) > 0
                parameter.grad = bucket.views[place] if anywhere else None
            bucket.here.clear()

    def close(self) -> None:
        """Take the hooks off the parameters."""
        for hook in self._hooks:
            hook.remove()

    def _hook(self, number: int, place: int) -> Callable[[Tensor], None]:
        bucket = self.buckets[number]

        def gradient_is_here(parameter: Tensor) -> None:
            if place in bucket.here:
                raise RuntimeError("a second backward pass before the exchange of the first")
            gradient = parameter.grad
            assert gradient is not None
            if gradient.is_sparse:
                raise ValueError("a sparse gradient: buckets hold dense ones only")
            if gradient is not bucket.views[place]:
                bucket.views[place].copy_(gradient)
                parameter.grad = bucket.views[place]
            bucket.here.add(place)
            if len(bucket.here) == len(bucket.parameters):
                bucket.counts.fill_(1)
                self._ready(number)

        return gradient_is_here
