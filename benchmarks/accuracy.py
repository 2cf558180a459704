"""AR@AN and AUC of every model and baseline over several seeds, from a run's features.

    snakemake --cores 2 --configfile examples/fights.yaml
    python benchmarks/accuracy.py --results results --seeds 1 2 3

trains each model once a seed (network, and evaluator or density), scores the validation subset and
prints a Markdown table: mean ± standard deviation over the seeds, the bootstrap interval over
videos of the seeds' mean interval, and of models with events the lowest and highest of what a
reader gets (`evaluation reader`; shares in percent). Seed N is that of the run's `mtn-seedN`, and
seed 1 the run's own model (docs/method.md). `--set temporal.training.epochs=40` tries another value
of a knob.
"""

import argparse
import contextlib
import io
import json
import shlex
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from actionspan.cli import main as actionspan
from actionspan.temporal.settings import ON_SEQUENCES, SEQUENCES
from actionspan.workflow.runs import RunName, seeded_flags
from actionspan.workflow.runs import flags as config_flags
from actionspan.workflow.sections import defaults

ROOT = Path(__file__).parents[1]
COLUMNS = ("AR@1", "AR@10", "AR@100")
BASELINES = ("random", "tiles", "sliding", "difference", "cuts")
READER = (
    *("events a video", "found in as many as there are", "first right", "precision", "recall"),
    *("found in the first five", "starts off, s", "ends off, s", "calibration error", "ranking"),
)


def flags(section: dict[str, Any], *keys: str) -> list[str]:
    """Return a section of the configuration, or some of its keys, as command-line flags."""
    return shlex.split(config_flags(section, *keys))


def seeded(section: dict[str, Any], seed: int) -> list[str]:
    """Return a section as flags, with the seed that a run gives it for `NAME-seedN`.

    Raises:
        ValueError: The seed is below 1, the run's own.
    """
    if seed < 1:
        raise ValueError(f"seed {seed}: at least 1, the run's own")
    return shlex.split(seeded_flags(section, str(RunName("model", seed))))


def call(*words: str | Path) -> None:
    """Run one command in this process, quietly; end where it fails."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        status = actionspan([str(word) for word in words])
    if status:
        raise SystemExit(said.getvalue())


def run_model(results: Path, config: dict[str, Any], model: str, seed: int, out: Path) -> dict:
    """Train and score one model with one seed."""
    on_sequences = model in ON_SEQUENCES
    features = results / f"features/{SEQUENCES.get(model, 'features')}.h5"
    annotations = results / "dataset/annotations.json"
    temporal, proposals = config["temporal"], config["proposals"]
    call(
        *("temporal", "train", "--model", model, "--features", features),
        *("--annotations", annotations, "--threads", str(temporal["threads"]), "--out", out),
        *seeded(temporal["training"], seed),
    )
    call(
        *("temporal", "predict", "--model", out / "model.safetensors", "--features", features),
        *("--out", out / "probabilities.h5"),
    )
    if on_sequences:
        choose(out, annotations, proposals, seed, model == "stream")
    else:
        evaluate(out, annotations, proposals, seed)
    record = score(out / "proposals.json", annotations, config, out / "record.json")
    return {**record, "reader": read(out, annotations, config) if on_sequences else {}}


def read(out: Path, annotations: Path, config: dict[str, Any]) -> dict[str, float | None]:
    """Return a reader's measures of the events, by the names of `READER`; shares in percent.

    A method without events is judged by its proposals.
    """
    shown = ["--events", out / "events.json"] if (out / "events.json").exists() else []
    call(
        *("evaluation", "reader", "--proposals", out / "proposals.json"),
        *(*shown, "--annotations", annotations),
        *("--subset", config["evaluation"]["subset"], "--method", "span"),
        *("--out-json", out / "reader.json", "--out-markdown", out / "reader.md"),
    )
    record = json.loads((out / "reader.json").read_text())
    events = record["lists"]["events" if shown else "proposals"]
    first = events["first"]["1"]["recall"] * record["instances"] / record["videos"]
    shares = events["as_many"], first, events["precision"], events["recall"]
    shares = *shares, events["first"]["5"]["recall"]
    percent = [None if share is None else 100 * share for share in shares]
    ends = events["end_errors"].values()
    values = events["per_video"], *percent, *ends, events["calibration_error"], events["ranking"]
    return dict(zip(READER, values, strict=True))


def choose(
    out: Path, annotations: Path, proposals: dict[str, Any], seed: int, streams: bool
) -> None:
    """Make proposals and events by a density of instances."""
    ahead = ("--ahead", str(proposals["online"]["ahead"])) if streams else ()
    call(
        *("proposals", "density", "--probabilities", out / "probabilities.h5"),
        *("--annotations", annotations, "--out", out / "density.safetensors", *ahead),
        *seeded(proposals["density"], seed),
        *flags(proposals["events"], "events", "overlap"),
    )
    call(
        *("proposals", "select", "--probabilities", out / "probabilities.h5"),
        *("--density", out / "density.safetensors", "--out-json", out / "proposals.json"),
        *("--out-events-json", out / "events.json"),
        *flags({**proposals["selection"], **proposals["events"]}),
    )


def evaluate(out: Path, annotations: Path, proposals: dict[str, Any], seed: int) -> None:
    """Make proposals by PGM, PEM and Soft-NMS."""
    call(
        *("proposals", "candidates", "--probabilities", out / "probabilities.h5"),
        *("--out", out / "candidates.h5", *flags(proposals["candidates"])),
    )
    call(
        *("proposals", "train", "--candidates", out / "candidates.h5"),
        *("--annotations", annotations, "--out", out / "pem.safetensors"),
        *seeded(proposals["evaluator"], seed),
    )
    call(
        *("proposals", "generate", "--candidates", out / "candidates.h5"),
        *("--evaluator", out / "pem.safetensors", "--out-json", out / "proposals.json"),
        *("--out-csv", out / "proposals.csv"),
        *flags({**proposals["ranking"], **proposals["suppression"]}),
    )


def run_baseline(results: Path, config: dict[str, Any], name: str, seed: int, out: Path) -> dict:
    """Make and score one baseline's proposals."""
    annotations = results / "dataset/annotations.json"
    call(
        *("evaluation", "baseline", "--method", name, "--annotations", annotations),
        *("--features", results / f"features/{'sequences' if name == 'cuts' else 'features'}.h5"),
        *("--subset", config["evaluation"]["subset"]),
        *("--out-json", out / "proposals.json", "--out-csv", out / "proposals.csv"),
        *seeded(config["evaluation"]["baseline"], seed),
    )
    return score(out / "proposals.json", annotations, config, out / "record.json")


