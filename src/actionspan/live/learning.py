"""Learning while the video plays: score first, then learn, and continue with the new weights.

Labels come from annotations, as if somebody gave them while watching: labels of an instance some
seconds after its end, labels of the background once it is sure that nothing was happening. After
each snippet the network does one step on the newest snippets that have labels, a window that slides
by one: nearly the same samples each time, as learning from a stream wants it (paper 002).

The score is prequential: each snippet's actionness is taken before its label is learned. The same
score of the initial weights is given for comparison.
"""

import copy
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError
from actionspan.live.settings import LearningSettings
from actionspan.streaming import Pipeline
from actionspan.temporal.labels import INSIDE, NO_PART, boundary_regions, covered, video_targets
from actionspan.temporal.loss import members_loss
from actionspan.temporal.network import TemporalNetwork
from actionspan.temporal.prediction import NetworkStream
from actionspan.temporal.span import SpanNetwork

_MOST_ROWS = 8192  # that wait for labels: of a longer instance only the end is learned
_FEWEST = 16  # labelled snippets that a first step wants
_BINS = 1000  # of probabilities, for an area under the curve in bounded memory


@dataclass(frozen=True)
class Actionness:
    """The network's answer to a snippet: its number, time in seconds and three probabilities."""

    snippet: int
    seconds: float
    start: float
    action: float
    end: float


class Ranking:
    """The area under the ROC curve of probabilities so far, in bins of 1/1000."""

    def __init__(self, counts: Float64 | None = None) -> None:
        self.counts = np.zeros((2, _BINS)) if counts is None else counts

    def add(self, probability: float, positive: bool) -> None:
        """Count a probability."""
        self.counts[int(positive), min(int(probability * _BINS), _BINS - 1)] += 1

    @property
    def area(self) -> float | None:
        """The chance that a positive ranks above a negative; None: one kind is missing."""
        negative, positive = self.counts
        if not (negative.sum() and positive.sum()):
            return None
        below = np.cumsum(negative) - negative / 2
        return float((positive * below).sum() / (positive.sum() * negative.sum()))


