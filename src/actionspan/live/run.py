"""A stream from its first snippet to its end: read, work, write, remember.

The reading thread hands over snippets, the pipeline makes features of them, the proposer makes
actionness and proposals of those, in order, and the outputs write them down. Between two answers
all written output fits the proposer's memory: states are saved there.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from actionspan.arrays import UInt8
from actionspan.errors import InputError
from actionspan.live.clock import Place, Progress, write_state
from actionspan.live.encoding import Encoded, Message, encoded, message_of
from actionspan.live.hand_over import Arrived, Gap
from actionspan.live.proposing import OnlineProposer, Update
from actionspan.live.settings import Source, StreamSettings
from actionspan.live.sink import Outputs
from actionspan.live.source import Reader
from actionspan.live.status import Latency, Status
from actionspan.streaming import StageError

_POLL = 0.02  # seconds to wait for an answer before looking for a new snippet again
_IDLE = 0.1  # seconds to wait for a snippet before looking whether to stop


class Ended(NamedTuple):
    """How a stream ended."""

    reason: str  # finished, limit or interrupted
    seconds: float
    proposals: int | None

    @property
    def line(self) -> str:
        """One line for people."""
        found = f"{self.proposals} proposals in " if self.proposals is not None else ""
        more = "; --resume continues" if self.reason == "interrupted" else ""
        return f"{found}{self.seconds:.1f} s, {self.reason}{more}"


@dataclass(kw_only=True)
class Stream:
    """Everything that runs, and the loop that runs it."""

    source: Source
    duration: float | None  # of a file, in seconds
    settings: StreamSettings
    proposer: OnlineProposer
    reader: Reader  # started and stopped here
    outputs: Outputs  # closed here, as is the status
    status: Status
    at: Progress  # where the stream begins, and how far it is
    stopping: threading.Event  # set by a signal: end soon, with valid files
    make_pipeline: Callable[[Message], Any]  # for messages like the first one
    # writes the learned model, and returns the fingerprints of its files
    keep_learned: Callable[[], Mapping[str, str]]

    def __post_init__(self) -> None:
        self._queue = self.reader.hand_over
        self._resumed = self.at.snippets > 0
        self._in_flight: deque[tuple[Arrived, bool]] = deque()  # and whether it is as the last
        self._shown: UInt8 | None = None  # the image that was submitted last
        self._made: Encoded | None = None  # the last answer
        self._submitted = 0
        self._failure: InputError | None = None
        self._began = False
        self._missed: Gap | None = None  # what came while a live stream was made ready
        self._flushed = False  # since the connection was lost
        self._saved = time.monotonic()

    def run(self) -> Ended:
        """Work until the end.

        Raises:
            InputError: The source broke off; what came before is written.
        """
        self.reader.start()
        try:
            first = None
            while first is None and not self.stopping.is_set() and not self._queue.ended:
                first = self._take(_IDLE)
            if first is not None:
                with self.make_pipeline(message_of(first.snippet)) as pipeline:
                    self._work(pipeline, first)
            return self._end()
        except StageError:
            self.keep_learned()
            raise
        finally:
            with ExitStack() as closing:
                closing.callback(self.outputs.close)
                closing.callback(self.status.close)
                closing.callback(self.reader.stop)

    def _work(self, pipeline: Any, first: Arrived) -> None:
        """Keep the pipeline fed and take its answers until the source ends or a signal comes."""
        # Enough for every stage to have work and one message to wait; more would only add latency.
        room = len(pipeline.report()) + 1
        self._announce(first)
        arrived = self._begin_live(pipeline, first) if self.reader.live else first
        while not self.stopping.is_set():
            # 1. Submit a snippet and write the answers.
            if arrived is not None:
                self._submit(pipeline, arrived)
            self._answers(pipeline, 0 if arrived is not None else _POLL)
            self._keep(pipeline)
            # 2. Take the next snippet, or end.
            arrived = None
            if len(self._in_flight) < room:
                arrived = self._take(0 if self._in_flight else _IDLE)
            if arrived is None and not self._in_flight:
                if self._queue.ended:
                    break
                self._flush_if_lost()
        while self._in_flight:  # a signal came: the pipeline is soon empty
            self._answers(pipeline, _IDLE)
        self._write_status(pipeline)

    def _announce(self, first: Arrived) -> None:
        """Write the first event; a resumed stream has it."""
        self._began = True
        if self._resumed:
            return
        fields = {"source": self.source.shown, "video": self.source.name}
        if self.reader.live:
            ago = time.monotonic() - first.centre_arrived + first.snippet.seconds
            self.at.began = time.time() - ago
            fields["began"] = self.at.date
        self.outputs.event("start", **fields, policy=self._queue.policy)

    def _begin_live(self, pipeline: Any, first: Arrived) -> Arrived | None:
        """Prepare for a live stream; return the snippet to begin with, None: it is to come.

        The first work of every stage takes seconds. By `newest` the result of the first snippet is
        discarded, and what came meanwhile is dropped: the stream begins when it can keep up.
        """
        if self._resumed:
            end = first.snippet.seconds
            self._missed = Gap(start=self.at.seconds, end=end, dropped=0, reason="restart")
        if self._queue.policy == "block":
            return first
        pipeline.submit(message_of(first.snippet))
        self._submitted += 1
        while not self.stopping.is_set() and pipeline.answer(_IDLE) is None:
            pass
        for gap in (first.as_gap, self._queue.clear()):
            self._missed = self._missed.joined(gap) if self._missed else gap
        return None

    def _take(self, timeout: float) -> Arrived | None:
        """Return a snippet; an error of the source ends the stream after what came before it."""
        try:
            return self._queue.take(timeout)
        except InputError as error:
            self._failure = error
            return None

    def _flush_if_lost(self) -> None:
        """Write pending results at once when a connection is lost: it may not come back."""
        if not self.reader.lost:
            self._flushed = False
        elif not self._flushed and len(self._queue) == 0:
            self._flushed = True
            self._write(self.proposer.gap())

    def _submit(self, pipeline: Any, arrived: Arrived) -> None:
        if self._missed is not None:
            start, end = self._missed.end, arrived.snippet.seconds
            gap = arrived.gap or Gap(start=start, end=end, dropped=0, reason="slow")
            arrived, self._missed = replace(arrived, gap=self._missed.joined(gap)), None
        snippet = arrived.snippet
        again = snippet.still and snippet.rgb is self._shown  # it has the last one's arrays
        if not again:
            pipeline.submit(message_of(snippet))
            self._submitted += 1
        self._shown = snippet.rgb
        self._in_flight.append((arrived, again))

    def _answers(self, pipeline: Any, timeout: float) -> None:
        """Work on all answers that are ready; wait for the first one if there is none."""
        while self._in_flight:
            arrived, again = self._in_flight[0]
            if again and self._made is not None:
                self._made = self._made._replace(compute_seconds=0.0)
            else:
                answer = pipeline.answer(timeout)
                if answer is None:
                    return
                self._made = encoded(answer.output)
            self._in_flight.popleft()
            self._answered(arrived, self._made)
            timeout = 0

    def _answered(self, arrived: Arrived, made: Encoded) -> None:
        """Give the features of a snippet to the proposer and write its results."""
        if arrived.gap is not None:
            self.at.dropped += arrived.gap.dropped
            self._write(self.proposer.gap())
            self.at.unanswered.clear()
            self.outputs.gap(arrived.gap)
        begun = time.monotonic()
        seconds = arrived.snippet.seconds
        self.at.unanswered.append(Place(arrived.number, seconds, arrived.centre_arrived))
        if self.proposer.zones is not None:
            self.proposer.zones.add(seconds, arrived.snippet.gray)
        update = self.proposer.add(made.features, seconds, made.motion)
        now = time.monotonic()
        compute = min(made.compute_seconds + now - begun, now - arrived.arrived)
        self.at.snippets, self.at.seconds = arrived.number + 1, seconds
        self.at.done += 1
        self._write(update, arrived.arrived, compute)

    def _write(self, update: Update, arrived: float | None = None, compute: float = 0.0) -> None:
        """Write the results of a snippet, a gap or the end, and a snippet's latency."""
        for found in update.actionness:
            place = self.at.unanswered.popleft()
            while place.seconds < found.seconds and self.at.unanswered:  # some may have none
                place = self.at.unanswered.popleft()
            now = time.monotonic()
            released = now if arrived is None else arrived
            latency = Latency(
                look_ahead=max(0.0, released - place.arrived),
                compute=compute,
                queueing=max(0.0, now - released - compute),
            )
            self.status.answered(latency)
            curves = (found.start, found.action, found.end)
            self.outputs.actionness(place.number, place.seconds, curves, latency.milliseconds())
        self.outputs.proposals(update.proposals, self.at.seconds)

    def _keep(self, pipeline: Any) -> None:
        if self.status.due():
            self._write_status(pipeline)
            self.outputs.refresh()
        if time.monotonic() - self._saved >= self.settings.state_seconds:
            self._save()

    def _write_status(self, pipeline: Any) -> None:
        self.status.write(
            pipeline.report(),
            submitted=self._submitted,
            frames=self.reader.frames,
            dropped=self.at.dropped,
            done=self.at.done,
            waiting=len(self._queue),
        )

    def _save(self, kept: Mapping[str, str] | None = None) -> None:
        """Write the state; of an ended stream, with the files `kept` of its learned model."""
        ended = kept is not None
        written = self.outputs.written() | dict(kept or {})
        proposer = {} if ended else self.proposer.state_dict()
        at = replace(self.at, ended=ended, written=written, proposer=proposer)
        write_state(self.outputs.folder, at)
        self._saved = time.monotonic()

    def _end(self) -> Ended:
        """Flush the rest, write the last event, and return how the stream ended."""
        # 1. Find the reason and the time of the end.
        reason = self._reason()
        early = reason in ("interrupted", "broken")
        length = self.settings.duration if reason == "limit" else self.duration
        length = self.reader.seconds if length is None else length
        seconds = self.at.seconds if early else length
        if self._failure is not None and not self._began:
            raise self._failure
        # 2. Write the last results of the proposer, and the gap of snippets that nobody worked on.
        if self.at.snippets:
            if early:
                self._save()  # before the flush, so that --resume ignores it
            self._write(self.proposer.finish(seconds))
        for rest in (self._missed, self._queue.clear() if self.reader.live else None):
            if rest is not None:
                self.at.dropped += rest.dropped
                self.outputs.gap(rest)
        # 3. Write the learned model and the last event, then the state of a finished stream.
        kept = self.keep_learned()
        learner = self.proposer.learner
        learned = {} if learner is None else {"learned": learner.summary()}
        self.outputs.event(
            "end",
            reason=reason,
            seconds=seconds,
            snippets=self.at.done,
            dropped=self.at.dropped,
            proposals=self.outputs.found.count,
            latency_ms=self.status.summary(),
            **learned,
        )
        if not early:
            self._save(kept)
        if self._failure is not None:
            raise self._failure
        return Ended(reason, seconds, self.outputs.found.count)

    def _reason(self) -> str:
        if self._failure is not None:
            return "broken"
        if self.stopping.is_set():
            return "interrupted"
        return "limit" if self.reader.reached_limit else "finished"
