"""What a reader gets from one method: precision, recall and repeats of the first few events."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.evaluation.analysis import read_subset
from actionspan.files.storage import write_json, write_text
from actionspan.proposals.settings import ChapterSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--proposals", type=Path, required=True, help="ActivityNet result JSON")
    parser.add_argument(
        "--events",
        type=Path,
        nargs="?",
        help="the reader's list, in the same form (default: the chapters of the proposals)",
    )
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--subset", default="validation", help="default: validation")
    parser.add_argument("--method", required=True, help="the method's name")
    parser.add_argument("--out-json", type=Path, required=True, help="the record")
    parser.add_argument("--out-markdown", type=Path, required=True, help="a page to read")
    add_settings(parser, ChapterSettings)


def run(arguments: argparse.Namespace) -> None:
    """Judge the reader's list, its chapters, and the proposals without any reduction."""
    from actionspan.evaluation.files import as_array
    from actionspan.evaluation.reader_figures import reader_figures
    from actionspan.evaluation.reader_report import reader_markdown, reader_record
    from actionspan.evaluation.score import check_common
    from actionspan.proposals.reading import read_proposals
    from actionspan.proposals.webvtt import choose_chapters

    settings = from_arguments(ChapterSettings, arguments)
    annotations, subset = arguments.annotations, arguments.subset
    videos = read_subset(annotations, subset)
    proposals = read_proposals(arguments.proposals)
    truth = {video.video_id: video.instances for video in videos}
    check_common(truth, proposals, annotations, arguments.proposals, subset)
    shown, source = proposals, arguments.proposals
    if arguments.events is not None:
        shown, source = read_proposals(arguments.events), arguments.events
    chapters = {
        video: [row for _, row in choose_chapters(rows, settings)] for video, rows in shown.items()
    }
    lists = {"chapters": (source, chapters), "proposals": (arguments.proposals, proposals)}
    if arguments.events is not None:
        lists = {"events": (source, shown), **lists}
    figures = {}
    for name, (path, rows) in lists.items():
        try:
            arrays = {video: as_array(given) for video, given in rows.items()}
            figures[name] = reader_figures(videos, arrays)
        except ValueError as error:
            raise InputError(f"{path}, {annotations}: {error}") from None
    heading = {"method": arguments.method, "subset": subset}
    write_text(arguments.out_markdown, reader_markdown(heading, figures))
    write_json(arguments.out_json, reader_record(heading, figures))
