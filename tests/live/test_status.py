"""status.tsv and latencies."""

import csv

import pytest

from actionspan.live.progress import STATUS_FILE, Latency, Status


def rows(folder):
    with (folder / STATUS_FILE).open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_a_row_has_counts_queues_shares_and_latencies(tmp_path):
    status = Status(tmp_path, every=0.0)
    for compute in (0.01, 0.02, 0.03):
        status.answered(Latency(look_ahead=0.1, compute=compute, queueing=0.0))
    stages = [{"busy_seconds": 0.0, "samples": 4}, {"busy_seconds": 0.0, "samples": 3}]
    status.write(stages, frames=50, submitted=6, dropped=2, done=3, waiting=1)
    stages = [{"busy_seconds": 1e9, "samples": 6}, {"busy_seconds": 0.0, "samples": 6}]
    status.write(stages, frames=60, submitted=6, dropped=2, done=6, waiting=0)
    status.close()
    first, second = rows(tmp_path)
    assert first | {"seconds": ""} == {
        "seconds": "",
        "frames": "50",
        "dropped": "2",
        "done": "3",
        "waiting": "1",
        "queue_1": "2",
        "busy_1": "0.000",
        "queue_2": "1",
        "busy_2": "0.000",
        "latency_p50_ms": "120.0",
        "latency_p95_ms": "129.0",
        "latency_max_ms": "130.0",
    }
    assert second["busy_1"] == "1.000"
    assert second["latency_p50_ms"] == "", "nothing new"
    assert status.summary()["compute"] == {"p50": 20.0, "p95": 29.0, "max": 30.0}


def test_parts_add_up_to_the_total():
    named = Latency(look_ahead=0.64, compute=0.08, queueing=0.011).milliseconds()
    assert named["total"] == pytest.approx(sum(v for k, v in named.items() if k != "total"))


def test_a_stream_that_goes_on_appends(tmp_path):
    for append in (False, True, True):
        status = Status(tmp_path, append=append)
        status.write([{"busy_seconds": 0.0, "samples": 1}], frames=1, submitted=1)
        status.close()
    assert len(rows(tmp_path)) == 3
    assert Status(tmp_path).summary()["total"] == {"p50": None, "p95": None, "max": None}
