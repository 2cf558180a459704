"""What a reader gets of a list: by hand, by slow loops, and by the command."""

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from actionspan.annotations.tables import Instance, write_annotations
from actionspan.errors import InputError
from actionspan.evaluation.operating import operating_points
from actionspan.evaluation.reader import NUMBERS, judge_list, repeats
from actionspan.evaluation.recall import tiou
from actionspan.evaluation.summary import found_markdown
from actionspan.proposals.selection import right_events
from worlds.command import actionspan
from worlds.scored import annotated, write_results

video = partial(annotated, duration=40.0)

# `a`: found, found again, wrong, found; `calm` has no instance, `silent` no list.
ANNOTATIONS = [video("a", (0, 10), (20, 30)), video("calm"), video("silent", (0, 5), (6, 9))]
LISTS = {
    "a": [(20, 29, 0.4), (0, 10, 0.9), (1, 10, 0.8), (12, 15, 0.5)],  # not in order
    "calm": [(3, 4, 0.6)],
    "elsewhere": [(0, 1, 1.0)],
}


def shares(right, given, instances, **more):
    return {"precision": right / given if given else None, "recall": right / instances, **more}


def test_figures_by_hand():
    judged = judge_list(ANNOTATIONS, LISTS)
    assert judged["videos_without"] == 1
    assert judged["per_video"] == pytest.approx(5 / 3)
    assert judged | shares(right=2, given=5, instances=4) == judged
    assert judged["first"] == {
        # two videos have two instances, of which a single event of each finds one
        "1": shares(right=1, given=2, instances=4, most=0.5),
        "3": shares(right=1, given=4, instances=4, most=1),
        "5": shares(right=2, given=5, instances=4, most=1),
        "10": shares(right=2, given=5, instances=4, most=1),
    }
    # the first two of `a` find one instance
    assert judged["as_many"] == 1 / 4
    assert judged["end_errors"] == {"start": 0, "end": 0.5}  # (20, 29) and (0, 10)
    assert judged["repeats"] == pytest.approx(1 / 3)  # ranks 2, 3, 4 of `a`
    # five bins of an event: (score, right) = (.4, 1) (.5, 0) (.6, 0) (.8, 0) (.9, 1)
    assert [row["right"] for row in judged["reliability"]] == [1, 0, 0, 0, 1]
    assert judged["calibration_error"] == pytest.approx((0.6 + 0.5 + 0.6 + 0.8 + 0.1) / 5)
    # of six pairs of a right and a wrong one, .9 has the higher score in three, .4 in none
    assert judged["ranking"] == pytest.approx(3 / 6)


def test_nothing_shown_has_no_precision_and_finds_nothing():
    judged = judge_list(ANNOTATIONS, {"calm": []})
    none = dict.fromkeys(("precision", "repeats", "calibration_error", "ranking"))
    none |= {"videos_without": 3, "per_video": 0, "as_many": 0, "reliability": []}
    assert judged | none | {"end_errors": {"start": None, "end": None}} == judged
    assert judged["first"]["5"]["recall"] == 0


def test_scores_beyond_1_are_no_chance_but_rank_and_equal_ones_do_not():
    judged = judge_list(ANNOTATIONS, {"a": [(0, 10, 7.0), (12, 14, 3.0)]})
    assert (judged["calibration_error"], judged["ranking"]) == (None, 1)
    assert judged["first"]["1"]["precision"] == 1
    assert judge_list(ANNOTATIONS, {"a": [(0, 10, 0.7)]})["ranking"] is None, "all are right"
    assert judge_list(ANNOTATIONS, {"a": [(0, 10, 0.7), (12, 14, 0.7)]})["ranking"] == 0.5


SEGMENTS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 12)).map(lambda row: (row[0], row[0] + row[1])),
    max_size=8,
)
SCORED = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 12), st.floats(0, 1)), max_size=15)


@given(lists=st.tuples(SCORED, SCORED), instances=SEGMENTS)
def test_properties_of_any_lists(lists, instances):
    rows = {
        name: [(start, start + length, score) for start, length, score in one]
        for name, one in zip("ab", lists, strict=True)
    }
    annotations = [video("a", *instances), video("b", (0, 5))]
    total, given = len(instances) + 1, sum(map(len, lists))
    judged = judge_list(annotations, rows)
    right = [round(one["recall"] * total) for one in (*judged["first"].values(), judged)]
    # more events find no fewer instances, and all those that are given find most
    assert right == sorted(right)
    assert right[-1] <= min(given, total)
    assert judged | shares(right[-1], given, total) == judged
    for number, hits in zip(NUMBERS, right, strict=False):
        few = sum(min(number, len(each)) for each in lists)
        first = judged["first"][str(number)]
        assert first == shares(hits, few, total, most=first["most"])
        assert hits <= min(number, len(instances)) + 1 == round(first["most"] * total)
        if number == len(instances):  # of `a`; `b` has one
            assert round(judged["as_many"] * total) <= hits
    # the bins hold every event once; those that are right are the ones counted
    bins = judged["reliability"]
    assert sum(row["events"] for row in bins) == given
    assert sum(row["events"] * row["right"] for row in bins) == pytest.approx(right[-1])
    if judged["calibration_error"] is not None:
        assert 0 <= judged["calibration_error"] <= 1


