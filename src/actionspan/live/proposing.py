"""Actionness and proposals of a stream, snippet by snippet, by a model that can wait.

    snippets → rows (features.past) → network (temporal.streaming) → cells → proposals

Each part keeps only the past that it needs, so memory depends on the longest segment and not on the
stream. Actionness equals the network's output on the whole video, up to rounding.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from actionspan.arrays import Float32, Float64
from actionspan.errors import InputError
from actionspan.features.cues import PastStream
from actionspan.features.transform import Transform
from actionspan.live.learning import Actionness, OnlineLearner
from actionspan.proposals.model_bundle import Bundle
from actionspan.proposals.online import OnlineCells, OnlineSelection
from actionspan.temporal.networks import network_class
from actionspan.temporal.prediction import NetworkStream
from actionspan.temporal.settings import MODELS
from actionspan.video.zones import ZoneWatch

_SLACK = 0.5  # how much shorter, or longer, than all training instances proposals may be
_MARGIN = 4  # steps kept beyond those that a proposal may need
_FEWEST = 64  # time stamps kept at least: the distance of two snippets is their median


@dataclass(frozen=True)
class OnlineProposal:
    """A segment in seconds, the recall that it adds, and its best class if there are any."""

    start: float
    end: float
    score: float
    label: str | None = None
    label_score: float | None = None
    zone: str | None = None  # of several, the one in which most moves


@dataclass(frozen=True)
class Update:
    """What became known: actionness in the order of snippets, proposals best first."""

    actionness: list[Actionness] = field(default_factory=list)
    proposals: list[OnlineProposal] = field(default_factory=list)


class OnlineProposer:
    """Turns snippets into actionness and proposals as they come.

    A snippet's actionness is given `look_ahead` snippets later. A proposal is given once: when it
    ended `delay_seconds` ago, or when its end and what its density sees behind it are known, if
    that takes longer; until then it competes with others.

    Raises:
        InputError: The model sees the whole video; the line names the setting for one that does
            not.
    """

    def __init__(self, bundle: Bundle, *, delay_seconds: float = 2.0) -> None:
        if not (np.isfinite(delay_seconds) and delay_seconds >= 0):
            raise InputError(f"delay {delay_seconds}: 0 seconds or more")
        if bundle.encoders.clip_encoder != "none":
            raise InputError(
                f"the model's clip encoder {bundle.encoders.clip_encoder} sees seconds ahead; a "
                "stream needs a model trained with features.encoders.clip_encoder: none"
            )
        past, density, network = bundle.transform.past, bundle.density, bundle.temporal
        if past is None or network.look_ahead is None or density is None or density.ahead is None:
            names = " or ".join(name for name in MODELS if network_class(name) is type(network))
            raise InputError(
                f"the model {names} sees the whole video; a stream needs a model trained with "
                "temporal.models: [stream]"
            )
        self.bundle, self.delay_seconds = bundle, delay_seconds
        # of motion alone it sees how a snippet differs from all of the video: no labels then
        self._classifier = bundle.classifier if bundle.classified.streams else None
        self._past_settings, self._density = past, density
        self.look_ahead = past.ahead + network.look_ahead
        self.learner: OnlineLearner | None = None  # learns between two snippets, if there is one
        self.zones: ZoneWatch | None = None  # sees each snippet before `add`, if there is one
        self._first = 0  # number of the first snippet since the last gap
        self._begin()

    def _begin(self) -> None:
        """Begin a stretch of snippets without a gap."""
        self._past = PastStream(self._past_settings)
        self._network = NetworkStream(self.bundle.temporal)
        self._cells = OnlineCells(self._density)
        self._selection = OnlineSelection(self.bundle.selection.counted, self.bundle.online.least)
        self._times: Float64 = np.zeros(0)  # of the last snippets
        self._count = 0  # snippets so far
        # the rows of the last for the classifier
        self._classified: Float32 = np.zeros((0, 0), np.float32)

    def add(
        self, features: Mapping[str, Float32], seconds: float, motion: Mapping[str, float]
    ) -> Update:
        """Take a snippet.

        Args:
            features: (C,) of each stream, as `TwoStream` has them.
            seconds: Time stamp of its centre frame, later than the snippet's before.
            motion: `flow_magnitude` and `frame_difference`, as feature shards have them.

        Raises:
            ValueError: Time does not increase, or the model has other streams.
        """
        transform = self.bundle.transform
        if set(features) != set(transform.streams):
            given, known = (", ".join(sorted(names)) for names in (features, transform.streams))
            raise ValueError(f"streams are {given}, the model has {known}")
        if len(self._times) and not seconds > self._times[-1]:
            raise ValueError(f"{seconds} s: not behind the snippet before, {self._times[-1]} s")
        self._times = np.append(self._times, seconds)
        self._count += 1
        if self._classifier is not None:
            row = np.concatenate(list(_transformed(features, self.bundle.classified).values()))
            self._classified = np.concatenate([self._classified.reshape(-1, len(row)), row[None]])
        rows = self._past.add(_transformed(features, transform), motion)
        found = [curve for row in rows for curve in self._network.add(row)]
        interval = self._interval()
        actionness = self._take(found, interval)
        if self.learner is not None:
            self.learner.add(rows, seconds, interval, actionness)
        due = self._count + 1 - self.delay_seconds / interval
        proposals = self._emit(due, interval)
        self._forget(interval)
        return Update(actionness, proposals)

    def gap(self) -> Update:
        """Frames were lost: give the pending events, and begin again after them."""
        return self._flush(None)

    def finish(self, duration_seconds: float) -> Update:
        """The stream has ended: give the rest. No proposal passes its end."""
        return self._flush(duration_seconds)

    def _flush(self, duration: float | None) -> Update:
        if not self._count:
            return Update()
        rows = self._past.finish()
        found = [curve for row in rows for curve in self._network.add(row)]
        found += list(self._network.finish())
        interval = self._interval()
        if self._count == 1 and duration and not self._first:
            interval = duration
        actionness = self._take(found, interval)
        if self.learner is not None:
            self.learner.gap(rows, actionness)
        self._selection.add(*self._cells.finish(interval))
        update = Update(actionness, self._emit(np.inf, interval, duration))
        self._first += self._count
        self._begin()
        return update

    def _take(self, found: list[Float32], interval: float) -> list[Actionness]:
        """Hand curves on to the cells; return them as actionness."""
        actionness = []
        for curve in found:
            step = self._cells.steps
            self._selection.add(*self._cells.add(curve, interval))
            time = float(self._times[step - self._count])
            actionness.append(Actionness(self._first + step, time, *curve.tolist()))
        return actionness

    def _emit(
        self, due: float, interval: float, duration: float | None = None
    ) -> list[OnlineProposal]:
        """Return the proposals that end by a step."""
        segments, scores = self._selection.emit(due)
        if not len(segments):
            return []
        labels = self._labels(segments, interval)
        # the middle of a step is its snippet's time
        middles = self._count - len(self._times) + np.arange(-1, len(self._times) + 1) + 0.5
        ends = [self._times[0] - interval], self._times, [self._times[-1] + interval]
        seconds = np.interp(segments, middles, np.concatenate(ends))
        seconds = np.clip(seconds, 0.0, np.inf if duration is None else duration)
        shortest, longest = self._density.lengths
        rows = zip(seconds.tolist(), scores.tolist(), labels, strict=True)
        return [
            self._zoned(OnlineProposal(start, end, score, *label))
            for (start, end), score, label in rows
            # where the rate of snippets changes, steps are not as long as they were taken for
            if start < end and (duration is not None or _SLACK * shortest < end - start)
            if end - start < longest / _SLACK
        ]

    def _zoned(self, found: OnlineProposal) -> OnlineProposal:
        if self.zones is None:
            return found
        return replace(found, zone=self.zones.most(found.start, found.end))

    def _labels(self, segments: Float64, interval: float) -> list[tuple[str, float] | tuple[()]]:
        """Return the best class of segments in steps, and its probability."""
        classifier = self._classifier
        if classifier is None or not classifier.labels:
            return [()] * len(segments)
        first = self._count - len(self._classified)
        length = len(self._classified) * interval
        scores = classifier.scores(self._classified, (segments - first) * interval, length)
        best = scores.argmax(axis=1)
        rows = zip(best.tolist(), scores.tolist(), strict=True)
        return [(classifier.labels[place], row[place]) for place, row in rows]

    def _interval(self) -> float:
        """Return the distance of two snippets in seconds: the median of the last ones."""
        if len(self._times) < 2:
            return float(max(2 * self._times[0], 1e-3)) if not self._first else 1.0
        return float(np.median(np.diff(self._times[-_FEWEST:])))

    def _forget(self, interval: float) -> None:
        """Drop what no later proposal depends on."""
        longest = self._cells.longest(interval)
        wait = self.delay_seconds / interval + self.look_ahead + _MARGIN
        self._selection.forget(self._count - longest - wait)
        kept = int(np.ceil(1.5 * longest + wait)) + _MARGIN
        self._times = self._times[-max(kept, _FEWEST) :]
        self._classified = self._classified[-kept:]

    def state_dict(self) -> dict[str, Any]:
        """Return arrays and numbers from which a proposer of the same bundle resumes, bitwise."""
        return {
            "first": self._first,
            "count": self._count,
            "times": self._times.copy(),
            "classified": self._classified.copy(),
            "learner": self.learner.state_dict() if self.learner is not None else None,
            "zones": self.zones.state_dict() if self.zones is not None else None,
            **{name: getattr(self, f"_{name}").state_dict() for name in _PARTS},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where the state was taken."""
        self._begin()
        self._first, self._count = state["first"], state["count"]
        self._times, self._classified = state["times"].copy(), state["classified"].copy()
        if self.learner is not None:
            self.learner.load_state_dict(state["learner"])
        if self.zones is not None:
            self.zones.load_state_dict(state["zones"])
        for name in _PARTS:
            getattr(self, f"_{name}").load_state_dict(state[name])


_PARTS = ("past", "network", "cells", "selection")


def _transformed(features: Mapping[str, Float32], transform: Transform) -> dict[str, Float32]:
    """Return the transformed features (K,) of each stream of a snippet."""
    return {
        name: stream.apply(np.asarray(features[name], np.float32)[None])[0]
        for name, stream in transform.streams.items()
    }
