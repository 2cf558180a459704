"""Gradients of real encoders on snippets of a small store, and the verdicts on such tables."""

import csv

import numpy as np
import pytest

from actionspan.cli import main
from actionspan_papers.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED
from actionspan_papers.experiments import frame_of
from actionspan_papers.sbp.layer_claims import gradient_findings
from actionspan_papers.sbp.settings import (
    DEPTH,
    GRADIENT_COLUMNS,
    QUANTITIES,
    SAMPLING,
)
from papers.sbp.stores import make_store

TINY = ["--videos", "2", "--input-size", "32", "--draws", "20", "--components", "4"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gradients")
    store, annotations, _ = make_store(folder, training=2, validation=0)
    outputs = ["--out-tsv", folder / "g.tsv", "--out-markdown", folder / "g.md"]
    words = ["--snippets", store, "--annotations", annotations, *outputs, *TINY]
    figure = folder / "g.svg"
    words += ["--out-figures", figure, "--epochs", "1", "--ratios", "1.0", "0.5"]
    assert main(["papers", "sbp", "gradients", *map(str, words)]) == 0
    with (folder / "g.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return rows, (folder / "g.md").read_text(), figure.read_text()


def test_all_snippets_give_the_full_gradient(table):
    rows, *_ = table
    assert tuple(rows[0]) == GRADIENT_COLUMNS
    full = [row for row in rows if row["keep_ratio"] == "1"]
    assert len(full) == 2 * 5
    for row in full:
        assert float(row["cosine"]) == pytest.approx(1, abs=1e-6)
        assert float(row["error"]) == pytest.approx(0, abs=1e-6)
        assert row["kept"] == row["snippets"]


def test_half_of_them_give_less(table):
    rows, *_ = table
    half = [row for row in rows if row["keep_ratio"] == "0.5"]
    assert all(float(row["error"]) > 0 for row in half)
    assert {int(row["kept"]) for row in half} == {(int(row["snippets"]) + 1) // 2 for row in half}


def test_every_block_has_cosines(table):
    rows, text, figure = table
    depth = [row for row in rows if row["part"] == DEPTH]
    assert len(depth) == 2 * 18 * len(QUANTITIES)
    assert {row["block"] for row in depth} >= {"stem", "1", "16", "head"}
    known = np.array([float(row["neighbours"]) for row in depth])
    assert (np.abs(known) <= 1 + 1e-6).all()
    assert "| importance |" in text
    assert "<svg" in figure


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


def verdict(findings, text):
    (found,) = {finding.verdict for finding in findings if text in finding.claim.text}
    return found


def test_importance_sampling_is_judged_by_the_paper_s_samplers():
    uniform = {"0.5": 0.8, "0.25": 0.57}
    findings = gradient_findings(frame_of(rows_of({"0.5": 0.97, "0.25": 0.8}, uniform)), 0.95)
    assert verdict(findings, "nearer to the full gradient") == REPRODUCED
    assert verdict(findings, "of twice the snippets") == REPRODUCED
    assert verdict(findings, "samplers are alike") == REPRODUCED
    assert verdict(findings, "gradients of parameters") == REPRODUCED
    rows = rows_of({"0.5": 0.7, "0.25": 0.6}, uniform, top=0.9)
    findings = gradient_findings(frame_of(rows), 0.95)
    assert verdict(findings, "of twice the snippets") == NOT_REPRODUCED
    assert verdict(findings, "gradients of activations") == NOT_REPRODUCED


def test_one_video_leaves_claims_open():
    rows = [r for r in rows_of({"0.5": 0.9}, {"0.5": 0.8}) if r["video"] == "0"]
    findings = gradient_findings(frame_of(rows), 0.95)
    assert {finding.verdict for finding in findings} == {NOT_TESTABLE}
