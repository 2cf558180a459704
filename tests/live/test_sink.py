"""The files of a stream: every line whole, tables whole, chapters valid; what a resume needs."""

import csv
import io
import json
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.live import sink
from actionspan.live.clock import STATE_FILE, Place, Progress, read_state, write_state
from actionspan.live.hand_over import Gap
from actionspan.live.proposing import OnlineProposal
from actionspan.live.sink import (
    ACTIONNESS,
    CHAPTERS,
    EVENTS,
    PROPOSALS,
    Found,
    LiveChapters,
    Outputs,
)
from actionspan.live.status import STATUS, Latency, Status
from actionspan.proposals.chapters import webvtt
from actionspan.proposals.settings import ChapterSettings
from actionspan.storage.checksums import fingerprint
from actionspan.storage.writing import read_tsv
from live.fakes import cues, events
from storage.changed import changed_leaves

LATENCY = {"total": 3.0, "look_ahead": 1.0, "compute": 1.5, "queueing": 0.5}


def test_every_file_is_valid_after_each_line(tmp_path):
    folder, echo = tmp_path / "deep" / "er", io.StringIO()
    made = Outputs(folder, "holiday", echo)
    made.write_tables()
    assert json.loads((folder / PROPOSALS[0]).read_text())["results"] == {"holiday": []}
    assert cues(folder) == []
    readers = {name: (folder / name).open() for name in (CHAPTERS, *PROPOSALS)}
    texts = {name: (folder / name).read_text() for name in readers}
    for number, score in enumerate([0.5, 0.9, 0.7]):
        made.actionness(number, number / 2, (0.1, 0.2, 0.3), LATENCY)
        made.proposals([OnlineProposal(float(number), number + 2.0, score)], emitted=number + 2.5)
        assert cues(folder)
        assert events(folder)[-1]["score"] == score
    made.gap(Gap(start=1.0, end=4.0, dropped=3, reason="slow"))
    made.write_tables()
    results = json.loads((folder / PROPOSALS[0]).read_text())["results"]
    made.close()
    assert [row["score"] for row in results["holiday"]] == [0.9, 0.7, 0.5]
    for name, reader in readers.items():  # who has opened a file before has that one, whole
        with reader:
            assert reader.read() == texts[name] != (folder / name).read_text()
    with (folder / PROPOSALS[1]).open() as file:
        rows = list(csv.DictReader(file))
    assert [row["rank"] for row in rows] == ["1", "2", "3"]
    assert rows[0]["start_seconds"] == "1.0"
    assert [title for _, _, title in cues(folder)] == ["0:01–0:03 (0.90)"]
    assert echo.getvalue() == (folder / EVENTS).read_text()
    gap = {"event": "gap", "from": 1.0, "to": 4.0, "dropped": 3, "reason": "slow"}
    assert events(folder)[-1] == gap
    table = (folder / ACTIONNESS).read_text().splitlines()
    assert table[0].split("\t") == ["snippet", "seconds", "start", "action", "end"]
    assert table[2] == "1\t0.500000\t0.100000\t0.200000\t0.300000"
    assert {path.name for path in folder.iterdir()} == {EVENTS, ACTIONNESS, CHAPTERS, *PROPOSALS}


def test_a_label_is_everywhere(tmp_path):
    made = Outputs(tmp_path, "v")
    made.proposals([OnlineProposal(0.0, 1.0, 0.5, "wave <hello>", 0.75)], emitted=1.0)
    made.close()
    (row,) = json.loads((tmp_path / PROPOSALS[0]).read_text())["results"]["v"]
    for each in (row, events(tmp_path)[0]):
        assert (each["label"], each["label_score"]) == ("wave <hello>", 0.75)
    line = (tmp_path / PROPOSALS[1]).read_text().splitlines()[1]
    assert line == "v,1,0.0,1.0,0.5,wave <hello>,0.75"
    assert [title for *_, title in cues(tmp_path)] == ["0:00–0:01 wave &lt;hello&gt; (0.50)"]


def test_going_on_forgets_what_came_after(tmp_path):
    made = Outputs(tmp_path, "v")
    made.proposals([OnlineProposal(0.0, 1.0, 1 / 3)], emitted=1.0)
    made.actionness(0, 0.0, (0.0, 0.0, 0.0), LATENCY)
    written = made.written()
    before = {name: (tmp_path / name).read_bytes() for name in written}
    assert {name: fingerprint(tmp_path / name) for name in written} == written
    made.proposals([OnlineProposal(2.0, 3.0, 0.5)], emitted=3.0)
    made.close()
    again = Outputs(tmp_path, "v", written=written)
    assert again.written() == written
    again.close()
    assert {name: (tmp_path / name).read_bytes() for name in written} == before
    assert list(again.found.rows()) == [{"score": 1 / 3, "segment": [0.0, 1.0]}]
    assert len(cues(tmp_path)) == 1
    (tmp_path / EVENTS).write_text("")
    with pytest.raises(InputError, match=r"events\.jsonl: changed since it was written"):
        Outputs(tmp_path, "v", written=written)


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
def test_rows_come_best_first_and_exact_and_chapters_are_those_of_all(rows, tmp_path_factory):
    found, chapters = Found(), LiveChapters()
    for each in rows:
        found.add(each)
        chapters.add(each)
    assert list(found.rows()) == sorted(rows, key=lambda each: -each["score"])
    assert (found.count, found.labelled) == (len(rows), bool(rows))
    path = tmp_path_factory.mktemp("chapters") / CHAPTERS
    chapters.write(path)
    every = ChapterSettings(chapters=max(1, len(rows)), share=0.0, shortest=0.0)
    assert path.read_text() == webvtt(rows, every)


