"""Train the evaluator of candidates (PEM of BSN)."""

import argparse
import sys
from pathlib import Path

from actionspan.proposals.settings import EvaluatorSettings
from actionspan.settings import add_settings, from_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--candidates", type=Path, required=True, help="candidates.h5")
    parser.add_argument("--annotations", type=Path, required=True, help="annotations.json")
    parser.add_argument("--out", type=Path, required=True, help="pem.pt to write")
    parser.add_argument("--out-log", type=Path, help="table of losses to write, one row an epoch")
    add_settings(parser, EvaluatorSettings)


def run(arguments: argparse.Namespace) -> None:
    """Train the evaluator on the training subset's candidates and log the losses."""
    from actionspan.dataset.tables import read_annotations
    from actionspan.files.storage import digest, write_tsv
    from actionspan.proposals.evaluator import save_evaluator
    from actionspan.proposals.examples import examples_of
    from actionspan.proposals.store import open_candidates
    from actionspan.proposals.training import Epoch, train_evaluator

    settings = from_arguments(EvaluatorSettings, arguments)
    table = open_candidates(arguments.candidates)
    annotations = read_annotations(arguments.annotations)
    limit, scores = settings.training_candidates, settings.boundary_scores
    training = examples_of(table, annotations, "training", limit, scores)
    validation = examples_of(table, annotations, "validation", limit, scores)
    if not len(training.rows):
        print(
            f"{arguments.candidates}: no candidates of training videos; the evaluator will answer "
            "0.5 everywhere and proposals are ranked by p_start * p_end",
            file=sys.stderr,
        )

    def report(epoch: Epoch) -> None:
        print(
            f"epoch {epoch.epoch}/{settings.epochs}: {epoch.sampled} candidates, "
            f"training loss {epoch.training_loss:.5f}, "
            f"validation loss {epoch.validation_loss:.5f}",
            file=sys.stderr,
        )

    evaluator, log = train_evaluator(training, validation, settings, report)
    save_evaluator(arguments.out, evaluator, digest(settings, table.digest))
    if arguments.out_log is not None:
        columns = list(Epoch.__dataclass_fields__)
        write_tsv(
            arguments.out_log, columns, [[getattr(row, name) for name in columns] for row in log]
        )
