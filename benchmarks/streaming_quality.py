"""What streaming costs: proposals as they are emitted, against those of whole videos.

    snakemake --cores 2 --configfile examples/rooms.yaml
    python benchmarks/streaming_quality.py --results results --seeds 1 2 3

trains the model `stream` once a seed on a run's features (causal.h5), makes the proposals of whole
videos as a run does, and sends the same videos' stored snippets through `OnlineProposer`, one by
one. Prints a Markdown table, mean ± deviation over the seeds: both AUC with their ratio, the
bootstrap interval over videos of the emitted list, the delay of what was found (of instances that
an emitted proposal reaches at tIoU 0.5, the best scored one's emission behind the true end; the
snippet must have been seen as a whole), AUC (ROC) of actionness by snippet, largest difference of
the probabilities of both ways, and milliseconds a snippet.

`--bundle FOLDER` streams a trained model (results/proposals/stream) in place of training.
`--set proposals.online.least=0.01` tries another value of a knob; `--delay 3` another delay.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accuracy import call, changed_config, flags, run_model, score
from actionspan.annotations.tables import read_annotations
from actionspan.arrays import temporal_iou
from actionspan.features.collect import MOTION, STREAMS
from actionspan.features.store import open_features
from actionspan.live.proposing import OnlineProposer, Update
from actionspan.proposals.model_bundle import load_bundle
from actionspan.storage.writing import open_h5
from actionspan.temporal.labels import boundary_overlaps
from actionspan.temporal.prediction import predict_sequence

TITLES = (
    "AUC of whole videos",
    "AUC as emitted",
    "95 % over videos",
    "ratio",
    "delay (s)",
    "found",
    "actionness AUC, whole",
    "streamed",
    "largest difference",
    "CPU ms a snippet",
)
FOUND = 0.5  # tIoU
KEPT = 100  # emitted proposals that count, those of the best scores


@dataclass
class Streamed:
    """What one video gave."""

    curves: np.ndarray  # (T, 3)
    proposals: np.ndarray  # (N, 4): start, end, score and when it was emitted, in seconds
    seconds: float  # of the processor that it took


def shards(results: Path, names: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield the stored snippets of videos."""
    for path in sorted((results / "features/shards").glob("*.h5")):
        with open_h5(path) as file:
            for name in sorted(names & set(file)):
                yield name, file[name]


def stream(proposer: OnlineProposer, group: Any, duration: float) -> Streamed:
    """Send the snippets of a video one by one."""
    features = {key: group[key][:].astype(np.float32) for key in STREAMS if key in group}
    motion = {key: group[key][:] for key in MOTION if key in group}
    times = group["time"][:].astype(np.float64)
    half = np.median(np.diff(times)) / 2 if len(times) > 1 else duration / 2
    curves: list[tuple[float, float, float]] = []
    proposals: list[tuple[float, float, float, float]] = []

    def take(update: Update, now: float) -> None:
        curves.extend((each.start, each.action, each.end) for each in update.actionness)
        proposals.extend((each.start, each.end, each.score, now) for each in update.proposals)

    started = time.process_time()
    for row, seconds in enumerate(times.tolist()):
        snippet = {key: values[row] for key, values in features.items()}
        moved = {key: float(values[row]) for key, values in motion.items()}
        take(proposer.add(snippet, seconds, moved), seconds + half)
    take(proposer.finish(duration), duration)
    taken = time.process_time() - started
    return Streamed(np.array(curves), np.array(proposals).reshape(-1, 4), taken)


def delays(proposals: np.ndarray, instances: np.ndarray) -> list[float]:
    """Return the delay of the best scored proposal that finds each instance, if one does."""
    found = []
    for overlap, (_, end) in zip(temporal_iou(instances, proposals[:, :2]), instances, strict=True):
        rows = np.flatnonzero(overlap >= FOUND)
        if len(rows):
            found.append(float(proposals[rows[proposals[rows, 2].argmax()], 3] - end))
    return found


