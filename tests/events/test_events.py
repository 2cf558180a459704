"""Time budgets, tables by frame and agreement, against closed forms and worked examples."""

import csv
import io
import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actionspan.annotations.tables import Instance
from actionspan.cli import main
from actionspan.events.agree import agreements, cohens_kappa, paired
from actionspan.events.budget import budget
from actionspan.events.frames import rows
from actionspan.events.reading import Observed, joined, overlap


def observed(*segments, seconds=60.0, rate=10.0, name="a"):
    instances = tuple(Instance(start=start, end=end, label=label) for start, end, label in segments)
    return Observed(video_id=name, seconds=seconds, rate=rate, instances=instances)


spans = st.lists(
    st.tuples(st.integers(0, 590), st.integers(1, 100)).map(
        lambda pair: (pair[0] / 10, min((pair[0] + pair[1]) / 10, 60.0))
    ),
    max_size=6,
)


@given(spans)
def test_the_union_of_spans_covers_what_they_cover(given):
    times = np.arange(0.05, 60, 0.1)
    wanted = np.zeros(len(times), bool)
    for start, end in given:
        wanted |= (times > start) & (times < end)
    union = joined(given)
    assert overlap(union, 0, 60) == pytest.approx(0.1 * wanted.sum())
    assert (union[1:, 0] > union[:-1, 1]).all()


def test_a_time_budget_by_hand():
    video = observed((0, 10, "eat"), (5, 15, "eat"), (50, 60, "eat"), (20, 22, "sleep"))
    eat, sleep = budget([video])
    assert (eat.count, eat.total_seconds, eat.mean_seconds) == (3, 25, 10)
    assert (eat.per_minute, eat.share) == (3, pytest.approx(25 / 60))
    assert (sleep.count, sleep.total_seconds, sleep.per_minute) == (1, 2, 1)


def test_bins_add_up_and_the_last_is_shorter():
    video = observed((8, 14, "eat"), (24.9, 25, "eat"), seconds=25.0)
    found = list(budget([video], 10))
    assert [(row.bin_start, row.bin_end) for row in found] == [(0, 10), (10, 20), (20, 25)]
    assert [row.count for row in found] == [1, 0, 1]
    assert [row.total_seconds for row in found] == pytest.approx([2, 4, 0.1])
    assert found[2].per_minute == pytest.approx(12)
    assert found[1].mean_seconds is None


def test_a_label_that_a_video_lacks_is_a_row_of_zeros():
    both = [observed((0, 1, "eat")), observed(name="b")]
    assert [(row.video, row.count) for row in budget(both)] == [("a", 1), ("b", 0)]


def test_frames_and_bins_are_inside_from_their_start_to_before_the_end_or_for_half():
    times, applies = rows(observed((0.2, 0.5, "eat"), seconds=1.0), ["eat", "sleep"], None)
    assert times.tolist() == pytest.approx([k / 10 for k in range(10)])
    assert applies[:, 0].tolist() == [0, 0, 1, 1, 1, 0, 0, 0, 0, 0]
    assert not applies[:, 1].any()
    _, applies = rows(observed((0.5, 2.4, "eat"), seconds=3.5), ["eat"], 1.0)
    assert applies[:, 0].tolist() == [1, 1, 0, 0]


def test_kappa_of_cohens_definition():
    # 20 both yes, 5 first alone, 10 second alone, 15 neither: the usual worked example, 0.4
    assert cohens_kappa(35 / 50, 25 / 50, 30 / 50) == pytest.approx(0.4)
    assert cohens_kappa(1, 0, 0) is None


labels = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 6), st.sampled_from(["eat", "sleep", ""])),
    max_size=4,
).map(lambda rows: [(start, start + length, label) for start, length, label in rows])


@given(labels, labels)
@example([(0, 10, ""), (3, 13, "")], [(2, 12, ""), (6, 16, "")])  # the closest leaves one pair
def test_agreement_is_that_of_samples_about_each_label_and_any(first, second):
    found = agreements([(observed(*first, seconds=20.0), observed(*second, seconds=20.0))])
    names = {label for own in (first, second) for *_, label in own}
    bare = any(own and {label for *_, label in own} == {""} for own in (first, second))
    assert [each.label for each in found] == [*sorted(names - {""}) * (not bare), None]

    def tiou(one, other):
        shared = set(range(*one[:2])) & set(range(*other[:2]))
        return len(shared) / len(set(range(*one[:2])) | set(range(*other[:2])))

    for each in found:
        mine, theirs = (
            [row for row in own if each.label in (None, row[2])] for own in (first, second)
        )
        yes = [[any(a <= t < b for a, b, _ in own) for t in range(20)] for own in (mine, theirs)]
        agreed = sum(a == b for a, b in zip(*yes, strict=True)) / 20
        kappa = cohens_kappa(agreed, sum(yes[0]) / 20, sum(yes[1]) / 20)
        assert each.agreed == pytest.approx(agreed)
        assert each.kappa == (None if kappa is None else pytest.approx(kappa))
        few, many = sorted((mine, theirs), key=len)
        ways = ([tiou(*pair) for pair in zip(few, way, strict=False)] for way in permutations(many))
        best = max(sum(each >= 0.5 for each in way) for way in ways)
        assert (each.first, each.second, each.matched) == (len(mine), len(theirs), best)


