"""Which files the papers' targets want."""

from pathlib import Path

from actionspan_papers import rules
from actionspan_papers.aavg import comparisons as aavg
from actionspan_papers.mtn import runs

CONFIG = {
    "features": {"source": "pooled"},
    "temporal": {"models": ["origin"], "exchange": "ring", "ranks": 2},
    "evaluation": {"seeds": 2, "baselines": ["random", "sliding", "difference", "cuts", "tag"]},
    "recognition": {
        "learners": 2,
        "training": {"learning_rate": 0.0001},
        "experiments": {"seeds": 2, "intervals": [1, 4], "learning_rates": [0.0001, 0.0003]},
    },
}


def names(paths):
    return [path.removeprefix("results/evaluation/videos/").removesuffix(".tsv") for path in paths]


def test_a_table_has_all_seeds_of_what_knows_chance():
    """The rule of cuts is in none: the paper does not know it."""
    baselines = ["random", "random-seed2", "sliding", "difference", "tag", "tag-seed2"]
    for table in ("table1", "table2"):
        found = names(runs.table_scores(CONFIG, table))
        assert found == ["origin", "origin-seed2", *baselines]
    ablation = ["origin", "se", "dense", "mtn"]
    found = names(runs.table_scores(CONFIG, "table3"))
    seeds = [f"{name}{seed}" for name in ablation for seed in ("", "-seed2")]
    assert found == seeds + baselines


def test_claims_have_the_ablation_and_tag_where_it_is_a_baseline_and_losses_the_exchange():
    assert names(runs.claim_scores(CONFIG))[-2:] == ["tag", "tag-seed2"]
    without = {**CONFIG, "evaluation": {"seeds": 1, "baselines": ["random"]}}
    assert names(runs.claim_scores(without)) == ["origin", "se", "dense", "mtn"]
    logs = runs.loss_logs(CONFIG)
    assert len(logs) == 4 * 2
    assert logs[:2] == [f"results/temporal/origin{n}/ring-2/log.tsv" for n in ("", "-seed2")]


def test_external_features_have_no_frame_differences():
    found = names(runs.table_scores({**CONFIG, "features": {"source": "external"}}, "table1"))
    assert ("difference" in found, "sliding" in found) == (False, True)


def test_a_figure_has_both_seeds_of_its_runs():
    for figure, count in (("interval_rgb", 3), ("batch_flow", 2), ("peers_rgb", 4)):
        logs = aavg.figure_logs(CONFIG, figure)
        assert len(logs) == len(set(logs)) == count * 2
        stream = figure.rpartition("_")[2]
        assert all(log.endswith(f"/{stream}/log.tsv") for log in logs)


def test_rgb_of_aavg4_is_wanted_as_that_of_aavg3():
    runs = "results/recognition/runs"
    logs = aavg.compared_files(CONFIG, "log.tsv")
    assert f"{runs}/aavg4-epoch-2/flow/log.tsv" in logs
    assert f"{runs}/aavg4-epoch-2/rgb/log.tsv" not in logs
    assert len(logs) == len(set(logs)) == (9 * 2 + 1) * 2
    assert {"aavg2-epoch-2", "ps_async-k1-2"} < {log.split("/")[3] for log in logs}
    scores = aavg.variant_scores(CONFIG)
    assert len(scores) == (3 * 2 + 1) * 2
    assert all("-epoch-" in path and path.endswith("scores.json") for path in scores)
    # the sweep takes the configured rate from the runs there are
    logs = aavg.rate_logs(CONFIG)
    assert len(logs) == 3 * 2 * 2  # methods, rates and streams of one seed
    assert {f"{runs}/none-k1-1{end}" for end in ("/rgb/log.tsv", "-lr0.0003/flow/log.tsv")} < {
        *logs
    }


def test_a_step_depends_on_the_tables_of_text_that_it_reads():
    """On the printed numbers; verdicts also on the claims, and on the measurements of a GPU."""
    commands = ("papers sbp table2", "papers ring fits", "finetune measure", "papers sbp claims")
    texts = [{Path(path).name for path in rules.Experiment(command=one).texts} for one in commands]
    assert texts[:3] == [{"published.tsv"}, set(), set()]
    tables = ("printed", "measured", "on_gpu", "published", "inventory", "gpu")
    assert texts[3] == {f"{name}.tsv" for name in tables}
