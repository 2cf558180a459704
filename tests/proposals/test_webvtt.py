"""WebVTT chapters: which proposals, what text, whether a parser reads it."""

import io
import re

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.proposals.settings import ChapterSettings
from actionspan.proposals.webvtt import choose_chapters, webvtt, write_chapters

CUE = re.compile(r"(\d{2,}):([0-5]\d):([0-5]\d)\.(\d{3}) --> (\d{2,}):([0-5]\d):([0-5]\d)\.(\d{3})")


def row(start, end, score, **more):
    return {"segment": [start, end], "score": score, **more}


def cues(text):
    """Return [(start, end in milliseconds, title)] of a WebVTT file, strictly."""
    header, *blocks = text.split("\n\n")
    assert header.rstrip("\n") == "WEBVTT"
    found = []
    for block in blocks:
        timing, title = block.rstrip("\n").split("\n")
        hours, minutes, seconds, rest, *end = map(int, CUE.fullmatch(timing).groups())
        start = ((hours * 60 + minutes) * 60 + seconds) * 1000 + rest
        hours, minutes, seconds, rest = end
        found.append((start, ((hours * 60 + minutes) * 60 + seconds) * 1000 + rest, title))
    return found


def test_the_best_that_do_not_overlap_a_better_one_in_order_of_time():
    rows = [row(50, 60, 0.9), row(55, 70, 0.8), row(10, 50, 0.7), row(60, 61.5, 0.123456)]
    assert webvtt(rows) == (
        "WEBVTT\n"
        "\n00:00:10.000 --> 00:00:50.000\nProposal 3 (score 0.7)\n"
        "\n00:00:50.000 --> 00:01:00.000\nProposal 1 (score 0.9)\n"
        "\n00:01:00.000 --> 00:01:01.500\nProposal 4 (score 0.123)\n"
    )


def test_at_most_so_many_and_no_lower_score():
    rows = [row(index, index + 1, 1 - index / 10) for index in range(9)]
    assert len(choose_chapters(rows, ChapterSettings(chapters=4))) == 4
    assert len(choose_chapters(rows, ChapterSettings(minimum_score=0.75))) == 3
    assert len(choose_chapters(rows, ChapterSettings())) == 9


def test_no_proposals_is_a_file_without_cues():
    assert webvtt([]) == "WEBVTT\n"


def test_labels_are_one_escaped_line():
    rows = [row(0, 1, 1, label="a <b> & c\n\n --> d"), row(1, 2, 0.5, label=""), row(2, 3, 0.4)]
    titles = [title for _, _, title in cues(webvtt(rows))]
    assert titles == [
        "a &lt;b&gt; &amp; c --&gt; d (score 1)",
        "Proposal 2 (score 0.5)",
        "Proposal 3 (score 0.4)",
    ]


def test_what_lasts_less_than_a_millisecond_is_left_out():
    assert cues(webvtt([row(1.0001, 1.0004, 0.9), row(1, 2, 0.5)])) == [
        (1000, 2000, "Proposal 2 (score 0.5)")
    ]


def test_hours_and_times_before_the_video():
    found = webvtt([row(-0.5, 1, 0.9), row(360000, 360001.25, 0.8)])
    assert "00:00:00.000 --> 00:00:01.000" in found
    assert "100:00:00.000 --> 100:00:01.250" in found


@given(
    st.lists(
        st.tuples(st.floats(0, 5), st.floats(0, 5), st.floats(0, 1)).filter(lambda r: r[0] < r[1])
    ),
    st.integers(1, 6),
)
def test_cues_never_overlap_and_run_forward(rows, chapters):
    found = cues(webvtt([row(*values) for values in rows], ChapterSettings(chapters=chapters)))
    assert len(found) <= chapters
    edges = [edge for start, end, _ in found for edge in (start, end)]
    assert edges == sorted(edges)
    assert all(start < end for start, end, _ in found)


def test_ffmpeg_reads_it(tmp_path):
    rows = [row(50, 60, 0.9, label="wäve & <fall>"), row(10, 20.5, 0.7)]
    write_chapters(tmp_path / "video.vtt", rows, ChapterSettings())
    data = (tmp_path / "video.vtt").read_bytes()
    assert "wäve" in data.decode()
    with av.open(io.BytesIO(data), "r", format="webvtt") as file:
        stream = file.streams.subtitles[0]
        packets = [packet for packet in file.demux(stream) if packet.size]
    times = [(float(p.pts * p.time_base), float(p.duration * p.time_base)) for p in packets]
    assert times == [(10.0, 10.5), (50.0, 10.0)]


def test_settings_say_what_is_wrong():
    with pytest.raises(ValueError, match="chapters 0: at least 1"):
        ChapterSettings(chapters=0)
    with pytest.raises(ValueError, match="minimum_score nan: a finite number"):
        ChapterSettings(minimum_score=float("nan"))
