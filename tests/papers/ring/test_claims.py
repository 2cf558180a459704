"""The verdicts on paper 000: its own numbers by hand, our runs by what they were made with."""

import numpy as np
import pytest

from actionspan.scaling.times import Run
from actionspan.storage.writing import read_tsv
from actionspan_papers.claims import VERDICTS
from actionspan_papers.ring.claims import judge_claims
from papers.steps import cells, outputs, run_step
from parallel.test_rounds import printed_gather_rounds, run_ring
from scaling.oracle import PAPER_PS, PAPER_RING, model_seconds

REPRODUCED, NOT, UNKNOWN = VERDICTS
GPUS = range(2, 9)
SERVER = [model_seconds("ps", PAPER_PS, n) for n in GPUS]
RING = [model_seconds("ring", PAPER_RING, n) for n in GPUS]


def found(runs=()):
    return {one.claim.key: one for one in judge_claims(runs)}


def test_by_its_own_fits_the_ring_is_slower_on_8_gpus_and_its_ratio_higher_by_a_hair():
    ours = found()
    assert (ours["faster"].verdict, ours["own"].verdict) == (NOT, REPRODUCED)
    assert ours["faster"].difference == pytest.approx(915.575 - 965.6625)
    assert ours["faster"].why == "965.7 s against 915.6 s."
    assert ours["own"].difference == pytest.approx(4763.6 / RING[-1] - 4514.6 / SERVER[-1])
    assert ours["own"].why == "4.933 against 4.931."
    # of one time of one GPU the ratios are ordered as the times
    assert ours["common"].verdict == NOT
    assert ours["common"].difference == pytest.approx(4514.6 / RING[-1] - 4514.6 / SERVER[-1])


def test_better_and_better_is_not_in_the_numbers():
    lead = [4763.6 / ring - 4514.6 / server for ring, server in zip(RING, SERVER, strict=True)]
    growing = found()["growing"]
    assert growing.difference == pytest.approx(min(np.diff(lead)))
    assert growing.verdict == NOT
    assert 0 > lead[0] > lead[1] > lead[2] > lead[3] < lead[4], "it falls, then rises"


def test_the_ring_is_first_faster_on_12_gpus():
    def gained(n):
        return model_seconds("ps", PAPER_PS, n) - model_seconds("ring", PAPER_RING, n)

    assert [n for n in range(2, 99) if gained(n) > 0] == list(range(12, 99))
    beyond = found()["beyond"]
    assert beyond.why.startswith("On 12 GPUs. Up to 11 the server is faster")
    assert beyond.difference == pytest.approx(gained(12))
    assert beyond.verdict == REPRODUCED


def test_the_sign_of_equation_1s_c_is_noise():
    """Errors of the deviation that is named move C by 3.8, as a simulation shows."""
    negative = found()["negative"]
    assert (negative.difference, negative.verdict) == (0, NOT)
    assert "errors of 7.7 s a run" in negative.why
    ranks = np.array(GPUS, dtype=float)
    design = np.column_stack([1 / ranks, ranks, np.ones_like(ranks)])
    noisy = np.array(RING) + np.random.default_rng(1).normal(0, 7.7, (20_000, len(ranks)))
    drawn = np.linalg.lstsq(design, noisy.T, rcond=None)[0][1]
    assert drawn.mean() == pytest.approx(0, abs=0.1)
    assert drawn.std() == pytest.approx(3.8, rel=0.03)


def test_what_rests_on_the_rings_c_is_open_or_says_so():
    """C = 0 gives the same times as the printed C."""
    other = (4400.1 - 59.6, 0.0, 363.5 + 59.6)
    assert [model_seconds("ring", other, n) for n in GPUS] == pytest.approx(RING)
    ours = found()
    for key in ("larger", "slower"):
        assert ours[key].verdict == UNKNOWN
        assert "any C with T = 4340.5 + C and P = 423.1 - C" in ours[key].why
    assert ours["others"].verdict == UNKNOWN
    assert ours["less"].difference == pytest.approx(8 * 12.1 - 59.6 * 7 / 8)
    assert ours["less"].why.startswith("From 4 GPUs on")
    assert ours["same"].difference == pytest.approx(1 - 100 * (4400.1 / 4223.8 - 1))
    assert "would have to be -116.7" in ours["same"].why


def test_the_gather_is_right_where_a_ring_of_sets_ends_whole():
    def whole(size):
        held = run_ring(size, printed_gather_rounds)
        return all(block == set(range(size)) for rank in held for block in rank)

    right = [size for size in GPUS if whole(size)]
    gather = found()["gather"]
    assert gather.difference == 2 * len(right) - len(GPUS)
    assert f"right for {right}" in gather.why
    assert gather.verdict == NOT