@given(events=SEGMENTS.filter(len), instances=SEGMENTS.filter(len))
def test_right_is_what_the_chance_of_events_is_fitted_to(events, instances):
    """The evaluation matches by itself; of equal tIoU it takes the later instance."""
    rows, truth = np.array(events, float), np.array(instances, float)
    for row in tiou(truth, rows).T:
        near = row[row >= 0.5]
        assume(len(set(near)) == len(near))
    lists = {"a": [(*row, 1 - place / 100) for place, row in enumerate(events)]}
    for number in NUMBERS:
        judged = judge_list([video("a", *instances)], lists)["first"][str(number)]
        assert judged["recall"] == right_events(rows, truth)[:number].sum() / len(instances)


@given(events=SEGMENTS)
def test_a_repeat_shares_more_than_half_of_the_shorter_with_any_better_event(events):
    expected = [
        any(
            min(end, other[1]) - max(start, other[0]) > (min(end - start, other[1] - other[0])) / 2
            for other in events[:place]
        )
        for place, (start, end) in enumerate(events)
    ]
    assert repeats(np.array(events, float).reshape(-1, 2)).tolist() == expected


@pytest.fixture
def judge(tmp_path):
    """The command on these files; it returns its status."""
    training = video("seen", (0, 9), subset="training")
    write_annotations(tmp_path / "annotations.json", [*ANNOTATIONS, training])

    def run(proposals, *flags, events=None, subset="validation"):
        words = ["evaluation", "reader", "--annotations", tmp_path / "annotations.json"]
        for name, lists in (("proposals", proposals), ("events", events)):
            if lists is None:
                words.append(f"--{name}")  # as the workflow does where there are none
                continue
            words += [f"--{name}", write_results(tmp_path / f"{name}.json", lists)]
        words += ["--method", "span", "--subset", subset, *flags]
        words += ["--out-json", tmp_path / "out.json", "--out-markdown", tmp_path / "out.md"]
        return actionspan(*words)

    return run


def test_without_events_the_chapters_are_the_readers_list(judge, tmp_path):
    assert judge(LISTS, "--share=0") == 0
    record = json.loads((tmp_path / "out.json").read_text())
    assert (record["method"], record["subset"]) == ("span", "validation")
    assert (record["videos"], record["instances"]) == (3, 4)
    assert list(record["lists"]) == ["chapters", "proposals"]
    chapters, proposals = record["lists"].values()
    assert (chapters["precision"], proposals["precision"]) == (0.5, 0.4)  # (1, 10) is no chapter
    assert (chapters["repeats"], proposals["repeats"]) == (0, pytest.approx(1 / 3))
    assert chapters["first"]["3"] == {"precision": 0.5, "recall": 0.5, "most": 1}
    assert proposals["first"]["3"] == {"precision": 0.25, "recall": 0.25, "most": 1}
    assert (chapters["per_video"], chapters["videos_without"]) == (pytest.approx(4 / 3), 1)
    page = (tmp_path / "out.md").read_text()
    assert (
        "| proposals | 1.7 | 40.0 | 50.0 | 25.0 | 0.00 / 0.50 | 50.0 / 25.0 | 25.0 / 25.0 "
        "| 40.0 / 50.0 | 40.0 / 50.0 | 33.3 |" in page
    )
    assert "the first 1 / 3 / 5 / 10 find 50.0 / 100.0 / 100.0 / 100.0 % at most." in page
    assert "% of the pairs of 2 right and 2 wrong ones" in page.replace("**", "")
    assert "## The score of the chapters" in page


def test_events_come_first_and_chapters_are_made_of_them(judge, tmp_path):
    events = {"a": [(0, 9, 0.75), (8, 30, 0.5), (20, 30, 0.25)], "calm": []}
    assert judge(LISTS, "--share=0.3", events=events) == 0
    record = json.loads((tmp_path / "out.json").read_text())
    assert list(record["lists"]) == ["events", "chapters", "proposals"]
    shown, chapters, _ = record["lists"].values()
    assert (shown["per_video"], chapters["per_video"]) == (1, pytest.approx(2 / 3))
    assert shown["precision"] == pytest.approx(2 / 3)
    assert chapters["precision"] == 1
    assert shown["calibration_error"] == pytest.approx((0.25 + 0.5 + 0.75) / 3)
    # a chance p that is exact is off by 2 p (1 - p) on average where an event is a bin of its own
    luck = (0.375 + 0.5 + 0.375) / 3
    assert shown["calibration_error_of_exact_scores"] == pytest.approx(luck, abs=0.02)
    assert shown["reliability"][0] == {
        **{"lowest": 0.25, "highest": 0.25, "events": 1, "mean_score": 0.25, "right": 1.0}
    }
    page = (tmp_path / "out.md").read_text()
    assert "off by **0.500**" in page
    assert "so few events would be off by 0.4" in page
    pairs = "**50.0 %** of the pairs of 2 right and 1 wrong ones"
    assert f"higher score than a wrong one in {pairs}" in page
    assert "| 0.75 – 0.75 | 1 | 0.75 | 100.0 % |" in page


