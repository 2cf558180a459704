"""Curves and timelines: the table they come from, the same bytes each time, and odd videos."""

import re
import warnings
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from actionspan.annotations.tables import Instance
from actionspan.errors import InputError
from actionspan.evaluation.records import AR_AGAINST_AN, RECALL_AGAINST_TIOU
from actionspan.report.figures.curves import CURVE_COLUMNS, curve_rows
from actionspan.report.figures.methods import draw_curves
from actionspan.report.figures.timeline_figure import (
    SHADES,
    _clock,
    draw_timeline,
    lanes_of,
    place_names,
    score_texts,
    shortened,
)
from actionspan.storage import figures
from actionspan.storage.figures import spread_labels
from actionspan.storage.writing import read_tsv, write_tsv
from tiers import first_tier


def record(method, level):
    recalls = [level * number / 100 for number in range(1, 101)]
    tious = [f"{tiou / 100:.2f}" for tiou in range(50, 100, 5)]
    return {
        "method": method,
        "videos": 18,
        "AN": list(range(1, 101)),
        "AR": recalls,
        "AR_interval": [[0.9 * each for each in recalls], [1.1 * each for each in recalls]],
        "recall": {tiou: [0.1] * 99 + [level] for tiou in tious},
        "recall@100_interval": {tiou: [level - 0.1, level + 0.1] for tiou in tious},
        "AUC": 50 * level,
        "AUC_interval": [40 * level, 60 * level],
    }


RECORDS = [record("mtn", 0.6), record("random", 0.2)]


def test_the_table_holds_every_point_of_both_kinds(tmp_path):
    path = tmp_path / "recall_curves.tsv"
    write_tsv(path, CURVE_COLUMNS, curve_rows(RECORDS))
    assert path.read_text().startswith("method\tkind\tx\ty\tlow\thigh\tvideos\n")
    rows = read_tsv(path)
    assert len(rows) == 2 * (100 + 10 + 1)
    assert {row["videos"] for row in rows} == {"18"}
    average = [row for row in rows if row["kind"] == AR_AGAINST_AN]
    assert [row["method"] for row in average] == ["mtn"] * 100 + ["random"] * 100
    assert [float(row["x"]) for row in average] == [*range(1, 101)] * 2
    ends = [float(average[49][name]) for name in ("low", "y", "high")]
    assert ends == pytest.approx([0.27, 0.3, 0.33])
    by_tiou = [row for row in rows if row["kind"] == RECALL_AGAINST_TIOU]
    assert [row["y"] for row in by_tiou if row["method"] == "random"] == ["0.2"] * 10


def test_the_legend_names_each_method_with_its_area_and_interval(tmp_path, monkeypatch):
    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")  # text as text
    names = ["origin", "se", "dense", "mtn", "stream", "span", "cnn4", "random", "tag"]
    records = [record(name, (1 + place) / 10) for place, name in enumerate(names)]
    draw_curves(tmp_path / "f.svg", records)
    text = (tmp_path / "f.svg").read_text()
    said = re.findall(r">(\w+)  (\d+\.\d)  \(", text)
    assert [name for name, _ in said] == names[::-1]
    assert ">cnn4  35.0  (28.0–42.0)<" in text
    assert "18 videos" in text
    assert "shaded: cnn4 and span" in text
    lines = re.findall(r'<g id="line2d_\d+">\s+<path d="[^"]{400,}"[^/]*style="([^"]*)"', text)
    looks = {re.sub(r"stroke-(linecap|width): [^;]+;?", "", line) for line in lines}
    assert len(looks) >= len(names) - 1  # the seventh model has the first one's colour, and marks


def test_labels_are_spread_without_changing_their_order():
    placed = spread_labels({"a": 0.5, "b": 0.51, "c": 0.0, "d": 0.9}, 0.1)
    values = sorted(placed.values())
    assert sorted(placed, key=placed.__getitem__) == ["c", "a", "b", "d"]
    assert min(np.diff(values)) >= 0.1 - 1e-9
    assert placed["d"] == 0.9
    assert placed["a"] + placed["b"] == pytest.approx(1.01)


