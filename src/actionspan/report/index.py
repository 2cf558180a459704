"""The page of a data set: videos next to their timelines, and a summary."""

import argparse
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np

from actionspan import __version__
from actionspan.annotations.tables import (
    Annotation,
    Video,
    iterate_annotations,
    read_name,
    read_videos,
)
from actionspan.arrays import Float32
from actionspan.evaluation.operating import Point, operating_points
from actionspan.evaluation.summary import read_records
from actionspan.evaluation.worst import read_videos as read_scores
from actionspan.jobs.apart import work_apart
from actionspan.proposals.segments import Row, iterate_proposals
from actionspan.report import charts as made
from actionspan.report.content import Chart, Page, PageVideo, Table, choose_videos, path_from
from actionspan.report.settings import PageSettings
from actionspan.report.video import playable_file
from actionspan.settings import add_settings, from_arguments
from actionspan.storage.writing import open_h5
from actionspan.temporal.probabilities import read_probabilities

CURVES = ("start", "actionness", "end")
_STALL_SECONDS = 120.0  # for an image
_MOST_POINTS = 500  # of a curve: more than a screen shows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--model", required=True, help="the model to show proposals of")
    for flag, help in (
        ("--annotations", "annotations.json"),
        ("--proposals", "the model's proposals.json"),
        ("--out", "index.html"),
    ):
        parser.add_argument(flag, type=Path, required=True, help=help)
    parser.add_argument("--events", type=Path, nargs="?", help="its events.json, if it has one")
    for flag, help in (
        ("--videos", "videos.tsv, for the files of the videos"),
        ("--probabilities", "its probabilities.h5, if it has one"),
        ("--scores", "its scores by video, evaluation/videos/{model}.tsv"),
        ("--misses", "evaluation/misses/{model}.tsv"),
        ("--benchmarks", "folder of Snakemake's records of jobs"),
        ("--copies", "folder of copies that browsers play (default: videos, next to --out)"),
    ):
        parser.add_argument(flag, type=Path, help=help)
    for flag, help in (
        ("--evaluations", "records of all methods, for recall curves and the table"),
        ("--readers", "evaluation/reader/{method}.json, for a table"),
        ("--logs", "{model}/{run}/log.tsv of trainings, for their losses"),
    ):
        parser.add_argument(flag, type=Path, nargs="*", default=[], metavar="FILE", help=help)
    add_settings(parser, PageSettings)


def run(arguments: argparse.Namespace) -> None:
    """Gather the content of the page, and write it."""
    from actionspan.report.page import write_page

    settings = from_arguments(PageSettings, arguments)
    annotations = arguments.annotations
    scored = read_scores(arguments.scores) if arguments.scores else []
    recalls = {video.video_id: video.average_recall for video in scored}
    videos = {video.video_id: video for video in iterate_annotations(annotations)}
    ids = [name for name, video in videos.items() if video.subset in settings.subsets]
    chosen, note = choose_videos(ids, recalls, settings.most_videos)
    charts, tables = _summary(arguments)
    shown = _page_videos([videos[name] for name in chosen], arguments, settings.thumbnails, recalls)
    page = Page(
        thresholds=_thresholds(arguments.events, videos.values()) if arguments.events else {},
        title=read_name(annotations),
        subtitle="; ".join([f"{arguments.model}, actionspan {__version__}", *[note] * bool(note)]),
        videos=list(shown),
        charts=charts,
        tables=tables,
    )
    write_page(arguments.out, page)


def _thresholds(path: Path, videos: Iterable[Annotation]) -> dict[str, list[Point]]:
    """Return what each chance makes of the events of annotated videos that nothing learned."""
    known = [
        video
        for video in videos
        if video.subset == "validation" or (video.instances and video.subset != "training")
    ]
    return operating_points(
        dict(iterate_proposals(path)), {video.video_id: video.instances for video in known}
    )


