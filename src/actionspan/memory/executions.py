"""The two executions of a step of stochastic backpropagation (paper 004, 3.2.1 and 3.3).

`split`: kept rows are run with a graph, the others without one. `replay`: kept rows are run again
in backward, piece by piece:

    forward                     rows 0 1 2 | 3 4 5 | 6 7 8    no graph, in order, whatever is kept
    the rest of the network     loss, backward: ∂L/∂h of all rows
    backward                    rows 1 5 | 6 with a graph; each piece's gradients are added up

Algorithm 1 of the paper asks for gradients of the nodes alone, so that nothing in the encoder
learns. Here the encoder's parameters are inputs of one autograd function, which returns their
gradients: a step has one backward pass, and each parameter gets its gradient once.

An encoder that draws random numbers (dropout, stochastic depth) has to draw the same ones in both
runs. Its kept rows are run in forward in the very pieces of backward, each piece from its own seed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from actionspan.memory import encoding
from actionspan.memory.encoding import Encode, Frames
from actionspan.memory.estimator import Estimator, Level, weigh, weighted
from actionspan.memory.randomness import Surroundings, draw_seeds, drawing

_WithGraph = Callable[[Encode, Tensor], Tensor]  # how the kept rows are run


def split(
    encoder: nn.Module,
    frames: Frames,
    estimator: Estimator,
    piece: int,
    generator: Generator | None,
    *,
    with_graph: _WithGraph | None = None,
    known: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """Return the features (T, …) of a video, of which the kept rows have a graph.

    Args:
        encoder: Run plainly where all rows are kept, in one batch.
        frames: The rows of the video.
        estimator: Which rows are kept. Where it looks at features, all rows are run for that first.
        piece: Rows that are run at a time without a graph, at most.
        generator: Where random numbers come from; None: torch's global generator.
        with_graph: How the kept rows are run; None: in one batch.
        known: Returns the features of dropped rows, like the features of kept ones that it is given
            too; by default dropped rows are run.
    """
    rows = encoding.all_rows(frames)
    first = encoding.detached_features(encoder, frames, rows, piece) if estimator.by_feature else []
    levels = estimator.draw(len(rows), generator, torch.cat(first) if first else None)
    if len(levels[0].rows) == len(rows) and with_graph is None:
        return encoding.encode_all(encoder, frames)
    top, parts = levels[-1], encoding.parts_of(encoder, levels)

    def run(some: Tensor) -> Tensor:
        return encoding.encode_kept(parts, levels, frames, some, piece)

    kept = run(top.rows) if with_graph is None else with_graph(run, top.rows)
    dropped = encoding.others(top.rows, len(rows))
    if known is not None:
        rest = [known(dropped, kept)] if len(dropped) else []
    elif first:
        rest = [torch.cat(first)[dropped]] if len(dropped) else []
    else:
        rest = encoding.detached_features(encoder, frames, dropped, piece)
    return encoding.join(top.rows, weigh(kept, top.weights), dropped, rest)


def replay(
    encoder: nn.Module,
    frames: Frames,
    estimator: Estimator,
    piece: int,
    generator: Generator | None,
) -> Tensor:
    """Return the features (T, …) of a video; their backward runs the kept rows again.

    Rows are run in pieces of at most `piece`, both times. Frames that are a tensor may need a
    gradient, which is 0 at dropped rows. Without a generator torch's global one is used.
    """
    parameters = [each for each in encoder.parameters() if each.requires_grad]
    given = frames if isinstance(frames, Tensor) else None
    tensors = [*encoder.parameters(), *encoder.buffers()]
    video = _Video(
        encoder=encoder,
        parameters=parameters,
        frames=frames if given is None else None,
        estimator=estimator,
        piece=piece,
        surroundings=Surroundings([*tensors, *([] if given is None else [given])]),
        training=[module.training for module in encoder.modules()],
    )
    features: Tensor = _Replay.apply(  # type: ignore[no-untyped-call]
        video, generator, tensors, given, *parameters
    )
    return features


@dataclass(kw_only=True)
class _Video:
    """The state that backward needs of a forward; it holds no tensor with a graph."""

    encoder: nn.Module
    parameters: list[nn.Parameter]
    frames: Frames | None  # None: they are a tensor, and autograd saves them
    estimator: Estimator
    piece: int
    surroundings: Surroundings
    training: list[bool]  # the mode of each module
    levels: tuple[Level, ...] = ()  # empty: drawn in backward, by the gradients
    draw_seed: int = 0  # for that
    seeds: list[int] = field(default_factory=list)  # of the pieces; empty: nothing is random

    def forward(self, frames: Frames, generator: Generator | None) -> Tensor:
        """Return the features of all rows, and draw which are kept."""
        rows, estimator = encoding.all_rows(frames), self.estimator
        if estimator.by_gradient:
            (self.draw_seed,) = draw_seeds(1, generator)
        elif not estimator.by_feature:
            self.levels = estimator.draw(len(rows), generator)
        before, pieces = self.surroundings.random(), encoding.balanced(rows, self.piece)
        with drawing(self.encoder) as draws:
            features = [self._plain(frames, some) for some in pieces[:1]]
        random = draws.random
        if not random or estimator.by_feature:
            features += [self._plain(frames, some) for some in pieces[1:]]
        if random:
            self.surroundings.set_random(before)
        if random and estimator.by_gradient:
            raise ValueError(
                f"sampler is {estimator.sampler!r}, which chooses rows in backward, but the "
                "encoder draws random numbers: call eval() on its dropout, or take another sampler"
            )
        if estimator.by_feature:
            self.levels = estimator.draw(len(rows), generator, torch.cat(features))
        return self._seeded(frames, generator) if random else torch.cat(features)

    def _plain(self, frames: Frames, rows: Tensor) -> Tensor:
        """Return the features of one piece, without a graph."""
        (features,) = encoding.detached_features(self.encoder, frames, rows, self.piece)
        return features

    def _seeded(self, frames: Frames, generator: Generator | None) -> Tensor:
        """Return the features of all rows, kept rows in the pieces, with the seeds, of backward."""
        kept = self.levels[-1].rows
        dropped = encoding.others(kept, len(frames))
        seed, *self.seeds = draw_seeds(1 + len(encoding.balanced(kept, self.piece)), generator)
        with torch.no_grad():
            features = torch.cat([each for _, each in self._kept(frames)])
        with self.surroundings.seeded(seed):
            rest = [self._plain(frames, some) for some in encoding.balanced(dropped, self.piece)]
        return encoding.join(kept, features, dropped, rest)

    def _kept(self, frames: Frames) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the kept rows of each piece and their features."""
        parts = encoding.parts_of(self.encoder, self.levels)
        for place, rows in enumerate(encoding.balanced(self.levels[-1].rows, self.piece)):
            seed = self.seeds[place] if self.seeds else None
            with self.surroundings.seeded(seed), self.surroundings.autocast():
                features = encoding.encode_kept(parts, self.levels, frames, rows, self.piece)
            yield rows, features
            del features  # before the next piece has its own

    def backward(self, frames: Tensor | None, gradient: Tensor) -> list[Tensor | None]:
        """Return the gradients of the frames, where they need one, and of each parameter.

        Args:
            frames: As in forward, where they are a tensor.
            gradient: (T, …) of the loss, at the features.

        Raises:
            RuntimeError: A second run would not be the first one.
        """
        if [module.training for module in self.encoder.modules()] != self.training:
            raise RuntimeError(
                "train() or eval() was called on the encoder between forward and backward, which "
                "runs its kept rows again"
            )
        # 1. draw rows by the gradients
        if not self.levels:
            seeded = Generator().manual_seed(self.draw_seed)
            self.levels = self.estimator.draw(len(gradient), seeded, gradient)
        # 2. run each piece again and add its gradients up
        given = self.frames if frames is None else frames.detach()
        assert given is not None
        leaves = []
        if frames is not None and frames.requires_grad:
            leaves.append(frames.detach().requires_grad_())
            given = leaves[0]
        totals: list[Tensor | None] = [None] * (len(leaves) + len(self.parameters))
        with _stand_ins(self.encoder, self.parameters) as stand_ins, torch.enable_grad():
            # Parameters that the encoder does not take from its modules have no stand-in.
            inputs = [*leaves, *stand_ins]
            places = list(range(len(totals)))
            for place, parameter in enumerate(self.parameters, start=len(leaves)):
                if parameter.requires_grad:  # it may have been frozen since
                    inputs.append(parameter)
                    places.append(place)
            for rows, features in self._kept(given):
                if not features.requires_grad:
                    continue
                weights = self.levels[-1].weights_of(rows)
                signal = weighted(gradient[rows.to(gradient.device)], weights)
                gradients = torch.autograd.grad(features, inputs, signal, allow_unused=True)
                for place, each in zip(places, gradients, strict=True):
                    if each is not None:
                        total = totals[place]
                        totals[place] = each if total is None else total + each
        return totals