def test_what_is_found_is_said_in_plain_numbers(judge, tmp_path, capsys):
    events = {"a": [(0, 9, 0.75), (8, 30, 0.5), (20, 30, 0.25)], "calm": []}
    assert judge(LISTS, events=events) == 0
    found = found_markdown([tmp_path / "out.json"]).splitlines()
    assert found[-1] == "| span | 3 | 2 of 4 | 1 of 4 | 1 of 3 |"
    (tmp_path / "other.json").write_text('{"method": "span", "lists": []}')
    with pytest.raises(InputError, match="other.json: not a record of `evaluation reader`"):
        found_markdown([tmp_path / "other.json"])


def test_a_bar_that_nothing_reaches_leaves_a_page(judge, tmp_path):
    assert judge(LISTS, events={"a": [], "calm": [], "silent": []}) == 0
    page = (tmp_path / "out.md").read_text()
    assert "| events | 0.0 | – | 0.0 | 0.0 | – / – | – / 0.0 |" in page
    assert page.endswith("Nothing is shown.\n")


@pytest.mark.parametrize(
    ("lists", "subset", "line"),
    [
        (LISTS, "testing", "annotations.json: subset 'testing' has no instance to find"),
        ({"elsewhere": [(0, 1, 1.0)]}, "validation", "proposals.json: none of its videos"),
    ],
)
def test_what_cannot_be_judged_is_one_line(judge, tmp_path, refused, lists, subset, line):
    assert line in refused(judge(lists, subset=subset))
    assert not (tmp_path / "out.json").exists()


def test_two_names_of_one_video_in_the_events_are_one_line(judge, tmp_path, refused):
    write_annotations(tmp_path / "annotations.json", [video("v_a", (0, 10))])
    line = refused(judge(LISTS, events={"a": [(0, 1, 0.5)], "v_v_a": []}))
    assert "events.json" in line
    assert "'a' and 'v_v_a' mean one video; keep one" in line


# ---- precision and recall from a chance on ----


def event(start, score, label=""):
    return {"segment": [start, start + 1.0], "score": score, **({"label": label} if label else {})}


def instance(start, label="a"):
    return Instance(start=start, end=start + 1.0, label=label)


def test_by_hand():
    events = {
        "one": [event(0, 0.9, "a"), event(5, 0.6, "a"), event(8, 0.6, "b")],
        "two": [event(0, 0.3, "a"), event(0.1, 0.2, "a"), event(4, 0.1, "b")],
        "not annotated": [event(0, 0.99, "a")],
    }
    truth = {"one": [instance(0), instance(8)], "two": [instance(0), instance(4, "b")]}
    points = operating_points(events, truth)
    assert points == {
        "a": [
            (0.9, 1.0, pytest.approx(1 / 3, abs=1e-4)),
            (0.6, 0.5, pytest.approx(1 / 3, abs=1e-4)),
            (0.3, pytest.approx(2 / 3, abs=1e-4), pytest.approx(2 / 3, abs=1e-4)),
            (0.2, 0.5, pytest.approx(2 / 3, abs=1e-4)),  # the same instance a second time
        ],
        "b": [(0.6, 0.0, 0.0), (0.1, 0.5, 1.0)],  # at 8 s it is an "a"
    }
    truth = {"one": [instance(0), instance(5)]}
    for label in ("", "a"):  # one label is no label
        points = operating_points({"one": [event(0, 0.5, label)]}, truth)
        assert points == {"": [(0.5, 1.0, 0.5)]}
    assert operating_points({"one": []}, truth) == {}
    assert operating_points({"one": [event(0, 0.5)]}, {"one": []}) == {}
    # many are thinned, but the ends stay
    events = {"one": [event(2.0 * k, 0.9 - k / 1000) for k in range(300)]}
    (many,) = operating_points(events, {"one": [instance(0)]}).values()
    assert len(many) == 50
    assert (many[0].chance, many[-1].chance) == (0.9, 0.601)


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.7]), st.booleans()), min_size=1))
def test_points_are_what_counting_gives(rows):
    """Each event is alone, so it is right or not whatever its rank."""
    if not any(right for _, right in rows):
        return
    events = {"v": [event(2.0 * place, chance) for place, (chance, _) in enumerate(rows)]}
    truth = {"v": [instance(2.0 * place) for place, (_, right) in enumerate(rows) if right]}
    (points,) = operating_points(events, truth).values()
    expected = []
    for bar in sorted({chance for chance, _ in rows}, reverse=True):
        shown = [right for chance, right in rows if chance >= bar]
        expected.append((bar, sum(shown) / len(shown), sum(shown) / sum(r for _, r in rows)))
    assert np.allclose(points, expected, atol=1e-4)
