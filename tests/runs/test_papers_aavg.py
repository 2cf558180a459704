"""Paper 003's figures: which trainings they need, and every command on runs written by hand."""

import pytest

from actionspan.storage.writing import read_tsv
from papers.aavg.runs import named, write_log, write_scores

pytestmark = pytest.mark.workflow

RULES = [
    *("papers_aavg_curves", "papers_aavg_rates", "papers_aavg_table", "papers_aavg_traffic"),
    *("papers_aavg_times", "papers_aavg_claims"),
]
RUNS = {  # of two seeds, by the accuracy of their last epoch
    "aavg1-k1-2": 0.5,
    "aavg1-k4-2": 0.55,
    "aavg1-epoch-2": 0.6,
    "aavg2-epoch-2": 0.65,
    "aavg3-epoch-2": 0.7,
    "aavg4-epoch-2": 0.8,
    "none-k1-1": 0.4,
    "ring-k1-2": 0.5,
    "periodic-epoch-2": 0.5,
    "ps_async-k1-2": 0.5,
}
FEW = {"seeds": 2, "intervals": [1, 4], "learning_rates": [0.0001, 0.0003], "resamples": 50}
CONFIG = {"recognition": {"experiments": FEW, "training": {"learning_rate": 0.0001}}}


def test_all_figures_need_the_runs_that_they_compare(bare):
    every = bare.planned("recognition_figures", config=CONFIG)
    # 9 ways with both streams and AAVG4's flow, two seeds of each; a further rate of 3 methods
    assert every["recognition_experiment"] == (9 * 2 + 1) * 2 + 3 * 2
    assert every["papers_aavg_curves"] == 11
    assert {rule for rule in every if rule in RULES} == set(RULES)


def test_every_command_runs_on_logs_and_scores(bare):
    folder = bare.folder / "results/recognition"
    made = bare.folder / "results/papers/aavg"
    for run, accuracy in RUNS.items():
        for name in named(run, 2):
            for stream in ("rgb", "flow"):
                if run.startswith("aavg4") and stream == "rgb":
                    continue
                write_log(folder, name, stream, [accuracy / 2, accuracy])
                right = [number < 20 * accuracy for number in range(20)]
                write_scores(folder, name, stream, [0.75 if one else 0.25 for one in right])
    for method in ("aavg1-epoch-2", "aavg3-epoch-2", "none-k1-1"):
        for stream in ("rgb", "flow"):
            rates = {"learning_rate": [0.0003] * 2}
            write_log(folder, f"{method}-lr0.0003", stream, [0.1, 0.2], **rates)
    names = [
        *("interval_rgb.svg", "transfer_flow.png", "learning_rates.svg", "table1.md"),
        *("traffic.md", "times.md", "claims.md"),
    ]
    targets = [f"results/papers/aavg/{name}" for name in names]
    bare.make(*targets, "--allowed-rules", *RULES, config=CONFIG)
    assert len(read_tsv(made / "interval_rgb.tsv")) == 3 * 2
    assert [row["seeds"] for row in read_tsv(made / "table1.tsv")] == ["2"] * 4
    assert len(read_tsv(made / "learning_rates.tsv")) == 3 * 2 * 2
    claims = read_tsv(made / "claims.tsv")
    assert "reproduced" in {row["verdict"] for row in claims}
    assert not [row["why"] for row in claims if "Runs of" in row["why"]], "a run that is missing"
