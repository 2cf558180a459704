"""WebVTT chapters: which proposals, what text, whether a parser reads it."""

import io
import re

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.proposals.chapters import choose_chapters, webvtt, write_chapters
from actionspan.proposals.segments import ranked_rows
from actionspan.proposals.settings import ChapterSettings

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
    rows = [row(50, 60, 0.9, label="fall"), row(55, 70, 0.8), row(10, 50, 0.7), row(60, 61.5, 0.5)]
    assert webvtt(rows) == (
        "WEBVTT\n"
        "\n00:00:10.000 --> 00:00:50.000\n0:10–0:50 (0.70)\n"
        "\n00:00:50.000 --> 00:01:00.000\n0:50–1:00 fall (0.90)\n"
        "\n00:01:00.000 --> 00:01:01.500\n1:00–1:02 (0.50)\n"
    )


def test_only_what_passes_the_bar_is_a_chapter():
    rows = [row(0, 0.2, 0.9), row(10, 20, 0.6), row(30, 40, 0.31), row(50, 60, 0.29)]
    chosen = choose_chapters(rows, ChapterSettings())
    assert chosen == [(2, rows[1]), (3, rows[2])], "the bar is half of the best that is long enough"
    loose = ChapterSettings(share=0.0, shortest=0.0)
    assert [rank for rank, _ in choose_chapters(rows, loose)] == [1, 2, 3, 4]
    strict = ChapterSettings(share=1.0, shortest=0.1)
    assert choose_chapters(rows, strict) == [(1, rows[0])]
    assert choose_chapters(rows, ChapterSettings(shortest=11)) == []
    rows = [row(index, index + 1, 1 - index / 10) for index in range(9)]
    for setting, count in (({"chapters": 4}, 4), ({"minimum_score": 0.75}, 3), ({"share": 0}, 9)):
        assert len(choose_chapters(rows, ChapterSettings(**setting))) == count


@pytest.mark.parametrize(
    ("start", "end", "score", "said"),
    [
        (123.2, 128.9, 0.72, "2:03–2:09 (0.72)"),
        (5.1, 5.42, 0.7, "0:05.1–0:05.4 (0.70)"),
        (59.97, 60.04, 0.7, "1:00.0–1:00.0 (0.70)"),
        (3599.6, 3725, 0.004321, "1:00:00–1:02:05 (0.004)"),
        (0, 0.96, 1.0, "0:00–0:01 (1.00)"),
        (7, 9, 0.0, "0:07–0:09 (0.00)"),
    ],
)
def test_a_chapter_says_its_times_and_its_score(start, end, score, said):
    ((_, _, title),) = cues(webvtt([row(start, end, score)], ChapterSettings(shortest=0)))
    assert title == said


def test_labels_are_one_escaped_line():
    rows = [row(0, 1, 1, label="a <b> & c\n\n --> d"), row(1, 2, 0.7, label="")]
    titles = [title for _, _, title in cues(webvtt(rows))]
    assert titles == ["0:00–0:01 a &lt;b&gt; &amp; c --&gt; d (1.00)", "0:01–0:02 (0.70)"]


def test_what_lasts_less_than_a_millisecond_is_left_out_and_hours_are_told():
    rows = [row(1.0001, 1.0004, 0.9), row(1, 2, 0.5)]
    found = cues(webvtt(rows, ChapterSettings(shortest=0.0)))
    assert found == [(1000, 2000, "0:01–0:02 (0.50)")]
    text = webvtt([row(-0.5, 1, 0.9), row(360000, 360001.25, 0.8)])
    assert "00:00:00.000 --> 00:00:01.000" in text, "before the video"
    assert "100:00:00.000 --> 100:00:01.250" in text
    assert webvtt([]) == "WEBVTT\n"


@given(
    st.lists(
        st.tuples(st.floats(0, 5), st.floats(0, 5), st.floats(0, 1)).filter(lambda r: r[0] < r[1])
    ),
    st.integers(1, 6),
)
def test_cues_never_overlap_and_run_forward(rows, chapters):
    settings = ChapterSettings(chapters=chapters, share=0.1, shortest=0.0)
    found = cues(webvtt([row(*values) for values in rows], settings))
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


def test_events_of_unknown_chance_are_all_chapters_by_their_rank():
    text = webvtt(ranked_rows([[20.0, 25.0], [0.0, 5.0], [10.0, 15.0]]))
    assert re.findall(r"\(no\. \d\)", text) == ["(no. 2)", "(no. 3)", "(no. 1)"]
