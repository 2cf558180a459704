"""Gradients of real encoders on snippets of a small store, and the verdicts on such tables."""

import numpy as np
import pytest

from actionspan_papers.experiments import frame_of
from actionspan_papers.sbp.layer_claims import gradient_findings
from actionspan_papers.sbp.settings import (
    DEPTH,
    GRADIENT_COLUMNS,
    QUANTITIES,
    SAMPLING,
)
from papers.sbp.stores import make_store
from papers.steps import NOT, REPRODUCED, UNKNOWN, run_command, step_rows, verdicts

TINY = ["--videos", "2", "--input-size", "32", "--draws", "20", "--components", "4"]
TINY += ["--epochs", "1", "--ratios", "1.0", "0.5"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gradients")
    store, annotations, _ = make_store(folder, training=2, validation=0)
    words = ["--snippets", store, "--annotations", annotations, *TINY]
    return folder, step_rows(folder, "sbp", "gradients", *words, figure=True, run=run_command)


def test_all_snippets_give_the_full_gradient_half_of_them_less_and_blocks_have_cosines(table):
    folder, rows = table
    assert tuple(rows[0]) == GRADIENT_COLUMNS
    full, half = ([row for row in rows if row["keep_ratio"] == ratio] for ratio in ("1", "0.5"))
    assert len(full) == 2 * 5
    for row in full:
        assert float(row["cosine"]) == pytest.approx(1, abs=1e-6)
        assert float(row["error"]) == pytest.approx(0, abs=1e-6)
        assert row["kept"] == row["snippets"]
    assert all(float(row["error"]) > 0 for row in half)
    assert {int(row["kept"]) for row in half} == {(int(row["snippets"]) + 1) // 2 for row in half}
    depth = [row for row in rows if row["part"] == DEPTH]
    assert len(depth) == 2 * 18 * len(QUANTITIES)
    assert {row["block"] for row in depth} >= {"stem", "1", "16", "head"}
    known = np.array([float(row["neighbours"]) for row in depth])
    assert (np.abs(known) <= 1 + 1e-6).all()
    assert "| importance |" in (folder / "gradients.md").read_text()
    assert "<svg" in (folder / "gradients.svg").read_text()


def rows_of(importance, uniform, *, bottom=0.8, top=0.3):
    """A table of three videos; cosines by ratio."""
    rows = []
    for video in range(3):
        for ratio, cosine in uniform.items():
            for sampler in ("uniform_random", "diverse_feature", "diverse_gradient", "importance"):
                value = importance[ratio] if sampler == "importance" else cosine
                rows.append(row(SAMPLING, video, sampler=sampler, keep_ratio=ratio, cosine=value))
        for quantity in QUANTITIES:
            for place, block in enumerate(("stem", "1", "head")):
                value = bottom + (top - bottom) * place / 2
                rows.append(row(DEPTH, video, quantity=quantity, block=block, neighbours=value))
    return rows


def row(part, video, **cells):
    own = {
        name: f"{v + 0.01 * video:.6g}" if isinstance(v, float) else v for name, v in cells.items()
    }
    return {**dict.fromkeys(GRADIENT_COLUMNS, ""), "part": part, "video": str(video), **own}


def findings(rows):
    return gradient_findings(frame_of(rows), 0.95)


def test_importance_sampling_is_judged_by_the_paper_s_samplers():
    uniform = {"0.5": 0.8, "0.25": 0.57}
    better = findings(rows_of({"0.5": 0.97, "0.25": 0.8}, uniform))
    for text in ("nearer to the full gradient", "of twice the snippets", "samplers are alike"):
        assert verdicts(better, text) == {REPRODUCED}
    assert verdicts(better, "gradients of parameters") == {REPRODUCED}
    worse = findings(rows_of({"0.5": 0.7, "0.25": 0.6}, uniform, top=0.9))
    for text in ("of twice the snippets", "gradients of activations"):
        assert verdicts(worse, text) == {NOT}


def test_one_video_leaves_claims_open():
    rows = [r for r in rows_of({"0.5": 0.9}, {"0.5": 0.8}) if r["video"] == "0"]
    assert verdicts(findings(rows)) == {UNKNOWN}