WAVES = [Instance(start=1, end=4, label="wave"), Instance(start=3, end=6, label="fall $x$")]


def timeline(path, **changes):
    rng = np.random.default_rng(0)
    values = {
        "video_id": "demo_001",
        "duration": 12.0,
        "probabilities": rng.uniform(size=(100, 3)).astype(np.float32),
        "instances": WAVES,
        "segments": np.sort(rng.uniform(0, 12, (40, 2)), axis=1),
        "scores": rng.uniform(size=40),
        **changes,
    }
    draw_timeline(path, **values)
    return path


@pytest.mark.parametrize(
    ("suffix", "draw"),
    [
        pytest.param("png", timeline, marks=pytest.mark.full),
        ("svg", lambda path: draw_curves(path, RECORDS)),
    ],
)
def test_a_figure_has_the_same_bytes_each_time_and_no_date(tmp_path, suffix, draw):
    first, second = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    for path in (first, second):
        draw(path)
    assert first.read_bytes() == second.read_bytes()
    assert b"<dc:date>" not in first.read_bytes()
    assert b"matplotlib.org" not in first.read_bytes() or suffix == "svg"


NOTHING = {"segments": [], "scores": []}


LITTLE = {**NOTHING, "instances": [], "probabilities": None}
STRANGE = {"video_id": "a_b$c$ <&> ünï"}


@pytest.mark.parametrize(
    "changes",
    [
        LITTLE,
        STRANGE,
        {"probabilities": None, "motion": np.linspace(0, 3, 7)},
        *(
            pytest.param(each, marks=pytest.mark.full)
            for each in (
                {"instances": []},
                {"probabilities": None},
                {"segments": [[0, 12]], "scores": [0.0]},
                {"duration": 0.04, "instances": []},
                {"duration": 20_000.0},
            )
        ),
    ],
)
def test_every_video_has_a_figure(tmp_path, changes):
    ET.parse(timeline(tmp_path / "figure.svg", **changes))
    with pytest.raises(InputError, match=r"written as .svg, .png, .jpg"):
        timeline(tmp_path / "figure.pdf", **changes)
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


def test_overlapping_instances_lie_in_lanes_of_their_own():
    times = [(5, 9), (0, 6), (6, 7), (9, 10)]
    assert lanes_of([Instance(start=a, end=b, label="") for a, b in times]) == [1, 0, 0, 0]


def test_names_stand_inside_behind_or_below_their_bars():
    instances = [
        Instance(start=0, end=20, label="wave"),
        Instance(start=20, end=21, label="sit down"),  # touches the next
        Instance(start=21, end=22, label="sit down"),
        Instance(start=22, end=23, label="get up"),
        Instance(start=24, end=25, label="跌倒"),
        Instance(start=99, end=100, label="fall"),
        Instance(start=60, end=61, label=""),
    ]
    inside, below = place_names(instances, lanes_of(instances), 100.0)
    assert [(name.text, name.behind) for name in inside] == [("wave", False), ("跌倒", True)]
    assert [(name.text, name.start, name.end) for name in below] == [
        ("sit down ×2", 20, 22),
        ("get up", 22, 23),
        ("fall", 99, 100),
    ]
    assert below[0].row != below[1].row  # they would cover each other


@given(
    st.lists(
        st.tuples(st.floats(0, 99), st.floats(0.01, 9), st.sampled_from(["a", "fall", "sit down"])),
        max_size=30,
    )
)
def test_no_name_is_dropped_and_none_covers_another(rows):
    instances = [Instance(start=a, end=min(a + length, 100), label=b) for a, length, b in rows]
    inside, below = place_names(instances, lanes_of(instances), 100.0)
    shown = Counter(name.text for name in inside)
    for name in below:
        text, _, times = name.text.partition(" ×")
        shown[text] += int(times or 1)
    assert shown == Counter(label for _, _, label in rows)
    spans = sorted((name.row, name.at, 1.1 * (len(name.text) + 1)) for name in below)
    for (row, at, width), (next_row, next_at, next_width) in pairwise(spans):
        assert row != next_row or next_at - at >= (width + next_width) / 2 - 1e-9


