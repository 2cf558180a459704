"""`actionspan dataset`: the embedded and simulated data, probing and the canonical tables."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from actionspan.dataset.matching import (
    IndexSettings,
    describe,
    index_annotations,
    index_videos,
    read_annotations,
)
from actionspan.dataset.rejections import OnBadInput, Rejection, report, write_rejections
from actionspan.dataset.sharding import left_out
from actionspan.dataset.tables import (
    SHARD_COLUMNS,
    VIDEO_COLUMNS,
    Video,
    read_videos,
    write_annotations,
    write_videos,
)
from actionspan.errors import InputError
from actionspan.running.progress import progress
from actionspan.settings import add_arguments, from_arguments, option


@dataclass(frozen=True, kw_only=True)
class ProbeSettings:
    """What happens to videos that cannot be read."""

    on_bad_input: OnBadInput = option("skip", "note the reason in the shard and go on, or stop")


def add_parsers(parser: argparse.ArgumentParser) -> None:
    """Add the stage's commands."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")
    _add_demo(steps)
    _add_probe(steps)
    _add_index(steps)
    _add_simulate(steps)


def _add_demo(steps: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    from actionspan.demo.scenario import DemoSettings

    text = "render the embedded data set: videos and annotations.json"
    step = steps.add_parser("demo", help=text, description=text)
    step.add_argument("--out", type=Path, required=True, help="folder to fill")
    step.add_argument("--processes", type=int, default=1, help="videos at once (default: 1)")
    add_arguments(step, DemoSettings)
    step.set_defaults(run=run_demo)


def _add_probe(steps: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "read fps, frames, duration, size and SHA-256 of the videos of one shard"
    step = steps.add_parser("probe", help=text, description=text)
    step.add_argument("--videos", type=Path, nargs="+", required=True, help="video files")
    step.add_argument("--out", type=Path, required=True, help="the shard's table")
    add_arguments(step, ProbeSettings)
    step.set_defaults(run=run_probe)


def _add_index(steps: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "check annotations against videos: videos.tsv, annotations.json, rejected.tsv"
    step = steps.add_parser("index", help=text, description=text)
    step.add_argument(
        "--shards",
        nargs="*",
        default=[],
        metavar="FILE",
        help="shard tables of `dataset probe`; @FILE names a file that lists them, one a line;"
        " without any, videos and durations are those of the annotations",
    )
    step.add_argument(
        "--annotations",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="annotations; several files (such as both of THUMOS14) are taken together",
    )
    step.add_argument(
        "--video-info",
        type=Path,
        metavar="FILE",
        help="a table of videos (video, subset, seconds, numFrame, fps) for what the annotations"
        " leave out, such as video_info_new.csv",
    )
    step.add_argument(
        "--folder",
        type=Path,
        help="the folder of the videos, to name the files in it that were passed over",
    )
    step.add_argument(
        "--name", help="of the data set, for captions (default: by the folder or the annotations)"
    )
    step.add_argument("--out", type=Path, required=True, help="folder of the three tables")
    add_arguments(step, IndexSettings)
    step.set_defaults(run=run_index)


def _add_simulate(steps: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    from actionspan.dataset.simulated import SimulateSettings

    text = "simulated features.h5 with segments of real annotations, for tests of speed"
    step = steps.add_parser("simulate", help=text, description=text)
    step.add_argument(
        "--annotations",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="annotations of any form, from which durations and segments are drawn",
    )
    step.add_argument(
        "--video-info",
        type=Path,
        metavar="FILE",
        help="a table of videos for subsets and durations that the annotations leave out, such as"
        " video_info_new.csv; without a subset a stable hash splits the videos",
    )
    step.add_argument("--out-features", type=Path, required=True, help="features.h5")
    step.add_argument("--out-annotations", type=Path, required=True, help="annotations.json")
    add_arguments(step, SimulateSettings)
    step.set_defaults(run=run_simulate)


def run_demo(arguments: argparse.Namespace) -> int:
    """Render the embedded data set."""
    from actionspan.demo.data_set import DemoSettings, render_demo

    if arguments.processes < 1:
        raise InputError(f"processes: {arguments.processes} is not at least 1")
    render_demo(arguments.out, from_arguments(DemoSettings, arguments), arguments.processes)
    return 0


def run_probe(arguments: argparse.Namespace) -> int:
    """Probe the videos of one shard."""
    from actionspan.dataset.video_facts import probe_video

    settings = from_arguments(ProbeSettings, arguments)
    probed = [
        probe_video(path) for path in progress(arguments.videos, "probing", len(arguments.videos))
    ]
    write_videos(arguments.out, sorted(probed, key=lambda video: video.video_id), SHARD_COLUMNS)
    bad = [Rejection(str(video.path), "", video.error) for video in probed if video.error]
    report(bad, settings.on_bad_input, arguments.out)
    return 0


def run_index(arguments: argparse.Namespace) -> int:
    """Write the canonical tables."""
    settings = from_arguments(IndexSettings, arguments)
    table = arguments.out / "rejected.tsv"
    reading = read_annotations(arguments.annotations, arguments.video_info, settings)
    probed = _read_shards(arguments.shards)
    if arguments.shards:
        index = index_videos(probed, reading, settings)
    else:
        index = index_annotations(reading, settings)
    passed = left_out(arguments.folder) if arguments.folder else {}
    files = [Rejection(file, "", reason) for file, reason in passed.items()]
    rejections = files + index.rejections
    index = replace(index, rejections=rejections)
    write_rejections(table, rejections)
    report(rejections, settings.on_bad_input, table)
    if not index.videos:
        raise InputError(f"no video is left of {len(probed) or len(reading.records)}; see {table}")
    if rejections and not index.annotated:
        raise InputError(f"no annotation is left for {len(index.videos)} videos; see {table}")
    write_videos(arguments.out / "videos.tsv", index.videos, VIDEO_COLUMNS)
    name = arguments.name or data_name(arguments.folder, arguments.annotations[0])
    write_annotations(arguments.out / "annotations.json", index.annotations, name)
    print(f"dataset: {describe(index)}", file=sys.stderr)
    return 0


def data_name(folder: Path | None, annotations: Path) -> str:
    """Return a name of a data set: the last two parts of a path (the last is often `videos`)."""
    name = "/".join((folder or annotations).resolve().parts[-2:])
    return f"the videos of {name}" if folder else f"the data set of {name}"


def run_simulate(arguments: argparse.Namespace) -> int:
    """Write simulated features and their annotations."""
    from actionspan.dataset.simulated import SimulateSettings, simulate

    simulate(
        arguments.annotations,
        arguments.video_info,
        arguments.out_features,
        arguments.out_annotations,
        from_arguments(SimulateSettings, arguments),
    )
    return 0


def _read_shards(names: Sequence[str]) -> list[Video]:
    """Read shard tables; `@FILE` stands for the tables that FILE lists."""
    paths: list[Path] = []
    for name in names:
        if name.startswith("@"):
            try:
                lines = Path(name[1:]).read_text(encoding="utf-8").splitlines()
            except (OSError, UnicodeDecodeError):
                raise InputError(f"{name[1:]}: no readable list of shard tables") from None
            paths += [Path(line) for line in lines if line]
        else:
            paths.append(Path(name))
    return [video for path in paths for video in read_videos(path)]
