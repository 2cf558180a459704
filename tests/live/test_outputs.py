"""The files of a stream: every line whole, tables whole, chapters valid, and cut back on resume."""

import csv
import io
import json

import pytest

from actionspan.errors import InputError
from actionspan.live.outputs import ACTIONNESS, CHAPTERS, EVENTS, PROPOSALS, Outputs
from actionspan.live.proposing import OnlineProposal
from actionspan.live.reading import Gap
from actionspan.storage.checksums import fingerprint
from live.vtt import cues

LATENCY = {"total": 3.0, "look_ahead": 1.0, "compute": 1.5, "queueing": 0.5}


def events(folder):
    return [json.loads(line) for line in (folder / EVENTS).read_text().splitlines()]


def test_every_file_is_valid_after_each_line(tmp_path):
    echo = io.StringIO()
    outputs = Outputs(tmp_path, "holiday", echo)
    scores = [0.5, 0.9, 0.7]
    for number, score in enumerate(scores):
        outputs.actionness(number, number / 2, (0.1, 0.2, 0.3), LATENCY)
        outputs.proposals(
            [OnlineProposal(float(number), number + 2.0, score)], emitted=number + 2.5
        )
        assert cues((tmp_path / CHAPTERS).read_text())
        assert events(tmp_path)[-1]["score"] == score
    outputs.gap(Gap(start=1.0, end=4.0, dropped=3, reason="slow"))
    outputs.write_tables()
    results = json.loads((tmp_path / PROPOSALS[0]).read_text())["results"]
    outputs.close()
    assert [row["score"] for row in results["holiday"]] == [0.9, 0.7, 0.5]
    with (tmp_path / PROPOSALS[1]).open() as file:
        rows = list(csv.DictReader(file))
    assert [row["rank"] for row in rows] == ["1", "2", "3"]
    assert rows[0]["start_seconds"] == "1.0"
    assert [title for _, _, title in cues((tmp_path / CHAPTERS).read_text())] == [
        "0:01–0:03 (0.90)"
    ]
    assert echo.getvalue() == (tmp_path / EVENTS).read_text()
    assert events(tmp_path)[-1] == {
        "event": "gap",
        "from": 1.0,
        "to": 4.0,
        "dropped": 3,
        "reason": "slow",
    }
    table = (tmp_path / ACTIONNESS).read_text().splitlines()
    assert table[0].split("\t") == ["snippet", "seconds", "start", "action", "end"]
    assert table[2] == "1\t0.500000\t0.100000\t0.200000\t0.300000"
    assert {path.name for path in tmp_path.iterdir()} == {EVENTS, ACTIONNESS, CHAPTERS, *PROPOSALS}


def test_a_label_is_everywhere(tmp_path):
    outputs = Outputs(tmp_path, "v")
    outputs.proposals([OnlineProposal(0.0, 1.0, 0.5, "wave <hello>", 0.75)], emitted=1.0)
    outputs.close()
    assert events(tmp_path)[0]["label"] == "wave <hello>"
    (row,) = json.loads((tmp_path / PROPOSALS[0]).read_text())["results"]["v"]
    assert (row["label"], row["label_score"]) == ("wave <hello>", 0.75)
    assert (tmp_path / PROPOSALS[1]).read_text().splitlines()[1] == (
        "v,1,0.0,1.0,0.5,wave <hello>,0.75"
    )
    ((_, _, title),) = cues((tmp_path / CHAPTERS).read_text())
    assert title == "0:00–0:01 wave &lt;hello&gt; (0.50)"


def test_going_on_forgets_what_came_after(tmp_path):
    outputs = Outputs(tmp_path, "v")
    outputs.proposals([OnlineProposal(0.0, 1.0, 1 / 3)], emitted=1.0)
    outputs.actionness(0, 0.0, (0.0, 0.0, 0.0), LATENCY)
    written = outputs.written()
    before = {name: (tmp_path / name).read_bytes() for name in written}
    assert {name: fingerprint(tmp_path / name) for name in written} == written
    outputs.proposals([OnlineProposal(5.0, 6.0, 0.25)], emitted=6.0)
    outputs.actionness(1, 0.5, (0.0, 0.0, 0.0), LATENCY)
    outputs.close()
    again = Outputs(tmp_path, "v", written=written)
    assert again.written() == written
    again.close()
    assert {name: (tmp_path / name).read_bytes() for name in written} == before
    assert list(again.found.rows()) == [{"score": 1 / 3, "segment": [0.0, 1.0]}]
    assert len(cues((tmp_path / CHAPTERS).read_text())) == 1
    (tmp_path / EVENTS).write_text("")
    with pytest.raises(InputError, match=r"events\.jsonl: changed since it was written"):
        Outputs(tmp_path, "v", written=written)


def test_an_empty_stream_has_valid_files(tmp_path):
    Outputs(tmp_path / "deep" / "er", "v").close()
    folder = tmp_path / "deep" / "er"
    assert cues((folder / CHAPTERS).read_text()) == []
    assert json.loads((folder / PROPOSALS[0]).read_text())["results"] == {"v": []}
