"""Proposals of a stream that does not end: little memory, chapters that settle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.live import outputs
from actionspan.live.outputs import Found, LiveChapters
from actionspan.proposals.chapters import webvtt
from actionspan.proposals.settings import ChapterSettings
from live.vtt import cues


def row(start, end, score, **more):
    return {"score": score, "segment": [float(start), float(end)]} | more


ROWS = st.lists(
    st.builds(
        row,
        st.floats(0, 100),
        st.floats(100, 200),
        st.sampled_from([0.1, 0.5, 1 / 3]),
        label=st.sampled_from(["run", "jump"]),
        label_score=st.floats(0, 1),
    ),
    max_size=30,
)


@given(rows=ROWS)
def test_rows_come_best_first_and_exact(rows):
    found = Found()
    for each in rows:
        found.add(each)
    assert list(found.rows()) == sorted(rows, key=lambda each: -each["score"])
    assert found.count == len(rows)
    assert found.labelled == bool(rows)


def test_only_the_best_are_kept(monkeypatch):
    monkeypatch.setattr(outputs, "MOST", 50)
    monkeypatch.setattr(outputs, "_SPARE", 10)
    found = Found()
    scores = [(number * 37 % 1000) / 1000 for number in range(1000)]
    for number, score in enumerate(scores):
        found.add(row(number, number + 1, score))
        assert len(found._numbers) <= 5 * 60
    kept = list(found.rows())
    assert [each["score"] for each in kept] == sorted(scores, reverse=True)[:50]
    assert found.count == 1000


@given(rows=ROWS)
def test_chapters_are_those_of_all_proposals_while_nothing_is_settled(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("chapters") / "live.vtt"
    chapters = LiveChapters()
    for each in rows:
        chapters.add(each)
    chapters.write(path)
    assert path.read_text() == webvtt(
        rows, ChapterSettings(chapters=max(1, len(rows)), share=0.0, shortest=0.0)
    )


@pytest.mark.parametrize("step", [3.0, 50.0, 700.0])
def test_chapters_of_a_day_stay_valid_and_few_are_looked_at(tmp_path, step):
    chapters, most, count = LiveChapters(), 0, int(86_400 / step) // 10
    for number in range(count):
        start = step * number
        chapters.add(row(start, start + 2.5 * step, (number * 7 % 11) / 11))
        most = max(most, len(chapters._recent))
    chapters.write(tmp_path / "live.vtt")
    found = cues((tmp_path / "live.vtt").read_text())
    assert len(found) >= count // 4
    assert most <= 2 * 600 / step + 4
