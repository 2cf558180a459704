"""Proposals for videos, without the workflow."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actionspan.errors import InputError
from actionspan.running.progress import progress

Array = NDArray[Any]

NO_MODEL = (
    "--model is needed: a trained model such as results/proposals/mtn (`make demo` makes one, and "
    "docs/tutorial.md says how to train on your videos), or none for untrained motion grouping"
)


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """One video's proposals: (K, 2) seconds and (K,) scores, best first, and what they rest on."""

    duration_seconds: float
    segments: Array
    scores: Array
    probabilities: Array | None = None
    motion: Array | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("videos", type=Path, nargs="+", metavar="VIDEO", help="video files")
    parser.add_argument(
        "--model", help="model.pt or the folder that holds it; none: untrained motion grouping"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("proposals"),
        help="folder for proposals.json, proposals.csv and each video's .vtt and .svg "
        "(default: proposals)",
    )
    parser.add_argument(
        "--annotations", type=Path, help="ActivityNet JSON; the figures then show the truth"
    )
    parser.add_argument("--threads", type=int, default=1, help="cores of the encoders (default: 1)")


def run(arguments: argparse.Namespace) -> int:
    """Propose for each video; a broken one is reported and the rest go on."""
    from actionspan.evaluation.timeline_figure import draw_timeline
    from actionspan.proposals.settings import ChapterSettings
    from actionspan.proposals.webvtt import write_chapters
    from actionspan.proposals.writing import Row, result_rows, write_proposals

    if arguments.model is None:
        raise InputError(NO_MODEL)
    propose = _motion_proposer() if arguments.model == "none" else _model_proposer(arguments)
    truth = _truth(arguments.annotations)
    results: dict[str, Sequence[Row]] = {}
    broken = 0
    for path in progress(arguments.videos, "proposing", len(arguments.videos)):
        try:
            if path.stem in results:
                raise InputError("another video has the same name; rename one")
            made = propose(path)
        except InputError as error:
            broken += 1
            message = str(error)
            print(message if str(path) in message else f"{path}: {message}", file=sys.stderr)
            continue
        results[path.stem] = result_rows(made.segments, made.scores)
        write_chapters(arguments.out / f"{path.stem}.vtt", results[path.stem], ChapterSettings())
        draw_timeline(
            arguments.out / f"{path.stem}.svg",
            path.stem,
            made.duration_seconds,
            made.probabilities,
            truth.get(path.stem, ()),
            made.segments,
            made.scores,
            made.motion,
        )
    if not results:
        raise InputError(f"no proposals: none of the {broken} videos could be read")
    write_proposals(
        results.items(), arguments.out / "proposals.json", arguments.out / "proposals.csv"
    )
    print(f"{arguments.out}: proposals of {len(results)} videos, {broken} could not be read")
    return 1 if broken else 0


def _truth(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    from actionspan.dataset.tables import read_annotations

    return {known.video_id: known.instances for known in read_annotations(path)}


@contextmanager
def _snippets(path: Path, frames: Any, flow: Any) -> Iterator[tuple[Any, Any, float]]:
    """Yield one video's groups of frames and of flow, in a file that is gone afterwards."""
    import tempfile

    import h5py

    from actionspan.dataset.video_facts import probe_video
    from actionspan.video.optical_flow import write_flow
    from actionspan.video.snippets import write_frames

    video = probe_video(path)
    if video.error:
        raise InputError(f"{path}: {video.error}")
    with tempfile.TemporaryDirectory(prefix="actionspan-") as folder:
        with h5py.File(Path(folder) / "snippets.h5", "w") as file:
            write_frames(video, file.create_group("frames"), frames)
            write_flow(file["frames"], file.create_group("flow"), flow)
            yield file["frames"], file["flow"], video.duration_seconds


def _model_proposer(arguments: argparse.Namespace) -> Callable[[Path], Proposed]:
    """Return what proposes by a trained model."""
    import torch

    from actionspan.features.extraction import TwoStream
    from actionspan.features.transform import transform_features
    from actionspan.features.windows import cut_windows
    from actionspan.proposals.model_bundle import load_bundle
    from actionspan.proposals.ranking import propose_video
    from actionspan.running.allocator import keep_freed_memory
    from actionspan.temporal.prediction import predict_windows

    if arguments.threads < 1:
        raise InputError(f"--threads {arguments.threads}: at least 1")
    keep_freed_memory()
    torch.set_num_threads(arguments.threads)
    bundle = load_bundle(Path(arguments.model))
    encode = TwoStream(bundle.encoders, 2 * bundle.frames.stack)

    def propose(path: Path) -> Proposed:
        with _snippets(path, bundle.frames, bundle.flow) as (frames, flow, duration):
            planes = flow["flow"]
            raw = encode(frames["rgb"], planes, float(planes.attrs["bound"]))
            times = flow["time"][:]
        features = transform_features(raw, times, duration, bundle.transform)
        starts = bundle.transform.starts(len(features))
        windows = cut_windows(features, starts, bundle.transform.steps)
        probabilities = predict_windows(
            bundle.temporal, windows, starts, len(features), bundle.prediction
        )
        segments, scores = propose_video(
            probabilities,
            duration,
            bundle.evaluator,
            bundle.candidates,
            bundle.suppression,
            bundle.ranking,
        )
        return Proposed(
            duration_seconds=duration,
            segments=segments,
            scores=scores,
            probabilities=probabilities,
        )

    return propose


def _motion_proposer() -> Callable[[Path], Proposed]:
    """Return what proposes by grouping the magnitude of flow, untrained (TAG)."""
    from actionspan.features.settings import RescaleSettings
    from actionspan.features.steps import rescale
    from actionspan.proposals.grouping import group_proposals
    from actionspan.video.settings import FlowSettings, FrameSettings

    settings = RescaleSettings()

    def propose(path: Path) -> Proposed:
        with _snippets(path, FrameSettings(), FlowSettings()) as (_, flow, duration):
            magnitude = np.asarray(flow["flow_magnitude"])
            times = flow["time"][:]
        motion = rescale(magnitude, times, duration, settings.steps, settings.method)
        segments, scores = group_proposals(motion, duration)
        return Proposed(duration_seconds=duration, segments=segments, scores=scores, motion=motion)

    return propose
