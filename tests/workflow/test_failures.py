"""What a person reads when jobs failed."""

import logging
import os
from types import SimpleNamespace

from actionspan.workflow.jobs import Messages, failed_jobs
from actionspan.workflow.messages import SHOWN_JOBS, SHOWN_LINES, Failed, failures_text


def test_a_failure_is_one_block_with_its_last_lines_and_where_its_log_is(tmp_path):
    log = tmp_path / "ring-2.log"
    log.write_text("".join(f"line {number}\n\n" for number in range(100)) + "1 %\r50 %\rlast\n")
    head, *lines = failures_text(
        [Failed("temporal_train", ("mtn", "", "ring-2"), log)]
    ).splitlines()
    assert head == f"temporal_train mtn ring-2 failed; its log is {log}"
    assert len(lines) == SHOWN_LINES
    assert lines[-2:] == ["    line 99", "    last"]


def test_a_job_that_slurm_ended_or_that_never_began_says_why(tmp_path):
    log, slurm, none = (tmp_path / name for name in ("a.log", "7.log", "none.log"))
    log.write_text("epoch 3\n")
    reason = "slurmstepd: error: *** JOB 7 ON c1 CANCELLED AT 12:00 DUE TO TIME LIMIT ***"
    slurm.write_text(f"Building DAG of jobs...\n{reason}\n{reason}\nAt least one job failed\n")
    head = f"a failed; its log is {log}, the scheduler's {slurm}"
    ended = failures_text([Failed("a", (), log, slurm)])
    assert ended.splitlines() == [head, "    epoch 3", f"    {reason}"]
    slurm.write_text("python: not found\n")
    never_began = failures_text([Failed("a", (), none, slurm)])
    assert never_began == f"a failed; its log is {slurm}\n    python: not found"
    assert "(it is empty)" in failures_text([Failed("a", (), none)])


def test_of_many_failures_a_few_are_shown_and_all_are_named(tmp_path):
    log = tmp_path / "long.log"
    log.write_text("x" * 10**6 + "\n" + "y" * 10**5)
    text = failures_text([Failed("a", (f"{number:02}",), log) for number in range(20)])
    assert len(text) < 10_000
    assert all(f"a {number:02} failed" in text for number in range(20))
    assert "yyy" in text
    assert text.count(" failed too: ") == 20 - SHOWN_JOBS


def test_of_a_group_the_job_that_failed_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jobs = []
    for name in ("proposals_train", "proposals_generate", "evaluation_evaluate"):
        rule = SimpleNamespace(name=name)
        job = SimpleNamespace(rule=rule, wildcards=["mtn"], log=[f"{name}.log"], is_group=bool)
        jobs.append(job)
    (tmp_path / "proposals_train.log").write_text("done\n")
    (tmp_path / "proposals_generate.log").write_text("no memory\n")
    group = SimpleNamespace(jobs=jobs, name="scoring_x", is_group=lambda: True)
    scheduler, dag = SimpleNamespace(failed=[group]), SimpleNamespace(jobid=jobs.index)
    workflow = SimpleNamespace(scheduler=scheduler, dag=dag)
    folder = tmp_path / ".snakemake/slurm_logs/group_scoring_x"
    folder.mkdir(parents=True)
    (folder / "3.log").write_text("    log: proposals_train.log\n")
    (folder / "4.log").write_text(
        "Error in rule proposals_generate:\n"
        "    log: proposals_generate.log (check log file(s) for error details)\n"
    )
    (failed,) = failed_jobs(workflow, {1: "SLURM status is: 'FAILED'."})
    assert failed.name == "proposals_generate mtn"
    said = failures_text([failed]).partition("\n")[2]
    assert said == "    no memory\n    SLURM status is: 'FAILED'."


def test_a_job_that_was_interrupted_did_not_fail(tmp_path):
    log = tmp_path / "a.log"
    log.write_text("line\nactionspan dataset: interrupted; run it again to resume\n")
    assert failures_text([Failed("a", (), log)]) == "interrupted; run it again to resume"
    os.utime(log, (0, 0))  # of an earlier run: this time the job did not begin
    assert failures_text([Failed("a", (), log)]).startswith("a failed; its log is")


def test_what_the_executor_said_is_kept():
    messages, logger = Messages(), logging.getLogger("actionspan-test")
    logger.addHandler(messages)
    said = "SLURM-job '7' failed, SLURM status is: 'TIMEOUT'. Detailed failure reason unavailable"
    logger.error("Error in rule a", extra={"rule_msg": said, "jobid": 7})
    logger.error("another line")
    logger.error("Error in rule b", extra={"rule_msg": None, "jobid": 8})
    assert messages.of == {7: "SLURM-job '7' failed, SLURM status is: 'TIMEOUT'."}