def ranking_auc(scores: np.ndarray, inside: np.ndarray) -> float:
    """Return the share of pairs of a snippet inside and one outside that are in the right order."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positive = int(inside.sum())
    above = ranks[inside].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(scores) - positive)))


def measure(
    results: Path, config: dict[str, Any], bundle: Path, record: dict[str, Any], delay: float
) -> list[float]:
    """Stream the scored videos; return the values of `TITLES`, the interval as two."""
    model = load_bundle(bundle)
    proposer = OnlineProposer(model, delay_seconds=delay)
    subset = config["evaluation"]["subset"]
    truth = {
        one.video_id: np.array([(each.start, each.end) for each in one.instances]).reshape(-1, 2)
        for one in read_annotations(results / "dataset/annotations.json")
        if one.subset == subset
    }
    stored = open_features(results / "features/causal.h5")
    whole, both, inside, found, lists = [], [], [], [], {}
    seconds, snippets, known = 0.0, 0, 0
    rows_of = {stored.video_id[rows.start]: rows for rows in stored.videos()}
    for name, group in shards(results, set(truth)):
        rows = rows_of[name]
        duration = float(stored.duration_seconds[rows.start])
        got = stream(proposer, group, duration)
        offline = predict_sequence(model.temporal, stored.sequence(rows)).probabilities
        assert len(offline) == len(got.curves), f"{name}: steps unlike snippets"
        whole.append(offline)
        both.append(got.curves)
        inside.append(boundary_overlaps(truth[name], duration, steps=len(offline))[:, 1] > 0.5)
        found += delays(got.proposals, truth[name])
        known += len(truth[name])
        best = got.proposals[np.argsort(-got.proposals[:, 2], kind="stable")[:KEPT]]
        lists[name] = [{"segment": row[:2].tolist(), "score": float(row[2])} for row in best]
        seconds, snippets = seconds + got.seconds, snippets + len(offline)
    with tempfile.TemporaryDirectory() as folder:
        emitted = Path(folder) / "proposals.json"
        emitted.write_text(json.dumps({"version": "", "results": lists, "external_data": {}}))
        scored = score(
            emitted, results / "dataset/annotations.json", config, Path(folder) / "record.json"
        )
    offline_curves, curves = np.concatenate(whole), np.concatenate(both)
    acting = np.concatenate(inside)
    return [
        record["AUC"],
        scored["AUC"],
        *scored["AUC_interval"],
        scored["AUC"] / record["AUC"],
        float(np.mean(found)) if found else np.nan,
        len(found) / max(known, 1),
        ranking_auc(offline_curves[:, 1], acting),
        ranking_auc(curves[:, 1], acting),
        float(np.abs(offline_curves - curves).max()),
        1000 * seconds / snippets,
    ]


def trained(results: Path, config: dict[str, Any], seed: int, out: Path) -> tuple[Path, dict]:
    """Train the model with a seed; return its bundle and the record of whole videos."""
    record = run_model(results, config, "stream", seed, out)
    proposals = config["proposals"]
    call(
        *("proposals", "bundle", "--features", results / "features/causal.h5"),
        *("--temporal", out / "model.safetensors", "--density", out / "density.safetensors"),
        *("--out", out / "bundle.safetensors"),
        *flags({**proposals["selection"], **proposals["events"], **proposals["online"]}),
    )
    return out / "bundle.safetensors", record


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", nargs="+", type=Path, default=[Path("results")])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--bundle", type=Path, help="a trained model, of the first results")
    parser.add_argument("--delay", type=float, default=2.0, help="seconds")
    parser.add_argument("--configfile", nargs="*", type=Path, default=[])
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    config = changed_config(arguments.configfile, arguments.set)
    print(f"| run | {' | '.join(TITLES)} |\n|---|" + "---:|" * len(TITLES))
    for results in arguments.results:
        values = []
        with tempfile.TemporaryDirectory() as folder:
            if arguments.bundle:
                path = arguments.bundle
                whole = path if path.is_dir() else path.parent
                record = score(
                    whole / "proposals.json",
                    results / "dataset/annotations.json",
                    config,
                    Path(folder) / "record.json",
                )
                values.append(measure(results, config, path, record, arguments.delay))
            for seed in [] if arguments.bundle else arguments.seeds:
                made = trained(results, config, seed, Path(folder) / str(seed))
                values.append(measure(results, config, *made, arguments.delay))
        mean = np.mean(values, axis=0)
        spread = np.std(values, axis=0, ddof=1) if len(values) > 1 else np.full(len(mean), np.nan)

        def cell(place: int, form: str, mean: Any = mean, spread: Any = spread) -> str:
            deviation = "" if np.isnan(spread[place]) else f" ± {spread[place]:{form}}"
            return f"{mean[place]:{form}}{deviation}"

        cells = [cell(0, ".1f"), cell(1, ".1f"), f"{mean[2]:.1f}–{mean[3]:.1f}", cell(4, ".2f")]
        cells += [cell(5, ".2f"), cell(6, ".2f"), cell(7, ".4f"), cell(8, ".4f")]
        cells += [f"{np.max(values, axis=0)[9]:.0e}", f"{mean[10]:.1f}"]
        print(f"| {results.resolve().parent.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