def test_only_the_best_are_kept(monkeypatch):
    monkeypatch.setattr(sink, "_MOST", 50)
    monkeypatch.setattr(sink, "_SPARE", 10)
    found = Found()
    scores = [(number * 37 % 1000) / 1000 for number in range(1000)]
    for number, score in enumerate(scores):
        found.add(row(number, number + 1, score))
        assert len(found._kept) <= 60
    assert [each["score"] for each in found.rows()] == sorted(scores, reverse=True)[:50]
    assert found.count == 1000


@pytest.mark.parametrize("step", [3.0, 50.0, 700.0])
def test_chapters_of_a_day_stay_valid_and_few_are_looked_at(tmp_path, step):
    chapters, most, count = LiveChapters(), 0, int(86_400 / step) // 10
    for number in range(count):
        chapters.add(row(step * number, step * (number + 2.5), (number * 7 % 11) / 11))
        most = max(most, len(chapters._recent))
    chapters.write(tmp_path / CHAPTERS)
    assert len(cues(tmp_path)) >= count // 4
    assert most <= 2 * 600 / step + 4


def test_a_status_has_counts_queues_shares_and_latencies(tmp_path):
    status = Status(tmp_path, every=0.0)
    for compute in (0.01, 0.02, 0.03):
        status.answered(Latency(look_ahead=0.1, compute=compute, queueing=0.0))
    stages = [{"busy_seconds": 0.0, "samples": 4}, {"busy_seconds": 0.0, "samples": 3}]
    status.write(stages, frames=50, submitted=6, dropped=2, done=3, waiting=1)
    stages = [{"busy_seconds": 1e9, "samples": 6}, {"busy_seconds": 0.0, "samples": 6}]
    status.write(stages, frames=60, submitted=6, dropped=2, done=6, waiting=0)
    status.close()
    first, second = read_tsv(tmp_path / STATUS)
    wanted = {"frames": "50", "dropped": "2", "done": "3", "waiting": "1"}
    wanted |= {"queue_1": "2", "busy_1": "0.000", "queue_2": "1", "busy_2": "0.000"}
    latencies = {"p50": "120.0", "p95": "129.0", "max": "130.0"}
    wanted |= {f"latency_{name}_ms": value for name, value in latencies.items()}
    assert list(first) == ["seconds", *wanted]
    assert first.items() >= wanted.items()
    assert second["busy_1"] == "1.000"
    assert second["latency_p50_ms"] == "", "nothing new"
    assert status.summary()["compute"] == {"p50": 20.0, "p95": 29.0, "max": 30.0}
    named = Latency(look_ahead=0.64, compute=0.08, queueing=0.011).milliseconds()
    assert named == {"total": 731.0, "look_ahead": 640.0, "compute": 80.0, "queueing": 11.0}


def test_the_status_of_a_stream_that_goes_on_is_appended(tmp_path):
    for append in (False, True, True):
        status = Status(tmp_path, append=append)
        status.write([{"busy_seconds": 0.0, "samples": 1}], frames=1, submitted=1)
        status.close()
    assert len(read_tsv(tmp_path / STATUS)) == 3
    assert Status(tmp_path).summary()["total"] == {"p50": None, "p95": None, "max": None}


STATE = Progress(
    made_of="abc",
    snippets=7,
    seconds=1.25,
    done=6,
    dropped=1,
    began=1e9,
    unanswered=deque([Place(5, 1.0, 0.0), Place(6, 1.25, 0.0)]),
    written={"events.jsonl": "10 abc"},
    proposer={
        "window": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
        "count": np.int64(3),
        "text": "a",
        "deep": [{"tensor": torch.arange(3)}, (1, None, 0.1)],
        "empty": np.zeros((0, 4)),
    },
)


def test_a_state_is_read_as_it_was_written(tmp_path):
    assert read_state(tmp_path, "abc") is None
    write_state(tmp_path, STATE)
    found = read_state(tmp_path, "abc")
    assert [place[:2] for place in found.unanswered] == [(5, 1.0), (6, 1.25)]
    other = {"proposer": {}, "unanswered": deque()}
    assert replace(found, **other) == replace(STATE, **other)
    for key in ("window", "count", "empty"):
        kept, known = found.proposer[key], STATE.proposer[key]
        np.testing.assert_array_equal(kept, known)
        assert (kept.dtype, kept.shape) == (known.dtype, known.shape)
    assert found.proposer["text"] == "a"
    assert torch.equal(found.proposer["deep"][0]["tensor"], torch.arange(3))
    assert found.proposer["deep"][1] == (1, None, 0.1)


def refusal(folder):
    try:
        read_state(folder, "abc")
    except InputError as error:
        return str(error)
    return ""


def test_a_damaged_state_is_one_line_whatever_was_changed(tmp_path):
    write_state(tmp_path, STATE)
    path = tmp_path / STATE_FILE
    whole, content = path.read_bytes(), torch.load(path)
    assert refusal(tmp_path) == ""
    lines = {"format: ": "not the state of a stream", "made_of: ": "of another stream"}
    for change, other in changed_leaves(content):
        torch.save(other, path)
        wanted = [line for key, line in lines.items() if change.startswith(key)]
        assert (wanted or [f"{path}: damaged; delete it and run again"])[0] in refusal(tmp_path)
    for cut in (b"no state", *(whole[:size] for size in range(0, len(whole), 211))):
        path.write_bytes(cut)
        assert refusal(tmp_path) == f"{path}: damaged; delete it and run again"
