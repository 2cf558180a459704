"""Jobs: the Python they start, their requests to a cluster and its limits, those that failed."""

import logging
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from actionspan.errors import InputError
from actionspan.workflow.messages import Failed

# A group of short rules is one job; its minutes are at most these (tests/workflow).
GROUPS = {"probing": 60, "indexing": 80, "scoring": 600, "timelines": 60}
SHORTEST = 30  # minutes: less cannot be divided among the rules of a group
_QUERY_SECONDS = 60
# limits of a partition: the text of the limit in a message, and how to stay within it
_CURES = {
    "minutes": (
        "its limit is {:.0f} minutes",
        "set cluster.max_runtime: {:.0f} in your configuration (a job resumes where it was cut "
        "off), or ",
    ),
    "mem_mb": ("its largest node has {} MB", "give --set-resources RULE:mem_mb={}, or "),
    "cores": ("its largest node has {} cores", "give --set-threads RULE={}, or "),
}


class ClusterPlan:
    """What jobs ask a cluster for."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._cluster = config["cluster"]

    def container(self, *, wanted: bool) -> str | None:
        """Return the image that jobs run in; `wanted` with `--sdm apptainer`.

        Raises:
            InputError: It is wanted, but not given: jobs would run without one.
        """
        image: str | None = self._cluster["container"]
        if wanted and image is None:
            raise InputError(
                "cluster.container: null, but --sdm apptainer runs jobs in an image; name one "
                "(docs/cluster.md explains how to build it)"
            )
        return image

    def minutes(self, minutes: int, group: str | None = None) -> int:
        """Return the `runtime` of a rule: its minutes, within `cluster.max_runtime`.

        `minutes` are enough for a large data set. The rules of a `group` share the limit.
        """
        most: int | None = self._cluster["max_runtime"]
        if most is None:
            return minutes
        if group is None:
            return min(minutes, most)
        return max(1, min(minutes, minutes * most // GROUPS[group]))


class Asked(NamedTuple):
    """The request of a job: its rule or group, partition (None: the default), minutes and so on."""

    name: str
    partition: str | None
    minutes: int
    mem_mb: int
    cores: int


class Partition(NamedTuple):
    """The longest job of a partition (`inf`: any) and the memory and cores of its largest node."""

    minutes: float
    mem_mb: float
    cores: float
    is_default: bool


def partitions() -> dict[str, Partition]:
    """Return the partitions of this cluster by name; none if it has no SLURM that answers."""
    command = ["sinfo", "--noheader", "--exact", "--format=%P|%l|%m|%c"]
    try:
        output = subprocess.check_output(
            command, stderr=subprocess.DEVNULL, text=True, timeout=_QUERY_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return read_partitions(output)


def read_partitions(text: str) -> dict[str, Partition]:
    """Read lines of sinfo, each with name (`*`: the default), time limit, MB and cores."""
    found: dict[str, list[Partition]] = {}
    for line in text.split():
        marked, limit, memory, cores = line.split("|")
        offered = _minutes(limit), int(memory.rstrip("+")), int(cores.rstrip("+"))
        found.setdefault(marked.rstrip("*"), []).append(Partition(*offered, marked.endswith("*")))
    return {name: _largest(nodes) for name, nodes in found.items()}


def _minutes(limit: str) -> float:
    """Return the minutes of SLURM's `days-hours:minutes:seconds`; `inf` for no limit."""
    days, _, clock = limit.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdigit() for part in parts):
        return math.inf  # "infinite", "n/a"
    hours, minutes, _ = [0, 0, 0, *map(int, parts)][-3:]
    return (int(days or 0) * 24 + hours) * 60 + minutes


def check_limits(jobs: Iterable[Asked], known: Mapping[str, Partition]) -> None:
    """Check that each job fits its partition; otherwise it would wait for ever.

    Nothing is checked where no partition is `known`.

    Raises:
        InputError: A job asks for too much; the line names its rules, the limit and the cure.
    """
    if not known:
        return
    default = next((name for name, each in known.items() if each.is_default), None)
    wrong: dict[tuple[str, str], dict[str, int]] = {}
    for job in jobs:
        partition = job.partition or default
        if partition is None:
            raise InputError(
                "slurm_partition: this cluster has no default partition; give one of "
                f"{', '.join(sorted(known))} in the profile's default-resources"
            )
        offered = _offered(partition, known)
        for what in _CURES:
            if getattr(job, what) > getattr(offered, what):
                wrong.setdefault((partition, what), {})[job.name] = getattr(job, what)
    if not wrong:
        return
    partition, what = min(wrong, key=lambda each: [*_CURES].index(each[1]))
    most = getattr(_offered(partition, known), what)
    limit, cure = _CURES[what]
    if what == "minutes" and most < SHORTEST:
        cure = ""
    raise InputError(
        f"partition {partition}: {limit.format(most)}, but {_listed(wrong[partition, what])} ask "
        f"for more and would wait for ever: {cure.format(most)}give another slurm_partition"
    )


