"""Jobs as Snakemake knows them: the Python they start, what they ask for, and which failed."""

import logging
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from actionspan.plan.cluster import Asked, check_limits, partitions
from actionspan.plan.failures import Failed

_NAMED_LOG = re.compile(r"^ +log: (\S+) \(check log", re.MULTILINE)
# what every message of a remote executor ends with, and its command
_BOILERPLATE = re.compile("For further error details|Detailed failure reason|\n")
_ON_SLURM = ("slurm", "cluster-generic")  # the latter asks whatever answers to sinfo
_PYTHON = Path(".snakemake/python")


def start_this_python() -> None:
    """Let `python` in a job be the one that runs Snakemake, and `mpiexec` the one beside it.

    Each Snakemake does so, also in a job of a cluster and in a pod. What `--sdm` prepares has its
    own `python`: conda puts its folder before these, a container does not see them.
    """
    path, before = os.environ.get("PATH", os.defpath), [str(Path(sys.executable).parent)]
    if _is_own(shutil.which("python")):
        return
    if not _is_own(shutil.which("python", path=before[0])):
        # it is named python3.12 alone; a link from elsewhere would leave its environment
        _PYTHON.mkdir(parents=True, exist_ok=True)
        script = _PYTHON / f"{os.uname().nodename}-{os.getpid()}"
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        script.chmod(0o755)
        script.replace(_PYTHON / "python")
        before.insert(0, str(_PYTHON.absolute()))
    if path.split(os.pathsep)[: len(before)] != before:  # a job's own Snakemake finds it so
        os.environ["PATH"] = os.pathsep.join([*before, path])


def _is_own(found: str | None) -> bool:
    """Return whether a command is this interpreter, in its folder."""
    own = Path(sys.executable)
    return found is not None and own.samefile(found) and own.parent.samefile(Path(found).parent)


def check_jobs(workflow: Any) -> None:
    """Check what the jobs of a run ask for, if they go to a SLURM cluster.

    Raises:
        InputError: A job asks for more than its partition grants.
    """
    if workflow.executor_plugin.name not in _ON_SLURM:
        return
    chosen = getattr(workflow.executor_settings, "partition_config", None)
    if chosen or "SNAKEMAKE_SLURM_PARTITIONS" in os.environ:
        return  # the executor itself chooses a partition for each job
    check_limits([_asked(job) for job in _needed(workflow)], partitions())


class Messages(logging.Handler):
    """What Snakemake's executor says of each job that failed, by job; `--quiet rules` hides it."""

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[int, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first sentences of a message."""
        said = getattr(record, "rule_msg", None)
        if isinstance(said, str):
            self.of[getattr(record, "jobid", -1)] = _BOILERPLATE.split(said)[0].strip()


def failed_jobs(workflow: Any, said: Mapping[int, str]) -> list[Failed]:
    """Return the jobs that failed, with what the executor said of them."""
    found = []
    for each in workflow.scheduler.failed:
        text = _scheduler_log(each)
        for job in _failed_of(each, text) if each.is_group() else [each]:
            log = Path(next(iter(job.log), ""))
            message = said.get(workflow.dag.jobid(job), "")
            wildcards = tuple(map(str, job.wildcards))
            found.append(Failed(job.rule.name, wildcards, log, text, message))
    return found


def _failed_of(group: Any, scheduler_log: Path | None) -> list[Any]:
    """Return the jobs of a group that failed, or the last that began if nobody says so."""
    text = scheduler_log.read_text(errors="replace") if scheduler_log else ""
    named = set(_NAMED_LOG.findall(text))
    failed = [job for job in group.jobs if named & set(map(str, job.log))]
    begun = [job for job in group.jobs if any(Path(log).is_file() for log in job.log)]
    if failed or not begun:
        return failed or [next(iter(group.jobs))]
    return [max(begun, key=lambda job: Path(job.log[0]).stat().st_mtime)]


def _scheduler_log(job: Any) -> Path | None:
    """Return what SLURM and Snakemake wrote on the node: the last log of this job's folder."""
    kind = f"group_{job.name}" if job.is_group() else f"rule_{job.name}"
    wildcards = "" if job.is_group() else "_".join(job.wildcards).replace("/", "_")
    logs = (Path(".snakemake/slurm_logs") / kind / wildcards).glob("*.log")
    return max(logs, key=lambda path: path.stat().st_mtime, default=None)


def _needed(workflow: Any) -> list[Any]:
    """Return the jobs and groups that will be submitted."""
    dag = workflow.dag
    needed = {}
    for job in dag.needrun_jobs():
        if not job.is_local:
            each = dag.get_job_group(job) or job
            needed[id(each)] = each
    return list(needed.values())


def _asked(job: Any) -> Asked:
    resources = job.resources
    name = f"group {job.groupid}" if job.is_group() else job.rule.name
    partition = resources.get("slurm_partition")
    return Asked(
        name,
        None if partition is None else str(partition),
        _number(resources.get("runtime")),
        _number(resources.get("mem_mb")),
        _number(resources.get("cpus_per_task")) or job.threads,
    )


def _number(value: Any) -> int:
    """Return a resource; 0 if it is not given or not known yet."""
    return value if isinstance(value, int) else 0
