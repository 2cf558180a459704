"""Probabilities to proposals by the recall each adds, and events for a reader (model span)."""

import argparse
from pathlib import Path

from actionspan.proposals.settings import EventSettings, SelectionSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--probabilities", type=Path, required=True, help="probabilities.h5")
    parser.add_argument("--density", type=Path, required=True, help="density.pt")
    parser.add_argument("--out-json", type=Path, required=True, help="ActivityNet form to write")
    parser.add_argument("--out-csv", type=Path, help="table to write")
    parser.add_argument("--out-events-json", type=Path, help="the reader's list, in the same form")
    parser.add_argument("--out-events-csv", type=Path, help="the reader's list as a table")
    add_settings(parser, SelectionSettings)
    add_settings(parser, EventSettings)


def run(arguments: argparse.Namespace) -> None:
    """Choose the proposals and the events of all videos."""
    from actionspan.files.storage import open_h5
    from actionspan.proposals.choosing import choose
    from actionspan.proposals.density_training import load_density
    from actionspan.proposals.writing import result_rows, write_proposals
    from actionspan.running.progress import progress
    from actionspan.temporal.probabilities import read_probabilities

    selection = from_arguments(SelectionSettings, arguments)
    events = from_arguments(EventSettings, arguments)
    model = load_density(arguments.density)
    proposals, shown = {}, {}
    with open_h5(arguments.probabilities) as file:
        table = read_probabilities(file, arguments.probabilities)
        videos = progress(enumerate(table), "proposals", len(table.video_id))
        for index, values in videos:
            name, duration = table.video_id[index], float(table.duration_seconds[index])
            chosen = choose(values, duration, model, selection, events)
            proposals[name] = result_rows(chosen.segments, chosen.scores)
            shown[name] = result_rows(chosen.events, chosen.chances)
    write_proposals(proposals.items(), arguments.out_json, arguments.out_csv)
    if arguments.out_events_json is not None:
        write_proposals(shown.items(), arguments.out_events_json, arguments.out_events_csv)
