"""What is printed of Snakemake's records, one by one; whole runs are in tests/runs."""

import pytest
from snakemake.settings.enums import Quietness

from workflow.conftest import ASKED, brief_logger

JOB = {"event": "job_info", "jobid": 3, "rule_name": "video_flow", "wildcards": {"a": "", "b": "7"}}
JOB["log"] = ["results/logs/video_flow/7.log"]


def printed(*records: tuple[str, dict], **asked) -> list[str]:
    """Return what is printed of records, each a message and its fields."""
    logger, stream = brief_logger(**asked)
    for text, fields in records:
        logger.error(text, extra=fields)
    return stream.getvalue().splitlines()


def test_a_job_is_named_and_says_why_it_runs():
    follows = "Input files updated by another job: x"
    table = ("total 2", {"event": "run_info", "stats": {"total": 2}})
    own = ("", {**JOB, "reason": f"Missing output files: y; {follows}; Params have changed"})
    other = ("", {**JOB, "jobid": 4, "reason": follows})
    assert printed(table, own, other, own, table) == [
        "total 2",
        "[1/2] video_flow 7: Missing output files: y; Params have changed",
        f"[2/2] video_flow 7: {follows}",
        "[2/2] video_flow 7: Missing output files: y; Params have changed",  # a second attempt
    ]


def test_a_failed_job_is_a_line_and_other_errors_are_whole(tmp_path):
    by_hand = tmp_path / "b.log"  # Ctrl-C may reach a job before the run
    by_hand.write_text("actionspan video: interrupted; run it again to resume\n")
    failed = {"event": "job_error", "jobid": 3, "rule_name": "video_flow", "log": ["a.log"]}
    records = [
        ("RuleException:\nCalledProcessError in file x, line 2:\nls", {"event": "error"}),
        ("", {**JOB, "reason": "Forced execution"}),
        ("twenty lines", {**failed, "indent": False}),
        ("twenty lines", {**failed, "indent": False, "log": [str(by_hand)]}),
        ("of a job in a group", {**failed, "indent": True}),
        ("MissingOutputException in rule x:\na.h5", {"event": "error"}),
        ("Terminating processes on user request, this might", {}),
        ("twenty lines", {**failed, "indent": False}),
    ]
    assert printed(*records)[1:] == [
        "video_flow 7 failed: a.log",
        "MissingOutputException in rule x:",
        "a.h5",
        "Terminating processes on user request, this might",
    ]


def test_records_of_another_version_are_printed_as_they_are():
    records = [(f"all of {event}", {"event": event}) for event in ("job_info", "run_info", "new")]
    assert printed(*records) == ["all of job_info", "all of run_info", "all of new"]


def stages(names) -> list[tuple[str, dict]]:
    counts = {name: names.count(name) for name in names}
    table = ("total 5", {"event": "run_info", "stats": {"total": len(names), **counts}})
    jobs = [
        ("", {**JOB, "jobid": number, "rule_name": name, "reason": "Forced execution"})
        for number, name in enumerate(names)
    ]
    return [table, *jobs, ("MissingOutputException in rule x:", {"event": "error"})]


def test_a_quiet_run_prints_a_line_a_stage_and_every_error():
    # the last is of a workflow that takes ours as a module
    names = ["code", "dataset_demo", "dataset_probe", "video_flow", "actionspan_dataset_index"]
    records = stages(names)
    rules, progress = Quietness.RULES, Quietness.PROGRESS
    error = "MissingOutputException in rule x:"
    short = ["[2/5] dataset", "[4/5] video", error]
    assert printed(*records, quiet={rules, progress}) == short
    estimated = ["[2/5] dataset: about 20 s, all about 30 s", "[4/5] video: about 10 s", error]
    assert printed(*records, quiet={rules}) == estimated
    assert printed(*records, quiet={rules, progress}, dryrun=True) == [error]
    assert printed(*records, quiet={Quietness.ALL}) == []
    assert len(printed(*records)) == 7


def test_a_quiet_run_hides_jobs_of_another_version():
    records = [("all of it", {"event": "job_info"})]
    assert printed(*records, quiet={Quietness.RULES}) == []


@pytest.mark.parametrize("flag", ASKED)
def test_a_flag_asks_for_all_of_it(flag):
    assert printed(("Select jobs to execute...", {}), **{flag: True}) != []
    assert printed(("Select jobs to execute...", {})) == []