def test_only_videos_of_both_are_compared():
    one, two = observed(name="a"), observed(name="b", seconds=0.0)
    assert paired([one], [two]) == []
    known = paired([two], [observed((0, 1, "eat"), name="b", seconds=9.0)])
    assert known[0][0].seconds == 9.0


@pytest.fixture
def table(tmp_path):
    def table(name, *lines, header="video,start,end,label,seconds"):
        path = tmp_path / name
        path.write_text("\n".join([header, *lines]) + "\n")
        return path

    return table


def test_the_commands_print_what_they_find(table, capsys):
    first = table("a.csv", "film,1,3,eat,10", "film,5,6,sleep,10")
    second = table("b.csv", "film,1,3,eat,10")
    assert main(["budget", str(first), "--bin", "5"]) == 0
    found = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["total_seconds"] for row in found] == ["2", "0", "0", "1"]
    assert main(["agree", str(first), str(second), "--json"]) == 0
    eat, sleep, any_label = json.loads(capsys.readouterr().out)
    assert (eat["kappa"], eat["matched"]) == (1, 1)
    assert (sleep["kappa"], sleep["first"], sleep["second"]) == (0, 1, 0)
    assert (any_label["label"], any_label["first"], any_label["matched"]) == (None, 2, 1)


MOUSE = "video,start,end,label,status"  # corrections.csv: what is drawn by mouse has no label


def agree(capsys, *words):
    """Return the rows that `agree` prints, by label, and its lines on standard error."""
    assert main(["agree", *map(str, words), "--json"]) == 0
    shown = capsys.readouterr()
    return {row["label"]: row for row in json.loads(shown.out)}, shown.err.splitlines()


def test_events_without_a_label_are_compared_as_such(table, tmp_path, capsys):
    first = table("a.csv", "film,1,3,action,10", "film,5,6,sleep,10")
    mouse = ["film,1,3,,added", "film,5,6,,added"]
    rows, said = agree(capsys, first, table("b.csv", *mouse, header=MOUSE))
    assert list(rows) == [None]  # not a label `action` that one has twice
    assert (rows[None]["kappa"], rows[None]["matched"]) == (1, 2)
    assert [line.partition("b.csv: ")[2] for line in said] == [
        "2 of 2 events without a label: compared as 'any label' alone"
    ]
    # some of them: what has a label is compared by it, and a label may well be `action`
    some = table("c.csv", mouse[1], "film,1,3,action,added", header=MOUSE)
    rows, said = agree(capsys, first, some)
    assert [rows[label]["matched"] for label in ("action", "sleep", None)] == [1, 0, 2]
    assert "c.csv: 1 of 2 events without a label" in said[0]
    # so are proposals
    (tmp_path / "f.json").write_text('{"results": {"film": [{"segment": [1, 3], "score": 0.5}]}}')
    rows, said = agree(capsys, first, tmp_path / "f.json")
    assert list(rows) == [None]
    assert "f.json: 1 of 1 event without a label" in said[0]
    # neither side has labels: nothing to say
    found = "video_id,rank,start_seconds,end_seconds,score,duration"
    rows, said = agree(capsys, *[table(name, "film,1,1,3,0.5,9", header=found) for name in "de"])
    assert (list(rows), said) == ([None], [])


def test_labels_that_have_none_in_common_are_named(table, capsys):
    first = table("a.csv", "film,1,3,eat,10", "film,5,6,sleep,10")
    rows, (line,) = agree(capsys, first, table("b.csv", "film,1,3,fressen,10"))
    assert [rows[label]["kappa"] for label in ("eat", "sleep", "fressen")] == [0, 0, 0]
    assert rows[None]["matched"] == 1
    assert line.startswith("no label is in both, so compare 'any label': ['eat', 'sleep'] in ")
    assert "['fressen'] in " in line
    assert main(["agree", str(first), str(first)]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1].endswith("  any label")
    assert shown.err == ""


def test_tables_and_a_chart_are_written(table, tmp_path):
    first = table("a.csv", "film,1,3,=eat,10", "film,5,6,sleep,10")
    out = tmp_path / "frames"
    assert main(["frames", str(first), "--bin", "2", "--out", str(out)]) == 0
    lines = (out / "film.csv").read_text().splitlines()
    assert lines[0] == "bin,seconds,'=eat,sleep"
    assert lines[1:3] == ["0,0.0000,1,0", "1,2.0000,1,0"]
    for more in ([], ["--bin", "2"]):
        chart = tmp_path / f"chart{len(more)}.svg"
        words = ["budget", str(first), "--out", str(tmp_path / "b.csv"), "--chart", str(chart)]
        assert main([*words, *more]) == 0
        assert "sleep" in chart.read_text()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["budget", "a.csv"], "the duration of film is not known"),
        (["frames", "b.csv"], "the frame rate of film is not known"),
        (["budget", "b.csv", "--bin", "0"], "--bin 0.0: above 0 seconds"),
        (["agree", "b.csv", "c.csv"], "names no video of"),
        (["clips", "b.csv", "--videos", "."], "no event of a video in"),
        (["clips", "b.csv", "--videos", ".", "--around", "-1"], "--around -1.0: 0 seconds"),
    ],
)
def test_what_is_missing_is_one_line(table, tmp_path, monkeypatch, capsys, words, line):
    monkeypatch.chdir(tmp_path)
    table("a.csv", "film,1,3,eat", header="video,start,end,label")
    table("b.csv", "film,1,3,eat,10")
    table("c.csv", "other,1,3,eat,10")
    assert main(words) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert line in said
