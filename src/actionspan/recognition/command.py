"""`actionspan recognition`: clips, the training of classifiers on them."""

import argparse
import sys
from pathlib import Path
from typing import Any

from actionspan.errors import InputError
from actionspan.recognition.clip_lists import TrimmedClip, files_left_out, list_clips
from actionspan.recognition.clip_settings import ClipSettings
from actionspan.recognition.train_command import add_train
from actionspan.settings import add_arguments, from_arguments
from actionspan.video.settings import FlowSettings


def add_parsers(parser: argparse.ArgumentParser) -> None:
    """Add the stage's commands."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    _add_list(steps)
    _add_clips(steps)
    _add_segments(steps)
    add_train(steps)
    _add_accuracy(steps)


def _add_list(steps: Any) -> None:
    help_line = "list the trimmed clips of a folder with their classes and subsets"
    step = steps.add_parser("list", help=help_line, description=help_line)
    _add_folder(step)
    step.add_argument("--out", type=Path, required=True, help="table to write, clips.tsv")
    add_arguments(step, ClipSettings)
    step.set_defaults(run=_run_list)


def _add_clips(steps: Any) -> None:
    help_line = "decode trimmed clips once, compute their flow and store both"
    step = steps.add_parser("clips", help=help_line, description=help_line)
    _add_folder(step)
    step.add_argument(
        "--shard-clips",
        nargs="+",
        metavar="ID",
        help="ids of the clips of this shard, as `recognition list` shows them (default: all)",
    )
    _add_processes_and_out(step)
    add_arguments(step, ClipSettings)
    add_arguments(step, FlowSettings)
    step.set_defaults(run=_run_clips)


def _add_folder(step: argparse.ArgumentParser) -> None:
    step.add_argument(
        "--clips",
        type=Path,
        required=True,
        help="folder with CLASS/clip.avi, or training/CLASS/… and validation/CLASS/…",
    )
    step.add_argument("--splits", type=Path, help="folder of UCF101's or HMDB51's split files")
    step.add_argument("--split", type=int, default=1, help="which of the splits (default: 1)")


def _add_segments(steps: Any) -> None:
    help_line = "store instances and background of the training videos of a shard as clips"
    step = steps.add_parser("segments", help=help_line, description=help_line)
    step.add_argument("--frames", type=Path, required=True, help="video/frames/{shard}.h5")
    step.add_argument("--flow", type=Path, required=True, help="video/flow/{shard}.h5")
    step.add_argument("--annotations", type=Path, required=True, help="dataset/annotations.json")
    _add_processes_and_out(step)
    add_arguments(step, ClipSettings)
    step.set_defaults(run=_run_segments)


def _add_accuracy(steps: Any) -> None:
    help_line = "accuracy of both streams and of their mean, by class"
    step = steps.add_parser("accuracy", help=help_line, description=help_line)
    for stream in ("rgb", "flow"):
        step.add_argument(f"--{stream}", type=Path, required=True, help=f"{stream}/scores.json")
    step.add_argument("--out-tsv", type=Path, required=True, help="table to write")
    step.add_argument("--out-markdown", type=Path, required=True, help="the same to read")
    step.set_defaults(run=_run_accuracy)


def _add_processes_and_out(step: argparse.ArgumentParser) -> None:
    step.add_argument(
        "--processes", type=int, default=1, help="clips at once, one core each (default: 1)"
    )
    step.add_argument("--out", type=Path, required=True, help="HDF5 file to write")


def _run_list(arguments: argparse.Namespace) -> int:
    settings = from_arguments(ClipSettings, arguments)
    clips = _listed(arguments, settings)
    from actionspan.recognition.trimmed_clips import write_clip_list

    for file, reason in files_left_out(arguments.clips).items():
        print(f"left out {file}: {reason}", file=sys.stderr)
    write_clip_list(arguments.out, clips)
    return 0


def _listed(arguments: argparse.Namespace, settings: ClipSettings) -> list[TrimmedClip]:
    if arguments.split < 1:
        raise InputError(f"--split {arguments.split}: 1 or more")
    fraction = settings.validation_fraction
    return list_clips(arguments.clips, arguments.splits, arguments.split, fraction)


def _run_clips(arguments: argparse.Namespace) -> int:
    settings = from_arguments(ClipSettings, arguments)
    flow = from_arguments(FlowSettings, arguments)
    processes = _processes(arguments)
    from actionspan.recognition.trimmed_clips import store_clips

    clips = {clip.clip_id: clip for clip in _listed(arguments, settings)}
    chosen = list(clips) if arguments.shard_clips is None else arguments.shard_clips
    for clip_id in chosen:
        if clip_id not in clips:
            raise InputError(f"--shard-clips {clip_id}: no such clip in {arguments.clips}")
    if flow.algorithm == "raft":
        import torch

        torch.set_num_threads(1)
    rows = [clips[clip_id] for clip_id in dict.fromkeys(chosen)]
    store_clips(rows, arguments.out, settings, flow, processes)
    return 0


def _run_segments(arguments: argparse.Namespace) -> int:
    settings = from_arguments(ClipSettings, arguments)
    processes = _processes(arguments)
    from actionspan.recognition.segment_clips import segments_of_shard

    segments_of_shard(
        arguments.frames,
        arguments.flow,
        arguments.annotations,
        arguments.out,
        settings,
        processes,
    )
    return 0


def _run_accuracy(arguments: argparse.Namespace) -> int:
    from actionspan.files.storage import atomic_path, write_tsv
    from actionspan.recognition.two_stream import ACCURACY_COLUMNS, accuracy_markdown, accuracy_rows

    rows = accuracy_rows(arguments.rgb, arguments.flow)
    write_tsv(arguments.out_tsv, ACCURACY_COLUMNS, rows)
    with atomic_path(arguments.out_markdown) as partial:
        partial.write_text(accuracy_markdown(rows), encoding="utf-8")
    return 0


def _processes(arguments: argparse.Namespace) -> int:
    if arguments.processes < 1:
        raise InputError(f"--processes: {arguments.processes}; it must be 1 or more")
    return int(arguments.processes)