class OnlineLearner:
    """Trains the network of a model on the rows of a stream; `instances` are (K, 2) in seconds.

    Raises:
        InputError: The network cannot stream.
    """

    def __init__(
        self, network: TemporalNetwork, instances: Float64, settings: LearningSettings
    ) -> None:
        if not isinstance(network, SpanNetwork) or network.look_ahead is None:
            raise InputError("--learn: needs a model trained with temporal.models: [stream]")
        self.settings, self.network = settings, network
        self.instances = instances[np.argsort(instances[:, 0], kind="stable")].reshape(-1, 2)
        self._back, self._ahead = network.look_back or 0, network.look_ahead
        network.requires_grad_(True).eval()  # no dropout: it learns as it is used
        self._frozen = copy.deepcopy(network)
        self._pipeline = Pipeline(
            [_Logits(network)],
            loss=_loss,
            optimiser=partial(torch.optim.AdamW, lr=settings.learning_rate),
            threads=torch.get_num_threads(),
        )
        self.steps = 0
        self.learned, self.frozen = Ranking(), Ranking()
        self._predicted: deque[tuple[float, float, float]] = deque()  # seconds, learned, frozen
        self._begin()

    def _begin(self) -> None:
        """Begin a stretch of rows that adjoin each other."""
        self._rows: deque[Float32] = deque()
        self._times: deque[float] = deque()  # of the snippets, those without a row yet too
        self._learned = 0  # rows up to which labels were learned
        self._before = NetworkStream(self._frozen)

    def add(
        self, rows: Float32, seconds: float, interval: float, actionness: Sequence[Actionness]
    ) -> None:
        """Take a snippet's time, the rows and the actionness that it completed, and learn."""
        self._times.append(seconds)
        frozen = []
        for row in rows:
            self._rows.append(row)
            frozen += self._before.add(row).tolist()
        self._expect(actionness, frozen)
        known = self.known_until(seconds, interval)
        self._score(known, interval)
        times = np.array(self._times)[: len(self._rows)]
        labelled = int((times + interval / 2 <= known).sum())
        last = min(labelled, len(times) - self._ahead)  # it sees rows ahead of those it learns
        window = self.settings.learning_window
        if last > self._learned and last >= _FEWEST:
            # Many labels at once, as at the end of a long instance, are more than one window.
            for end in (*range(self._learned + window, last, window), last):
                self._learn(end, times, interval)
            self._learned = last
        self._forget(labelled - self._back - window)

    def gap(self, rows: Float32, actionness: Sequence[Actionness]) -> None:
        """Take the last rows and actionness of a stretch: the rows that follow do not adjoin."""
        frozen = [curve for row in rows for curve in self._before.add(row).tolist()]
        self._expect(actionness, frozen + self._before.finish().tolist())
        self._begin()

    def _expect(self, actionness: Sequence[Actionness], frozen: Sequence[Any]) -> None:
        for answer, other in zip(actionness, frozen, strict=True):
            self._predicted.append((answer.seconds, answer.action, other[1]))

    def _score(self, known: float, interval: float) -> None:
        """Count the predictions with known labels."""
        while self._predicted and self._predicted[0][0] + interval / 2 <= known:
            time, learned, before = self._predicted.popleft()
            inside = bool(((self.instances[:, 0] <= time) & (time < self.instances[:, 1])).any())
            self.learned.add(learned, inside)
            self.frozen.add(before, inside)

    def known_until(self, now: float, interval: float) -> float:
        """Return up to when all labels are known: nothing before is unfinished or too new."""
        known = now - self.settings.label_seconds
        lengths = np.diff(self.instances, axis=1)[:, 0]
        begun = self.instances[:, 0] - np.maximum(interval, lengths / 10) / 2  # of their regions
        ended = self.instances[:, 1] + self.settings.label_seconds
        going = begun[(begun < known) & (ended > now)]
        return float(min(known, going.min(initial=np.inf)))

    def _learn(self, end: int, times: Float64, interval: float) -> None:
        """Do one step on the window of rows that ends before `end`."""
        begin = end - self.settings.learning_window
        first, last = max(0, begin - self._back), end + self._ahead
        labels = self.labels(times[first:last], interval)
        labels[: max(0, begin - first), INSIDE] = 0  # rows around the window are only seen
        labels[len(labels) - self._ahead :, INSIDE] = 0
        rows = np.stack([self._rows[place] for place in range(first, last)])
        # a short stream: nothing, and no video, lies before its first row
        missing = self.settings.learning_window + self._back + self._ahead - len(rows)
        given = (np.pad(each, ((missing, 0), (0, 0))) for each in (rows, labels))
        self._pipeline.step(*(torch.from_numpy(each)[None] for each in given))
        self.steps += 1

    def _forget(self, done: int) -> None:
        """Drop the rows that no later window holds, and too many that wait for labels."""
        for _ in range(max(done, len(self._rows) - _MOST_ROWS, 0)):
            self._rows.popleft()
            self._times.popleft()
            self._learned = max(0, self._learned - 1)

    def labels(self, times: Float64, interval: float) -> Float32:
        """Return the labels (T, 5) of snippets at times (T,); a step is as long as they are apart.

        For snippets at equal distances they are the labels of whole videos.
        """
        steps = len(times)
        middles = np.arange(-1, steps + 1) + 0.5
        around = np.concatenate([[times[0] - interval], times, [times[-1] + interval]])
        inner = np.interp(self.instances, around, middles)
        before = np.minimum(self.instances - around[0], 0) / interval
        segments = inner + before + np.maximum(self.instances - around[-1], 0) / interval
        shares = covered(boundary_regions(segments / steps, steps, "bsn", 0.1), steps)
        return video_targets(shares, NO_PART)

    def summary(self) -> dict[str, Any]:
        """Return the number of steps and their changes, at the end of the stream."""
        self._score(np.inf, 0.0)
        return {
            "steps": self.steps,
            "snippets": int(self.learned.counts.sum()),
            "actionness_auc": self.learned.area,
            "actionness_auc_without_learning": self.frozen.area,
        }

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed learner depends on, the weights included."""
        return {
            "pipeline": self._pipeline.state_dict(),
            "steps": self.steps,
            "rows": [row.copy() for row in self._rows],
            "times": list(self._times),
            "learned_rows": self._learned,
            "predicted": list(self._predicted),
            "before": self._before.state_dict(),
            "learned": self.learned.counts.copy(),
            "frozen": self.frozen.counts.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state_dict`, bitwise."""
        self._begin()
        self._pipeline.load_state_dict(state["pipeline"])
        self.steps = state["steps"]
        self._rows.extend(state["rows"])
        self._times.extend(state["times"])
        self._learned = state["learned_rows"]
        self._predicted = deque(tuple(each) for each in state["predicted"])
        self._before.load_state_dict(state["before"])
        self.learned, self.frozen = Ranking(state["learned"]), Ranking(state["frozen"])


class _Logits(nn.Module):
    def __init__(self, network: SpanNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, rows: Tensor) -> Tensor:
        return self.network.logits(rows)


def _loss(logits: Any, labels: Any) -> Tensor:
    return members_loss(logits, labels).total
