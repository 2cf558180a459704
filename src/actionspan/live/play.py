"""`actionspan stream` without its flags: a source and a model in, files out."""

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from torch import nn

from actionspan.arrays import Float64
from actionspan.dataset.video_facts import file_sha256, probe_video
from actionspan.errors import InputError, naming
from actionspan.features.hub_encoders import located
from actionspan.jobs.determinism import deterministic
from actionspan.live.clock import STATE_FILE, Progress, read_state
from actionspan.live.connection import connect
from actionspan.live.encoding import Message, encoding_chain, message_of
from actionspan.live.hand_over import HandOver
from actionspan.live.learning import OnlineLearner
from actionspan.live.proposing import OnlineProposer
from actionspan.live.run import Ended, Stream
from actionspan.live.settings import LearningSettings, Source, StreamSettings
from actionspan.live.sink import Outputs, unchanged
from actionspan.live.source import FileFrames, Frames, LiveFrames, Reader
from actionspan.live.status import Status
from actionspan.proposals.bundle_writing import write_learned
from actionspan.proposals.model_bundle import load_bundle
from actionspan.storage.checksums import fingerprint
from actionspan.storage.torch_files import restoring
from actionspan.storage.writing import digest
from actionspan.streaming import Pipeline, balance_stages
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import Snippet
from actionspan.video.sound import LiveSound
from actionspan.video.zones import Zones, ZoneWatch, zones_attributes

_REPETITIONS = 3  # of measuring the chain: each delays the start by a snippet's work
_LEARNED = "model.safetensors"
_STALL_SECONDS = 60.0  # no stage works that long on a snippet

_OnProposal = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class Player:
    """A model ready to stream: how to cut snippets, encode them, and propose."""

    frames: FrameSettings
    chain: nn.Sequential
    proposer: OnlineProposer
    made_of: str  # digest of the model and of the settings that change results
    file: Path  # of the model
    zones: Zones = ()  # outside which nothing counts

    @classmethod
    def load(
        cls,
        model: Path,
        settings: StreamSettings,
        instances: Float64 | None = None,
        learning: LearningSettings | None = None,
        encoders: Sequence[str] = (),
        zones: Zones = (),
    ) -> "Player":
        """Load a model's file or folder.

        With `instances`, (K, 2) in seconds, it learns while it plays, as `learning` sets; for
        `encoders` see `Proposer`. Only what happens inside the `zones` counts, if there are any.

        Raises:
            InputError: It is not a complete model, or it cannot stream.
        """
        bundle = load_bundle(model)
        with deterministic(settings.threads):  # its first call takes seconds: not while it streams
            pass
        proposer = OnlineProposer(bundle, delay_seconds=settings.delay)
        proposer.zones = ZoneWatch(zones) if len(zones) > 1 else None
        learned: list[str] = []
        if instances is not None:
            learning = learning or LearningSettings()
            proposer.learner = OnlineLearner(bundle.temporal, instances, learning)
            learned = [digest(learning, instances.tolist())]
        with naming(model):
            found = located(bundle.encoders, encoders)
            given = (found, bundle.flow, bundle.frames.stack, bundle.weights, bundle.widths)
            in_one = settings.executor != "process"
            chain = encoding_chain(*given, one_process=in_one, zones=zones)
        file = model / "model.safetensors" if model.is_dir() else model
        within = zones_attributes(zones).values()
        made_of = digest(file_sha256(file), settings.delay, *learned, *within)
        return cls(
            frames=bundle.frames,
            chain=chain,
            proposer=proposer,
            made_of=made_of,
            file=file,
            zones=zones,
        )

    def warm_up(self) -> None:
        """Run the networks once, as their first run is slower, before a camera is opened."""
        height, width = self.frames.short_side, 16 * self.frames.short_side // 9
        gray = np.zeros((self.frames.stack + 1, height, width), np.uint8)
        self.chain(message_of(Snippet(np.zeros((height, width, 3), np.uint8), gray, 0.0)))

    def keep_learned(self, out: Path) -> dict[str, str]:
        """Write the model as it has learned; return the fingerprints of files, by name."""
        if self.proposer.learner is None:
            return {}
        write_learned(self.file, self.proposer.bundle.temporal, out / _LEARNED)
        return {_LEARNED: fingerprint(out / _LEARNED) or ""}


