"""A stream from its first snippet to its end: read, work, write, remember.

The reading thread hands over snippets, the pipeline makes features of them, the proposer makes
actionness and proposals of those, in order, and the outputs write them down. Between two answers
everything that was written fits what the proposer remembers: that is where states are saved.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from actionspan.errors import InputError
from actionspan.live.encoding import Message, encoded, message_of
from actionspan.live.outputs import Outputs
from actionspan.live.progress import (
    Counts,
    Ended,
    Facts,
    Latency,
    Place,
    Progress,
    State,
    Status,
    write_state,
)
from actionspan.live.proposing import OnlineProposer, Update
from actionspan.live.reading import Arrived, Gap, HandOver, Reader
from actionspan.streaming.errors import StageError

_POLL = 0.02  # seconds to wait for an answer before looking for a new snippet again
_IDLE = 0.1  # seconds to wait for a snippet before looking whether to stop


class Stream:
    """Everything that runs, and the loop that runs it.

    Args:
        reader: Started and stopped here.
        hand_over: Where the reader puts snippets.
        proposer: Of the model.
        outputs: The files, closed here.
        status: The status file, closed here.
        progress: Where it begins.
        stopping: Set by a signal: end soon, with valid files.
        facts: Of the source and of the call.
        keep: Writes what was learned, and returns the fingerprints of its files.
    """

    def __init__(
        self,
        *,
        reader: Reader,
        hand_over: HandOver,
        proposer: OnlineProposer,
        outputs: Outputs,
        status: Status,
        progress: Progress,
        stopping: threading.Event,
        facts: Facts,
        keep: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._reader, self._hand_over, self._proposer = reader, hand_over, proposer
        self._outputs, self._status, self._at = outputs, status, progress
        self._stopping, self._facts = stopping, facts
        self._keep_learned = keep
        self._resumed = progress.snippets > 0
        self._failure: InputError | None = None
        self._began = False
        self._missed: Gap | None = None  # what came while a live stream was made ready
        self._flushed = False  # since the connection was lost
        self._saved = time.monotonic()

    def run(self, make_pipeline: Callable[[Message], Any]) -> Ended:
        """Work until the end.

        Args:
            make_pipeline: Makes a pipeline (a context manager) for messages like the first one.

        Raises:
            InputError: The source broke off; what was found until then is written.
        """
        self._reader.start()
        try:
            first = self._first()
            if first is not None:
                with make_pipeline(message_of(first.snippet)) as pipeline:
                    self._work(pipeline, first)
            return self._end()
        except StageError:
            self._keep_learned()
            raise
        finally:
            with ExitStack() as closing:
                closing.callback(self._outputs.close)
                closing.callback(self._status.close)
                closing.callback(self._reader.stop)

    def _first(self) -> Arrived | None:
        """Wait for the first snippet; None: the stream ended or was stopped before it."""
        while not self._stopping.is_set() and not self._hand_over.ended:
            first = self._take(_IDLE)
            if first is not None:
                return first
        return None

    def _announce(self, first: Arrived) -> None:
        """Write the first event; a stream that goes on has it."""
        self._began = True
        if self._resumed:
            return
        fields = {"source": self._facts.shown, "video": self._outputs.name}
        if self._facts.live:
            ago = time.monotonic() - first.centre_arrived + first.snippet.seconds
            self._at.began = time.time() - ago
            moment = datetime.fromtimestamp(self._at.began, UTC)
            fields["began"] = moment.isoformat(timespec="milliseconds")
        self._outputs.event("start", **fields, policy=self._hand_over.policy)

    def _work(self, pipeline: Any, first: Arrived) -> None:
        """Keep the pipeline fed and take its answers until the source ends or a signal comes."""
        # Enough for every stage to have work and one message to wait; more would only add latency.
        room = len(pipeline.report()) + 1
        arrived: Arrived | None = first
        self._announce(first)
        if self._facts.live:
            arrived = self._begin_live(pipeline, first)
        while not self._stopping.is_set():
            if arrived is not None:
                self._submit(pipeline, arrived)
            self._answers(pipeline, 0 if arrived is not None else _POLL)
            self._keep(pipeline)
            arrived = None
            if len(self._at.in_flight) < room:
                arrived = self._take(0 if self._at.in_flight else _IDLE)
            if arrived is None and not self._at.in_flight:
                if self._hand_over.ended:
                    break
                self._flush_if_lost()
        while self._at.in_flight:  # a signal came: what is in the pipeline is soon done
            self._answers(pipeline, _IDLE)
        self._write_status(pipeline)

    def _flush_if_lost(self) -> None:
        """Say at once what is known of the time before a lost connection; it may stay away."""
        if not self._reader.lost:
            self._flushed = False
        elif not self._flushed and len(self._hand_over) == 0:
            self._flushed = True
            self._write(self._proposer.gap())

    def _take(self, timeout: float) -> Arrived | None:
        """Return a snippet; an error of the source ends the stream after what came before it."""
        try:
            return self._hand_over.take(timeout)
        except InputError as error:
            self._failure = error
            return None

    def _begin_live(self, pipeline: Any, first: Arrived) -> Arrived | None:
        """Make ready for a live stream; return the snippet to begin with, None: it is to come.

        The first work of every stage takes seconds. By `newest` the first snippet is worked on for
        nothing, and what came meanwhile is dropped: the stream begins when it can keep up.
        """
        if self._resumed:
            end = first.snippet.seconds
            self._missed = Gap(start=self._at.seconds, end=end, dropped=0, reason="restart")
        if self._hand_over.policy == "block":
            return first
        pipeline.submit(message_of(first.snippet))
        self._at.submitted += 1
        while not self._stopping.is_set() and pipeline.answer(_IDLE) is None:
            pass
        at = first.snippet.seconds
        for gap in (
            first.gap,
            Gap(start=at, end=at, dropped=1, reason="slow"),
            self._hand_over.clear(),
        ):
            if gap is not None:
                self._missed = self._missed.joined(gap) if self._missed else gap
        return None

    def _submit(self, pipeline: Any, arrived: Arrived) -> None:
        if self._missed is not None:
            start, end = self._missed.end, arrived.snippet.seconds
            gap = arrived.gap or Gap(start=start, end=end, dropped=0, reason="slow")
            arrived, self._missed = replace(arrived, gap=self._missed.joined(gap)), None
        pipeline.submit(message_of(arrived.snippet))
        self._at.in_flight.append(arrived)
        self._at.submitted += 1

    def _answers(self, pipeline: Any, timeout: float) -> None:
        """Work on all answers that are there; wait for the first one if there is none."""
        while self._at.in_flight:
            answer = pipeline.answer(timeout)
            if answer is None:
                return
            self._answered(self._at.in_flight.popleft(), answer.output)
            timeout = 0

    def _answered(self, arrived: Arrived, output: Any) -> None:
        """Give the features of a snippet to the proposer and write down what it finds."""
        made = encoded(output)
        if arrived.gap is not None:
            self._gap(arrived.gap)
        begun = time.monotonic()
        seconds = arrived.snippet.seconds
        centre = Place(number=arrived.number, seconds=seconds, arrived=arrived.centre_arrived)
        self._at.unanswered.append(centre)
        update = self._proposer.add(made.features, seconds, made.motion)
        now = time.monotonic()
        compute = min(made.compute_seconds + now - begun, now - arrived.arrived)
        self._at.snippets, self._at.seconds = arrived.number + 1, seconds
        self._at.done += 1
        self._write(update, arrived.arrived, compute)

    def _gap(self, gap: Gap) -> None:
        self._at.dropped += gap.dropped
        self._write(self._proposer.gap())
        self._at.unanswered.clear()
        self._outputs.gap(gap)

    def _write(self, update: Update, arrived: float | None = None, compute: float = 0.0) -> None:
        """Write what was found when a snippet had arrived and been computed, or at a gap or end."""
        for found in update.actionness:
            place = self._place_of(found.seconds)
            now = time.monotonic()
            released = now if arrived is None else arrived
            latency = Latency(
                look_ahead=max(0.0, released - place.arrived),
                compute=compute,
                queueing=max(0.0, now - released - compute),
            )
            self._status.answered(latency)
            curves = (found.start, found.action, found.end)
            self._outputs.actionness(place.number, place.seconds, curves, latency.milliseconds())
        self._outputs.proposals(update.proposals, self._at.seconds)

    def _place_of(self, seconds: float) -> Place:
        """Return the snippet of a time stamp; actionness comes in order, some may have none."""
        place = self._at.unanswered.popleft()
        while place.seconds < seconds and self._at.unanswered:
            place = self._at.unanswered.popleft()
        return place

    def _keep(self, pipeline: Any) -> None:
        """Write the status and the state when they are due."""
        if self._status.due():
            self._write_status(pipeline)
            self._outputs.refresh()
        if time.monotonic() - self._saved >= self._facts.state_seconds:
            self._save()

    def _write_status(self, pipeline: Any) -> None:
        counts = Counts(
            frames=self._reader.frames,
            submitted=self._at.submitted,
            done=self._at.done,
            dropped=self._at.dropped,
            waiting=len(self._hand_over),
        )
        self._status.write(counts, pipeline.report())

    def _save(self, *, ended: bool = False, kept: Mapping[str, str] | None = None) -> None:
        state = State(
            made_of=self._at.made_of,
            ended=ended,
            snippets=self._at.snippets,
            seconds=self._at.seconds,
            done=self._at.done,
            dropped=self._at.dropped,
            began=self._at.began,
            unanswered=[(place.number, place.seconds) for place in self._at.unanswered],
            written=self._outputs.written() | dict(kept or {}),
            proposer={} if ended else self._proposer.state_dict(),
        )
        write_state(self._outputs.folder, state)
        self._saved = time.monotonic()

    def _end(self) -> Ended:
        """Flush the rest, write the last event, and say why the stream ended."""
        reason = self._reason()
        early = reason in ("interrupted", "broken")
        seconds = self._at.seconds if early else self._length()
        if self._failure is not None and not self._began:
            raise self._failure
        if self._at.snippets:
            if early:
                self._save()  # before the flush, so that --resume goes on as if it had not been
            self._write(self._proposer.finish(seconds))
        for rest in (self._missed, self._hand_over.clear() if self._facts.live else None):
            if rest is not None:
                self._at.dropped += rest.dropped
                self._outputs.gap(rest)
        kept = self._keep_learned()  # before the stream is said to have ended
        learner = self._proposer.learner
        learned = {} if learner is None else {"learned": learner.summary()}
        self._outputs.event(
            "end",
            reason=reason,
            seconds=seconds,
            snippets=self._at.done,
            dropped=self._at.dropped,
            proposals=self._outputs.found.count,
            latency_ms=self._status.summary(),
            **learned,
        )
        if not early:
            self._save(ended=True, kept=kept)
        if self._failure is not None:
            raise self._failure
        return Ended(reason, seconds, self._outputs.found.count)

    def _reason(self) -> str:
        if self._failure is not None:
            return "broken"
        if self._stopping.is_set():
            return "interrupted"
        return "limit" if self._reader.reached_limit else "finished"

    def _length(self) -> float:
        """Return how long the stream was in seconds."""
        known, limit = self._facts.duration, self._facts.limit
        if limit is not None and self._reader.reached_limit:
            return limit
        return self._reader.seconds if known is None else known