def _offered(names: str, known: Mapping[str, Partition]) -> Partition:
    """Return the most that one of the partitions `a,b` offers."""
    for name in names.split(","):
        if name not in known:
            raise InputError(
                f"slurm_partition: {name}: not a partition of this cluster, which has "
                f"{', '.join(sorted(known))}"
            )
    return _largest([known[name] for name in names.split(",")])


def _largest(several: list[Partition]) -> Partition:
    return Partition(*map(max, zip(*several, strict=True)))


def _listed(found: Mapping[str, int]) -> str:
    """Return jobs and their requests, the largest first: `a (480), b (240) and 3 more`."""
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{name} ({value})" for name, value in ordered[:3])
    return shown + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")


_NAMED_LOG = re.compile(r"^ +log: (\S+) \(check log", re.MULTILINE)
# what every message of a remote executor ends with, and its command
_BOILERPLATE = re.compile("For further error details|Detailed failure reason|\n")
_ON_SLURM = ("slurm", "cluster-generic")  # the latter asks whatever answers to sinfo
_PYTHON = Path(".snakemake/python")


def start_this_python() -> None:
    """Make `python` in a job the one that runs Snakemake, and `mpiexec` the one in its folder.

    Each Snakemake does so, also in a job of a cluster or in a pod. Environments of `--sdm` have
    their own `python`: conda puts its folder first, a container does not see this one.
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
    """Check the requests of a run's jobs, if they go to a SLURM cluster.

    Raises:
        InputError: A job asks for more than its partition grants.
    """
    if workflow.executor_plugin.name not in _ON_SLURM:
        return
    chosen = getattr(workflow.executor_settings, "partition_config", None)
    if chosen or "SNAKEMAKE_SLURM_PARTITIONS" in os.environ:
        return  # the executor itself chooses a partition for each job
    needed = {}
    for job in workflow.dag.needrun_jobs():
        if not job.is_local:
            each = workflow.dag.get_job_group(job) or job
            needed[id(each)] = each
    check_limits(map(_asked, needed.values()), partitions())


def stop_from_a_thread() -> None:
    """Let a thread stop the scheduler at SIGTERM.

    Snakemake's handler waits for a lock. The main thread, in which it runs, may hold that lock.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    stop = JobScheduler.exit_gracefully

    def start(scheduler: JobScheduler, *_: Any) -> None:
        threading.Thread(target=stop, args=(scheduler,), daemon=True).start()

    JobScheduler.exit_gracefully = start


class Messages(logging.Handler):
    """The message of Snakemake's executor for each failed job, by job; `--quiet rules` hides it."""

    def __init__(self) -> None:
        super().__init__()
        self.of: dict[int, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first sentences of a message."""
        message = getattr(record, "rule_msg", None)
        if isinstance(message, str):
            self.of[getattr(record, "jobid", -1)] = _BOILERPLATE.split(message)[0].strip()


def failed_jobs(workflow: Any, messages: Mapping[int, str]) -> list[Failed]:
    """Return the jobs that failed, with the executor's message."""
    found = []
    for each in workflow.scheduler.failed:
        text = _scheduler_log(each)
        for job in _failed_of(each, text) if each.is_group() else [each]:
            log = Path(next(iter(job.log), ""))
            message = messages.get(workflow.dag.jobid(job), "")
            wildcards = tuple(map(str, job.wildcards))
            found.append(Failed(job.rule.name, wildcards, log, text, message))
    return found


def _failed_of(group: Any, scheduler_log: Path | None) -> list[Any]:
    """Return the failed jobs of a group, or the last that began if no log names any."""
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


def _asked(job: Any) -> Asked:
    values = [job.resources.get(name) for name in ("runtime", "mem_mb", "cpus_per_task")]
    # 0: a resource that is not given or not known yet
    minutes, megabytes, cores = (value if isinstance(value, int) else 0 for value in values)
    name = f"group {job.groupid}" if job.is_group() else job.rule.name
    partition = job.resources.get("slurm_partition")
    partition = None if partition is None else str(partition)
    return Asked(name, partition, minutes, megabytes, cores or job.threads)