def score(proposals: Path, annotations: Path, config: dict[str, Any], out: Path) -> dict:
    """Score a file of proposals by ActivityNet's protocol."""
    call(
        *("evaluation", "evaluate", "--proposals", proposals, "--annotations", annotations),
        *("--subset", config["evaluation"]["subset"], "--out", out),
        *flags(config["evaluation"]["protocol"]),
    )
    record: dict = json.loads(out.read_text())
    return record


def row(name: str, records: list[dict]) -> str:
    """Return one method's line of the table, in percent, and what a reader gets of its events."""

    def spread(values: list[float]) -> str:
        deviation = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
        return f"{np.mean(values):.1f}{deviation}"

    def lowest_highest(values: list[float | None]) -> str:
        known = [value for value in values if value is not None]
        return f"{min(known):.3g}–{max(known):.3g}" if known else "–"

    cells = [spread([100 * record[key] for record in records]) for key in COLUMNS]
    low, high = np.mean([record["AUC_interval"] for record in records], axis=0)
    cells += [spread([record["AUC"] for record in records]), f"{low:.1f}–{high:.1f}"]
    readers = [record.get("reader", {}) for record in records]
    cells += [lowest_highest([reader.get(key) for reader in readers]) for key in READER]
    return f"| {name} | " + " | ".join(cells) + " |"


def changed_config(files: list[Path], settings: list[str]) -> dict[str, Any]:
    """Return the defaults with other files and single values laid over it."""
    config = defaults()

    def lay(base: dict[str, Any], over: dict[str, Any]) -> None:
        for key, value in over.items():
            if isinstance(value, dict):
                lay(base[key], value)
            else:
                base[key] = value

    for file in files:
        lay(config, yaml.safe_load(file.read_text()))
    for setting in settings:
        path, value = setting.split("=", 1)
        over: Any = yaml.safe_load(value)
        for key in reversed(path.split(".")):
            over = {key: over}
        lay(config, over)
    return config


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--models", nargs="*", default=["origin", "se", "dense", "mtn"])
    parser.add_argument("--baselines", nargs="*", default=list(BASELINES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--configfile", nargs="*", type=Path, default=[])
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    config = changed_config(arguments.configfile, arguments.set)
    titles = ("method", *COLUMNS, "AUC", "95 % over videos", *READER)
    print(f"| {' | '.join(titles)} |")
    print("|---|" + "---:|" * (len(titles) - 1))
    with tempfile.TemporaryDirectory() as folder:
        for name in (*arguments.baselines, *arguments.models):
            run = run_baseline if name in BASELINES else run_model
            seeds = arguments.seeds[:1] if name in BASELINES[1:] else arguments.seeds
            started = time.monotonic()
            records = [
                run(arguments.results, config, name, seed, Path(folder) / f"{name}-{seed}")
                for seed in seeds
            ]
            seconds = (time.monotonic() - started) / len(seeds)
            print(row(name, records), f"<!-- {seconds:.1f} s a seed -->", flush=True)


if __name__ == "__main__":
    main()
