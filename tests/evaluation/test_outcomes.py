"""What is missed: counts by hand, bins that partition the instances, the record's sums."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.tables import write_annotations
from actionspan.evaluation import average_recall_activitynet
from actionspan.evaluation.misses import (
    CHARACTERISTICS,
    INSTANCE_COLUMNS,
    break_down,
    characteristic_values,
    instance_outcomes,
    instance_rows,
)
from actionspan.evaluation.recall import MISSES_THRESHOLDS
from actionspan.report.figures.methods import draw_misses
from actionspan.storage.writing import read_tsv
from tiers import examples
from worlds.command import actionspan
from worlds.scored import annotated, write_results


def video(name, duration, *segments, subset="validation"):
    named = ((*ends, f"class {number}") for number, ends in enumerate(segments))
    return annotated(name, *named, duration=duration, subset=subset)


# Two videos by hand. `a`, 100 s: (0, 10) is found whole, (40, 50) at tIoU 0.8, (90, 91) not.
# `b`, 10 s: (2, 7) at tIoU exactly 0.5, and nothing else is proposed.
ANNOTATIONS = [video("a", 100.0, (0, 10), (40, 50), (90, 91)), video("b", 10.0, (2, 7))]
PROPOSALS = {
    "a": [(0, 10, 0.9), (60, 70, 0.8), (42, 50, 0.5), (41, 43, 0.1)],
    "b": [(2, 4.5, 0.7), (8, 9, 0.6), (8, 9, 0.5), (8, 9, 0.4)],
}


@pytest.fixture
def outcomes():
    return instance_outcomes(ANNOTATIONS, PROPOSALS)


def by_label(bins, characteristic):
    return {row.label: row for row in bins if row.characteristic == characteristic}


def test_counts_by_hand(outcomes):
    bins = break_down(outcomes)
    everything = bins[0]
    assert (everything.label, everything.instances) == ("all", 4)
    assert everything.found == (3, 2, 1)
    assert everything.missed == (1, 2, 3)
    assert everything.misses_share == (1, 1, 1)
    # tIoU 1, 0.8 (0.5 … 0.8: 7 thresholds of 10), 0.5 (one threshold), 0
    assert everything.average_recall == pytest.approx((10 + 7 + 1 + 0) / 40)
    filled = {
        kind.name: {label: row.instances for label, row in rows.items() if row.instances}
        for kind in CHARACTERISTICS
        if (rows := by_label(bins, kind.name))
    }
    assert filled == {
        "coverage": {"≤ 2%": 1, "8–20%": 2, "40–60%": 1},
        "length": {"≤ 3": 1, "3–6": 1, "6–12": 2},
        "position": {"0–20%": 1, "40–60%": 2, "80–100%": 1},
        "instances": {"1": 1, "2–4": 3},
    }
    coverage = by_label(bins, "coverage")
    assert coverage["≤ 2%"].missed == (1, 1, 1)
    assert coverage["≤ 2%"].misses_share == (1, 1 / 2, 1 / 3)
    assert coverage["≤ 2%"].average_recall == 0
    assert coverage["8–20%"].found == (2, 2, 1)
    assert coverage["8–20%"].misses_share == (0, 0, 1 / 3)
    assert coverage["8–20%"].average_recall == pytest.approx(17 / 20)
    assert coverage["40–60%"].found == (1, 0, 0)
    empty = by_label(bins, "instances")["> 80"]
    assert (empty.instances, empty.found, empty.missed) == (0, (0, 0, 0), (0, 0, 0))
    assert empty.average_recall is None
    assert empty.misses_share == (0, 0, 0)


def test_nothing_missed_has_no_shares():
    perfect = {"b": [(2, 7, 1.0)]}
    bins = break_down(instance_outcomes([video("b", 10.0, (2, 7))], perfect))
    assert all(row.misses_share == (None, None, None) for row in bins)


def test_the_bins_of_the_diagnosis_for_either_data_set_are_sums_of_ours():
    edges = {kind.name: set(kind.edges) for kind in CHARACTERISTICS}
    for name, activitynet, thumos14 in (
        ("coverage", {0.2, 0.4, 0.6, 0.8}, {0.02, 0.04, 0.06, 0.08}),
        ("length", {30, 60, 120, 180}, {3, 6, 12, 18}),
        ("instances", {1, 4, 8}, {1, 40, 80}),
    ):
        assert activitynet | thumos14 <= edges[name]


def test_what_lies_outside_its_video_is_in_the_outer_bins():
    bins = break_down(instance_outcomes([video("a", 10.0, (12, 40), (-9, -1))], {}))
    for kind, labels in (("coverage", ("> 80%", "60–80%")), ("position", ("80–100%", "0–20%"))):
        assert [by_label(bins, kind)[label].instances for label in labels] == [1, 1]


def test_the_best_proposal_of_each_instance_is_named_the_least_found_first(outcomes):
    rows = [dict(zip(INSTANCE_COLUMNS, row, strict=True)) for row in instance_rows(outcomes)]
    assert [(row["video_id"], row["start"]) for row in rows] == [
        ("a", 90), ("b", 2), ("a", 40), ("a", 0),
    ]  # fmt: skip
    assert [row["best_tiou@100"] for row in rows] == [0, 0.5, 0.8, 1]
    assert [row["best_rank"] for row in rows] == [None, 1, 3, 1]
    assert (rows[0]["best_start"], rows[0]["best_end"]) == (None, None)
    assert (rows[2]["best_start"], rows[2]["best_end"], rows[2]["label"]) == (42, 50, "class 1")


def test_proposals_that_are_missing_or_beyond_the_budget_of_100_find_nothing():
    outcomes = instance_outcomes(ANNOTATIONS, {"a": PROPOSALS["a"], "b": []})
    assert outcomes.best_ranks.tolist() == [1, 3, 0, 0]
    assert break_down(outcomes)[0].missed == (2, 2, 3)
    assert break_down(instance_outcomes(ANNOTATIONS, {}))[0].missed == (4, 4, 4)
    # 150 of one video: the best come last, and only the first 100 count
    rows = [(50.0, 60.0, 1 - number / 200) for number in range(149)] + [(2.0, 7.0, 0.0)]
    outcomes = instance_outcomes([video("b", 100.0, (2, 7))], {"b": rows})
    assert outcomes.best_ranks.tolist() == [0]
    assert not outcomes.found.any()


times = st.integers(0, 160).map(lambda ticks: ticks / 16)
segments = st.tuples(times, times).map(lambda pair: tuple(sorted(pair)))
scored = st.tuples(segments, st.sampled_from([0.0, 0.25, 0.5, 1.0])).map(lambda x: (*x[0], x[1]))


@st.composite
def problems(draw):
    number = draw(st.integers(1, 5))
    videos = [
        video(f"v_{row}", draw(st.sampled_from([5.0, 10.0, 400.0])), *draw(st.lists(segments)))
        for row in range(number)
    ]
    videos.append(video("last", 10.0, (1.0, 3.0)))
    proposals = {f"{row}": draw(st.lists(scored, max_size=12)) for row in range(number)}
    return videos, {**proposals, "elsewhere": [(0.0, 1.0, 1.0)]}


@examples(60)
@given(problems())
def test_every_characteristic_sorts_each_instance_once_and_sums_to_the_record(problem):
    videos, proposals = problem
    outcomes = instance_outcomes(videos, proposals)
    truth = {
        known.video_id: [(item.start, item.end) for item in known.instances] for known in videos
    }
    record = average_recall_activitynet(truth, proposals)
    bins = break_down(outcomes)
    total = int(record.instances.sum())
    assert MISSES_THRESHOLDS.tolist() == pytest.approx([0.5, 0.7, 0.9], abs=1e-12)
    for kind in CHARACTERISTICS:
        rows = [row for row in bins if row.characteristic == kind.name]
        assert [row.label for row in rows] == list(kind.labels)
        assert sum(row.instances for row in rows) == total == bins[0].instances
        for column, threshold in enumerate((0, 4, 8)):
            found = sum(row.found[column] for row in rows)
            assert found == round(float(record.recall[threshold, -1]) * total)
            missed = sum(row.missed[column] for row in rows)
            assert found + missed == total
            shares = [row.misses_share[column] for row in rows]
            assert sum(shares) == pytest.approx(1) if missed else shares == [None] * len(rows)
        weighted = sum(row.instances * (row.average_recall or 0) for row in rows) / total
        assert weighted == pytest.approx(record.at(100), abs=1e-12)
        values = characteristic_values(outcomes)[kind.name]
        for row in rows:
            inside = np.ones(total, dtype=bool)
            inside &= True if row.above is None else values > row.above
            inside &= True if row.up_to is None else values <= row.up_to
            assert inside.sum() == row.instances


@examples(60)
@given(problems())
def test_the_best_proposal_has_the_tiou_that_the_protocol_says(problem):
    videos, proposals = problem
    outcomes = instance_outcomes(videos, proposals)
    for row, instance in enumerate(outcomes.instances):
        best = float(outcomes.result.best_tiou[row, -1])
        rank = int(outcomes.best_ranks[row])
        assert (rank > 0) == (best > 0)
        if rank:
            name = outcomes.result.video_ids[outcomes.videos[row]].removeprefix("v_")
            ranked = sorted(proposals[name], key=lambda item: -item[2])
            start, end, _ = ranked[rank - 1]
            assert [start, end] == outcomes.best_segments[row].tolist()
            shared = min(end, instance.end) - max(start, instance.start)
            union = (end - start) + (instance.end - instance.start) - shared
            assert best == pytest.approx(shared / union)


@pytest.fixture
def folder(tmp_path):
    training = video("t", 10.0, (0, 1), subset="training")
    write_annotations(tmp_path / "annotations.json", [training, *ANNOTATIONS])
    write_results(tmp_path / "proposals.json", PROPOSALS)
    return tmp_path


def run(folder, **changes):
    values = {name: folder / f"{name}.json" for name in ("proposals", "annotations")}
    for name, end in (("table", "tsv"), ("instances", "instances.tsv"), ("markdown", "md")):
        values[f"out-{name}"] = folder / f"out/mine.{end}"
    values |= {"out-figure": folder / "out/mine.svg", "method": "mine", **changes}
    words = (word for key, value in values.items() for word in (f"--{key}", value))
    return actionspan("evaluation", "misses", *words)


def test_the_command_writes_four_files_the_same_each_time(folder):
    assert run(folder) == 0
    rows = read_tsv(folder / "out/mine.tsv")
    assert rows[0]["missed@0.5"] == "1"
    assert {row["characteristic"] for row in rows} == {
        "all", "coverage", "length", "position", "instances",
    }  # fmt: skip
    empty = next(row for row in rows if row["instances"] == "0")
    assert empty["AR@100"] == ""
    cells = read_tsv(folder / "out/mine.instances.tsv")
    assert [row["best_tiou@1"] for row in cells] == ["0.0", "0.5", "0.0", "1.0"]
    assert cells[0]["best_start"] == ""
    ET.parse(folder / "out/mine.svg")
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    assert len(before) == 4
    assert run(folder) == 0
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before


def test_the_page_says_what_a_miss_is_and_its_tables_add_up(folder):
    assert run(folder) == 0
    page = (folder / "out/mine.md").read_text()
    assert page.startswith("# What mine misses\n")
    assert "The 4 instances of the 2 videos of subset validation" in page
    assert "Missed: 1 (25.0 %) at tIoU 0.5, 2 (50.0 %) at tIoU 0.7, 3 (75.0 %) at tIoU 0.9" in page
    assert "**≤ 2%**, with 100.0 % of the misses and 25.0 % of the instances" in page
    sections = page.split("## ")[1:]
    assert len(sections) == 4
    for section in sections:
        counts = [int(n) for n in re.findall(r"^\| [^|]+ \| (\d+) \|", section, re.MULTILINE)]
        assert sum(counts) == 4
        widths = {line.count("|") for line in section.splitlines() if line.startswith("|")}
        assert widths == {9}


@pytest.mark.parametrize("proposals", [{}, {"a": [(0, 1, 1)]}, {"b": [(2, 7, 0.5)] * 300}])
def test_every_method_has_a_figure(tmp_path, proposals):
    path = tmp_path / "figure.svg"
    draw_misses(path, break_down(instance_outcomes(ANNOTATIONS, proposals)), "a $x$ & <b>")
    ET.parse(path)


def test_what_is_wrong_is_one_line(folder, refused):
    annotations = folder / "annotations.json"
    assert "subset 'testing' has no instance to find" in refused(run(folder, subset="testing"))
    for wrong, line in (
        (video("a", 0.0, (0, 1)), "'a': duration 0 s; a positive duration is needed"),
        (video("a", 9.0, (3, 1)), "'a', instance 1: start 3 is not before end 1"),
    ):
        write_annotations(annotations, [wrong])
        assert f"annotations.json: video {line}" in refused(run(folder))
    assert not (folder / "out").exists()