def play(
    source: Source,
    player: Player,
    settings: StreamSettings,
    out: Path,
    *,
    resume: bool = False,
    echo: TextIO | None = None,
    stopping: threading.Event | None = None,
    on_proposal: _OnProposal | None = None,
) -> Ended:
    """Stream a source and write its results into the folder `out`.

    `resume` continues an earlier run. `echo` gets each event as a line of JSON, and `on_proposal`
    each proposal as a message that names its stream. Soon after `stopping` is set the stream ends,
    with valid files.

    Raises:
        InputError: The source cannot be opened or breaks off, or the earlier run was of another.
    """
    # 1. Open the source.
    if source.kind != "file":
        player.warm_up()
    sound = LiveSound() if settings.sound else None
    frames, duration, identity = _open(source, settings, player.frames.snippet_frames, sound)
    policy = settings.policy_for(live=frames.live)
    # 2. Find where an earlier run stopped.
    made_of = digest(identity, player.made_of, *["sound"] * settings.sound)
    state = _earlier(out, made_of, live=frames.live) if resume else None
    if state is not None and state.ended:
        Outputs(out, source.name, None, state.written).close()  # its tables may have been damaged
        print(f"{out}: the stream has ended; nothing is left to do", file=sys.stderr)
        return Ended("finished", state.seconds, None)
    if player.file.resolve().parent == out.resolve():
        raise InputError(f"{out}: holds the model; give another folder for the results (--out)")
    before = None
    if state is None:
        # of an earlier stream; its files are begun again
        (out / STATE_FILE).unlink(missing_ok=True)
    else:
        with restoring(out / STATE_FILE):
            player.proposer.load_state_dict(state.proposer)
        if state.snippets:
            before = state.seconds
            if isinstance(frames, LiveFrames):
                # a wall clock that was set back must not take the stream back
                frames.resume(max(time.time() - state.began, state.seconds))
    # 3. Run from there.
    at = state or Progress(made_of=made_of)
    send = None if on_proposal is None else partial(_send, on_proposal, source, at)
    hand_over = HandOver(settings.queue, policy)
    begin = at.snippets, before
    stream = Stream(
        source=source,
        duration=duration,
        settings=settings,
        proposer=player.proposer,
        reader=Reader(frames, player.frames, settings, hand_over, *begin, player.zones),
        outputs=Outputs(out, source.name, echo, state.written if state else None, send, sound),
        status=Status(out, append=state is not None),
        at=at,
        stopping=stopping or threading.Event(),
        make_pipeline=partial(pipeline_of, player.chain, settings),
        keep_learned=partial(player.keep_learned, out),
    )
    return stream.run()


def _send(on_proposal: _OnProposal, source: Source, at: Progress, event: Mapping[str, Any]) -> None:
    """Send a proposal with an id that stays the same if a resumed stream finds it again."""
    began = {"began": at.date} if at.began else {}
    number = digest(at.made_of, at.began, event["start"], event["end"])
    on_proposal({**event, "source": source.shown, "video": source.name, **began, "id": number})


def _open(
    source: Source, settings: StreamSettings, snippet_frames: int, sound: LiveSound | None
) -> tuple[Frames, float | None, str]:
    """Return the frames of a source, the length in seconds of a file, and its identity."""
    if source.kind == "file":
        video = probe_video(source.path)
        if video.error:
            raise InputError(f"{source.shown}: {video.error}")
        return FileFrames(source, sound=sound), video.duration_seconds, video.sha256
    connection = connect(source, settings)
    if connection.recorded:
        return FileFrames(source, connection, sound), None, source.shown
    frames = LiveFrames(source, connection, settings, snippet_frames, sound)
    return frames, None, source.shown


def _earlier(out: Path, made_of: str, *, live: bool) -> Progress | None:
    """Return the state of an earlier run; None: there is none, or its files were changed.

    Raises:
        InputError: It belongs to another stream, or to a live one, which cannot be seen again.
    """
    state = read_state(out, made_of)
    try:
        unchanged(out, state.written if state else {})
    except InputError as error:
        if live:
            raise InputError(f"{error}; begin again without --resume") from None
        print(f"{error}; the stream is made again", file=sys.stderr)
        return None
    return state


def pipeline_of(chain: nn.Sequential, settings: StreamSettings, message: Message) -> Pipeline:
    """Return the chain in stages of equal work, measured on a first message."""
    stages = [chain]
    # without networks the flow is the only part
    if settings.executor != "sequential" and settings.stages > 1 and len(chain) > 1:
        if settings.stages > len(chain):
            raise InputError(f"stages {settings.stages}: this model has {len(chain)} parts at most")
        stages = balance_stages(chain, message, settings.stages, repetitions=_REPETITIONS)
    return Pipeline(stages, executor=settings.executor, stall_seconds=_STALL_SECONDS)
