"""What is said of the time that a run still takes."""

import re

import pytest
from snakemake.settings.enums import Quietness

from actionspan.workflow import messages
from actionspan.workflow.pace import Pace, about
from workflow.conftest import brief_logger
from worlds.waiting import eventually


def test_a_run_of_equal_jobs_takes_what_is_left_of_them():
    clock = [0.0]
    pace = Pace(cores=1, now=lambda: clock[0])
    pace.plan({"total": 10, "slow": 10})
    left = [pace.seconds_left()]
    for job in range(10):
        pace.start(job, "slow")
        clock[0] += 30.0
        pace.finish(job)
        left.append(pace.seconds_left())
    assert left == sorted(left[:1]) + sorted(left[1:], reverse=True)  # until one is done: a guess
    assert left[4] == pytest.approx(6 * 30, rel=0.1)
    assert left[-1] == 0


def test_two_jobs_at_once_take_half_the_time_and_what_has_run_counts():
    clock = [0.0]
    pace = Pace(cores=2, now=lambda: clock[0])
    pace.plan({"total": 41, "slow": 40, "other": 1})
    for job in range(0, 20, 2):
        pace.start(job, "slow")
        pace.start(job + 1, "slow")
        clock[0] += 60.0
        pace.finish(job)
        pace.finish(job + 1)
    half = pace.seconds_left(lambda rule: rule == "slow")
    assert half == pytest.approx(20 * 60 / 2, rel=0.1)
    pace.start(20, "slow")
    clock[0] += 30.0
    assert pace.rules_running == ["slow"]
    assert half - pace.seconds_left(lambda rule: rule == "slow") > 0


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "about 5 s"), (44, "about 40 s"), (100, "about 1.7 minutes")]
)
def test_a_time_is_said_in_few_digits(seconds, words):
    assert about(seconds) == words


def test_a_long_job_says_how_far_it_is(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(messages, "_SILENT_SECONDS", 0.05)
    log = tmp_path / "0000.log"
    log.write_text("encoding: 3/9 videos in 12.0 s\n")
    logger, stream = brief_logger(cores=2, quiet={Quietness.RULES})
    logger.error("", extra={"event": "run_info", "stats": {"total": 2, "features_extract": 2}})
    job = {"rule_name": "features_extract", "wildcards": {}, "log": [str(log)], "reason": ""}
    logger.error("", extra={"event": "job_info", "jobid": 1, **job})
    told = re.compile(r"\[0/2\] done, about \d+ s left: encoding: 3/9 videos\n")
    try:
        eventually(lambda: told.search(stream.getvalue()), otherwise=stream.getvalue)
    finally:
        logger.error("Terminating processes on user request", extra={"event": None})