@contextmanager
def _stand_ins(encoder: nn.Module, parameters: Sequence[nn.Parameter]) -> Iterator[list[Tensor]]:
    """Let an encoder run with other leaves that share the memory of its parameters.

    Otherwise a parameter's hook would be called for each piece, and change the gradient twice.
    Modules that share a parameter share the stand-in too.
    """
    stand_ins = {id(each): nn.Parameter(each.detach()) for each in parameters}
    places = [
        (module, name, parameter)
        for module in encoder.modules()
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False)
        if id(parameter) in stand_ins
    ]
    try:
        for module, name, parameter in places:
            setattr(module, name, stand_ins[id(parameter)])
        yield [stand_ins[id(each)] for each in parameters]
    finally:
        for module, name, parameter in places:
            setattr(module, name, parameter)


def _bit_sums(tensors: Sequence[Tensor]) -> list[int]:
    """Return a sum over the bits of each tensor's values, the same in any order of adding."""
    integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    known = [each.detach() for each in tensors if not (each.is_meta or each.is_complex())]
    kinds = [(each, integers[each.element_size()]) for each in known]
    # it may overflow: in a wider type it would take ten times as long
    sums = [each.view(kind).sum(dtype=kind).long() for each, kind in kinds]
    by_device = {each.device: [s for s in sums if s.device == each.device] for each in sums}
    return [number for own in by_device.values() for number in torch.stack(own).tolist()]


class _Replay(Function):
    """Features of frames; its inputs that learn are the frames, where they need it, and weights."""

    @staticmethod
    def forward(
        ctx: Any,
        video: _Video,
        generator: Generator | None,
        tensors: list[Tensor],
        frames: Tensor | None,
        *_: nn.Parameter,
    ) -> Tensor:
        given = video.frames if frames is None else frames
        assert given is not None
        features = video.forward(given, generator)
        ctx.video, ctx.tensors, ctx.sums = video, tensors, _bit_sums(tensors)
        # The encoder's tensors are saved so that a change of them before backward is an error.
        ctx.save_for_backward(frames, *tensors)
        return features

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        frames, *_ = ctx.saved_tensors  # all are looked at, as that checks their versions
        if _bit_sums(ctx.tensors) != ctx.sums:  # fused optimisers raise no version
            raise RuntimeError(
                "a tensor of the encoder was modified between forward and backward, which runs its "
                "kept rows again"
            )
        gradients = ctx.video.backward(frames, gradient)
        learns = frames is not None and frames.requires_grad
        return (None, None, None, *([] if learns else [None]), *gradients)