def _summary(arguments: argparse.Namespace) -> tuple[list[Chart], list[Table]]:
    """Return the charts and tables of the files that are given."""
    records = read_records(arguments.evaluations)
    charts = made.recall_charts(records)
    charts += made.misses_charts(arguments.misses, arguments.model) if arguments.misses else []
    charts += made.loss_charts(arguments.logs)
    charts += made.seconds_charts(arguments.benchmarks) if arguments.benchmarks else []
    return charts, [*made.summary_tables(records), *made.reader_tables(arguments.readers)]


def _page_videos(
    chosen: Sequence[Annotation],
    arguments: argparse.Namespace,
    pictures: int,
    recalls: Mapping[str, float],
) -> Iterator[PageVideo]:
    """Yield the page's content of each video.

    For a video file that is missing or cannot be decoded there is a note on the page.
    """
    wanted = {video.video_id for video in chosen}
    rows = read_videos(arguments.videos) if arguments.videos else []
    files = {video.video_id: video for video in rows}
    # its name in the workflow is the targets'
    copies = arguments.copies or arguments.out.parent / "videos"
    looks = dict(_looked_at(chosen, files, copies, pictures))
    proposals = _rows_of(arguments.proposals, wanted)
    events = _rows_of(arguments.events, wanted) if arguments.events else {}
    path = arguments.probabilities
    with nullcontext() if path is None else open_h5(path) as file:
        table = None if file is None else read_probabilities(file, path)
        places = {} if table is None else {name: i for i, name in enumerate(table.video_id)}
        for video in chosen:
            name = video.video_id
            look, place = looks[name], places.get(name)
            values = None if table is None or place is None else table.video(place)
            yield PageVideo(
                video_id=name,
                file=path_from(arguments.out.parent, look.file),
                note=look.note,
                duration_seconds=video.duration_seconds,
                frames_per_second=files[name].fps or None if name in files else None,
                subset=video.subset,
                recall=round(recalls[name], 4) if name in recalls else None,
                truth=video.instances,
                proposals=proposals.get(name, ()),
                events=events.get(name, ()),
                curves={} if values is None else curves(values),
                thumbnails=look.thumbnails,
            )


def _rows_of(path: Path, wanted: set[str]) -> dict[str, list[Row]]:
    """Return the rows of videos, with scores of 4 significant digits."""
    return {
        name: [{**row, "score": float(f"{row['score']:.4g}")} for row in rows]
        for name, rows in iterate_proposals(path)
        if name in wanted
    }


def curves(probabilities: Float32) -> dict[str, list[float]]:
    """Return curves (T, 3) by name; of many points the highest of each run of them is kept."""
    count = min(len(probabilities), _MOST_POINTS)
    parts = np.array_split(np.asarray(probabilities, np.float64), count)
    points = np.round([part.max(axis=0) for part in parts], 3)
    return {name: points[:, place].tolist() for place, name in enumerate(CURVES)}


class Look(NamedTuple):
    """The file that the page plays, why browsers cannot play it, and its thumbnails."""

    file: Path | None = None
    note: str = ""
    thumbnails: Sequence[tuple[float, bytes]] = ()


def _looked_at(
    chosen: Sequence[Annotation], files: Mapping[str, Video], copies: Path, pictures: int
) -> Iterator[tuple[str, Look]]:
    """Look at the files of videos; one that crashes its decoder does not stop the others."""
    items = []
    for video in chosen:
        row = files.get(video.video_id)
        path = row.path if row is not None and row.path != Path() else None
        items.append((video.video_id, path, copies, pictures))
    for index, outcome in work_apart(_look, items, stall_seconds=_STALL_SECONDS):
        name, path, *_ = items[index]
        yield name, outcome.value or Look(note=f"{path}: {outcome.reason}")


def _look(item: tuple[str, Path | None, Path, int]) -> Look:
    name, path, copies, pictures = item
    copy = copies / f"{name}.mp4"
    command = f"snakemake --cores 1 {shlex.quote(copy.as_posix())}"
    shown, note = playable_file(path, copy, command)
    from actionspan.video.thumbnails import thumbnails

    if shown is None:
        return Look(None, note)
    return Look(shown, note, thumbnails(shown, pictures) if pictures else [])