def test_traffic_is_less_than_a_central_servers_and_that_of_one_on_a_worker():
    ours = found()
    assert (ours["total"].difference, ours["total"].verdict) == (2 * 8 - 2 * 7, REPRODUCED)
    assert (ours["worker"].difference, ours["worker"].verdict) == (0, NOT)
    assert ours["busiest"].difference == pytest.approx(16 - 2 * 7 / 8)


OURS = ("our_seconds", "our_lead", "our_t2", "our_t1", "our_negative")


def test_without_runs_claims_about_them_stay_open():
    assert {found()[key].verdict for key in OURS} == {UNKNOWN}


def timed(exchange, ranks, seconds, repeats=(0.99, 1.0, 1.01), t1=None, t2=None):
    return [
        Run(exchange=exchange, ranks=ranks, seconds=seconds * each, t1=t1 and t1 * each, t2=t2)
        for each in repeats
    ]


def test_our_runs_are_judged_by_welchs_interval():
    ours = found(
        [
            *timed("ring", 2, 50, t1=40.0, t2=4.0),
            *timed("ps", 2, 51, t1=40.0, t2=8.0),
            *timed("ring", 4, 30, t1=20.5, t2=5.0),
            *timed("ps", 4, 40, t1=20.0, t2=15.0),
            *timed("none", 1, 90, t1=81.0),
        ]
    )
    faster = ours["our_seconds"]
    assert faster.difference == pytest.approx(100 * np.log(40 / 30))
    # three repeats 1 % apart each: 4 degrees of freedom
    half = 2.7764451 * np.sqrt(2 * np.var(100 * np.log([0.99, 1, 1.01]), ddof=1) / 3)
    assert faster.high - faster.difference == pytest.approx(half, rel=1e-6)
    assert ours["our_lead"].difference == pytest.approx(100 * np.log(40 / 30 / (51 / 50)))
    assert ours["our_t2"].difference == pytest.approx(100 * np.log(15 / 5))
    assert ours["our_t1"].difference == pytest.approx(10 - 100 * np.log(4 * 20.5 / 81))
    assert {ours[key].verdict for key in OURS[:4]} == {REPRODUCED}
    assert "three numbers of ranks" in ours["our_negative"].why


def test_what_the_default_ranks_cannot_show_names_the_ranks_that_can():
    """`scaling.ranks` is [1, 2]: no order over ranks, and no fit of three numbers."""
    ours = found([*timed("ring", 2, 50), *timed("ps", 2, 51), *timed("none", 1, 90)])
    for key, ranks in (("our_lead", [1, 2, 4]), ("our_negative", [1, 2, 3, 4])):
        assert ours[key].verdict == UNKNOWN
        assert f"scaling.ranks: {ranks}" in ours[key].why
        with_them = [
            run
            for n in ranks[1:]
            for run in [*timed("ring", n, 50 / n + n**0.5), *timed("ps", n, 60 / n + n)]
        ]
        assert not np.isnan(found(with_them)[key].low)


def test_one_run_of_each_tells_nothing():
    one = found(timed("ring", 2, 5, (1,)) + timed("ps", 2, 6, (1,)))["our_seconds"]
    assert (one.verdict, one.why) == (UNKNOWN, "One run of each says nothing about the next.")


def test_equation_1_on_runs_of_a_ring_finds_what_falls_with_every_rank():
    rng = np.random.default_rng(1)
    runs = [
        Run(exchange="ring", ranks=n, seconds=seconds - 20 * n + rng.normal(0, 1))
        for n, seconds in zip(GPUS, RING, strict=True)
        for _ in range(3)
    ]
    negative = found(runs)["our_negative"]
    assert negative.low < 20 < negative.high
    assert negative.verdict == REPRODUCED


def test_the_command_writes_both_forms(tmp_path):
    run_step("ring", "claims", *outputs(tmp_path, "c"))
    rows = read_tsv(tmp_path / "c.tsv")
    assert len(rows) == len(found())
    assert rows[0]["difference"] == rows[0]["difference_low"] == "-50.1"
    assert {row["verdict"] for row in rows} == set(VERDICTS)
    assert all(row["source"].startswith("000, ") for row in rows)
    assert len(cells(tmp_path / "c.md")) == 2 + len(rows)
    page = (tmp_path / "c.md").read_text()
    assert page.startswith("Claims of paper 000 on our data: 5 reproduced, 7 not reproduced, 8 not")