@pytest.mark.parametrize(
    ("scores", "texts"),
    [
        ([0.9, 0.5, 0.1], ["0.90", "0.50", "0.10"]),
        ([0.9852, 0.0364, 0.0361], ["0.99", "0.04", "0.04"]),
        ([0.132, 0.129, 0.121], ["0.132", "0.129", "0.121"]),
        ([0.12345, 0.12334], ["0.1235", "0.1233"]),
        ([0.5, 0.5], ["0.50", "0.50"]),
        ([0.0012, 0.00031], ["1.2e-03", "3.1e-04"]),
        ([], []),
    ],
)
def test_scores_have_decimals_for_their_range(scores, texts):
    assert score_texts(np.array(scores)) == texts


def test_shades_go_from_the_lowest_to_the_highest_score_shown(tmp_path, monkeypatch):
    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    rows = [[number, number + 1] for number in range(5)]
    path = timeline(tmp_path / "f.svg", segments=rows, scores=[0.13, 0.128, 0.126, 0.122, 0.12])
    text = path.read_text()
    bars = re.findall(r"style=\"fill: (#[0-9a-f]{6})\"", text)
    shades = {to_hex(SHADES(share)) for share in (0.0, 0.2, 0.6, 0.8, 1.0)}
    assert shades <= set(bars)
    assert ">score 0.120<" in text  # the scale
    assert text.count(">0.130<") == 2


def test_the_unit_of_motion_is_on_its_axis_and_rest_is_said_in_words(tmp_path, monkeypatch):
    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    moving = timeline(tmp_path / "a.svg", probabilities=None, motion=np.linspace(0, 3, 7))
    assert "motion (pixels" in moving.read_text()
    still = {"probabilities": None, "motion": np.zeros(100), **NOTHING}
    text = timeline(tmp_path / "b.svg", **still, duration=0.12, instances=[]).read_text()
    assert ">nothing moves<" in text
    assert ">no proposals<" in text
    assert ">0.06<" in text  # marks of a video of three frames


def test_names_in_other_scripts_are_drawn_or_said_to_lack_a_font(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    truth = [Instance(start=1, end=9, label="跌倒 fall")]
    with warnings.catch_warnings(), monkeypatch.context() as patch:
        warnings.simplefilter("error")
        patch.setattr(figures, "_installed", tuple)  # no font but the usual one
        text = timeline(tmp_path / "a.svg", video_id="猫", instances=truth).read_text()
        assert ">□□ fall<" in text
        assert "a character that no font of this machine has" in text
        patch.undo()
        drawn = timeline(tmp_path / "b.svg", video_id="猫", instances=truth).read_text()
        assert not caplog.records
    if any("CJK" in name for name, _ in figures._installed()):
        assert ">跌倒 fall<" in drawn
        assert "□" not in drawn


@pytest.mark.parametrize("letter", first_tier(["W", "漢"], "W"))
def test_a_long_name_leaves_room_for_the_figure(tmp_path, letter):
    """Names of files have up to 255 characters, labels any number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for changes in (
            {"video_id": letter * 250},
            {"instances": [Instance(label=letter * 300, start=1.0, end=3.0)]},
        ):
            timeline(tmp_path / "long.svg", **changes)


@pytest.mark.parametrize(("letter", "most"), [("a", 90), ("漢", 45)])
def test_of_a_long_name_the_beginning_is_shown(letter, most):
    assert shortened(letter * most) == letter * most
    assert shortened(letter * (most + 1)) == letter * (most - 1) + "…"


def test_clock():
    times = (0.5, 0.5), (65, 5), (3725, 600)
    assert [_clock(*each) for each in times] == ["0.5", "1:05", "1:02:05"]
