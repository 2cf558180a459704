"""Probabilities to proposals by the recall each adds, and events for a reader (span, stream)."""

import argparse
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from actionspan.proposals.settings import EventSettings, SelectionSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--probabilities", type=Path, required=True, help="probabilities.h5")
    parser.add_argument("--density", type=Path, required=True, help="density.safetensors")
    parser.add_argument("--out-json", type=Path, required=True, help="ActivityNet form to write")
    parser.add_argument("--out-csv", type=Path, help="table to write")
    parser.add_argument(
        "--classifier", type=Path, help="classifier.safetensors; without it, no labels"
    )
    parser.add_argument("--features", type=Path, help="features.h5, which the classifier sees")
    parser.add_argument("--out-events-json", type=Path, help="the reader's list, in the same form")
    parser.add_argument("--out-events-csv", type=Path, help="the reader's list as a table")
    parser.add_argument("--videos", type=Path, help="videos.tsv, for frame numbers in that table")
    parser.add_argument("--zones", type=Path, help="zones.json, for the zone of each event")
    parser.add_argument(
        "--shards", type=Path, nargs="*", default=[], help="shards of features within these zones"
    )
    add_settings(parser, SelectionSettings)
    add_settings(parser, EventSettings)


def run(arguments: argparse.Namespace) -> None:
    """Choose the proposals and the events of all videos."""
    from actionspan.annotations.tables import read_videos
    from actionspan.dataset.timeline import frames_in
    from actionspan.jobs.progress import progress
    from actionspan.proposals.density_training import load_density
    from actionspan.proposals.intensity import choose
    from actionspan.proposals.segment_classifier import optional_labeller
    from actionspan.proposals.segments import proposal_files, result_rows, zoned_rows
    from actionspan.storage.writing import open_h5
    from actionspan.temporal.probabilities import read_probabilities
    from actionspan.video.zones import motion_in_shards, read_zones

    # 1. read settings and models
    selection = from_arguments(SelectionSettings, arguments)
    reading = from_arguments(EventSettings, arguments)
    labeller = optional_labeller(arguments.features, arguments.classifier)
    model = load_density(arguments.density)
    labelled = labeller is not None
    moved = motion_in_shards(arguments.shards, read_zones(arguments.zones))
    with ExitStack() as stack:
        # 2. open the files
        file = stack.enter_context(open_h5(arguments.probabilities))
        table = read_probabilities(file, arguments.probabilities)
        opened = proposal_files(arguments.out_json, arguments.out_csv, labelled=labelled)
        write = stack.enter_context(opened)
        show = None
        if arguments.out_events_json is not None:
            paths = arguments.out_events_json, arguments.out_events_csv
            frames = None
            if arguments.videos is not None:
                files = {video.video_id: video for video in read_videos(arguments.videos)}
                frames = partial(frames_in, files)
            how: Any = {"labelled": labelled, "zoned": bool(moved), "frames": frames}
            show = stack.enter_context(proposal_files(*paths, **how))
        # 3. choose and write, video by video
        videos = progress(enumerate(table), "proposals", len(table.video_id))
        for index, values in videos:
            name, duration = table.video_id[index], float(table.duration_seconds[index])
            marks = table.video_marks(index)
            chosen = choose(values, duration, model, selection, reading, marks)
            rows = result_rows(chosen.segments, chosen.scores)
            write(name, labeller.label(name, rows) if labeller else rows)
            if show is not None and chosen.events is not None and chosen.chances is not None:
                events = zoned_rows(result_rows(chosen.events, chosen.chances), moved.get(name))
                show(name, labeller.label(name, events) if labeller and events else events)
