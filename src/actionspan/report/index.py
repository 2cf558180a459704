"""The page of a data set: videos beside their timelines, and a summary."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from actionspan import __version__
from actionspan.report.settings import PageSettings
from actionspan.settings import add_settings, from_arguments

if TYPE_CHECKING:
    from actionspan.report.content import Chart, Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""

    def add(flag: str, help: str, *, required: bool = False) -> None:
        parser.add_argument(flag, type=Path, required=required, help=help)

    parser.add_argument("--model", required=True, help="whose proposals are shown")
    add("--annotations", "annotations.json", required=True)
    add("--videos", "videos.tsv, for the files of the videos")
    add("--proposals", "the model's proposals.json", required=True)
    events = "its events.json, if it has one"
    parser.add_argument("--events", type=Path, nargs="?", help=events)
    add("--probabilities", "its probabilities.h5, if it has one")
    add("--scores", "its scores by video, evaluation/videos/{model}.tsv")
    add("--misses", "evaluation/misses/{model}.tsv")
    add("--benchmarks", "folder of Snakemake's records of jobs")
    add("--copies", "folder of copies that browsers play (default: videos, beside --out)")
    for flag, help in (
        ("--evaluations", "records of all methods, for recall curves and the table"),
        ("--readers", "evaluation/reader/{method}.json, for a table"),
        ("--logs", "{model}/{run}/log.tsv of trainings, for their losses"),
    ):
        parser.add_argument(flag, type=Path, nargs="*", default=[], metavar="FILE", help=help)
    add("--out", "index.html", required=True)
    add_settings(parser, PageSettings)


def run(arguments: argparse.Namespace) -> None:
    """Gather what the page shows, and write it."""
    settings = from_arguments(PageSettings, arguments)
    from actionspan.dataset.tables import iterate_annotations, read_name, read_videos
    from actionspan.evaluation.worst import read_videos as read_scores
    from actionspan.report.choosing import choose_videos
    from actionspan.report.content import Page
    from actionspan.report.page import write_page
    from actionspan.report.videos import Sources, page_videos

    annotations, out = arguments.annotations, arguments.out
    scored = read_scores(arguments.scores) if arguments.scores else []
    recalls = {video.video_id: video.average_recall for video in scored}
    ids = [
        video.video_id
        for video in iterate_annotations(annotations)
        if video.subset in settings.subsets
    ]
    chosen, said = choose_videos(ids, recalls, settings.most_videos)
    shown = {video.video_id: video for video in iterate_annotations(annotations)}
    files = read_videos(arguments.videos) if arguments.videos else []
    sources = Sources(
        proposals=arguments.proposals,
        events=arguments.events,
        probabilities=arguments.probabilities,
        videos={video.video_id: video for video in files},
        recalls=recalls,
        copies=arguments.copies or out.parent / "videos",
    )
    videos = page_videos(
        [shown[video] for video in chosen], sources, out.parent, settings.thumbnails
    )
    charts, tables = _summary(arguments)
    page = Page(
        title=read_name(annotations),
        subtitle="; ".join([f"{arguments.model}, actionspan {__version__}", *[said] * bool(said)]),
        videos=list(videos),
        charts=charts,
        tables=tables,
    )
    write_page(out, page)


def _summary(arguments: argparse.Namespace) -> "tuple[list[Chart], list[Table]]":
    """Return the charts and tables of the files that are given."""
    from actionspan.evaluation.summary import read_records
    from actionspan.report import charts as made

    records = read_records(arguments.evaluations)
    charts = made.recall_charts(records)
    charts += made.misses_charts(arguments.misses, arguments.model) if arguments.misses else []
    charts += made.loss_charts(arguments.logs)
    charts += made.seconds_charts(arguments.benchmarks) if arguments.benchmarks else []
    return charts, [*made.summary_tables(records), *made.reader_tables(arguments.readers)]
