"""The output of a run: a line for each job or stage, and a block for each job that failed.

Snakemake's log in `.snakemake/log/` has the rest.
"""

import logging
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from actionspan.workflow.pace import Pace, about
from actionspan.workflow.steps import STAGES

_WIDTH = 110
_SILENT_SECONDS = 20.0  # a run by stages prints a line at least this often
_OF = re.compile(r"^(.+: \d+/\d+ \w+) in ")  # as running.progress writes it
_SILENT = ("workflow_started", "job_started", "job_finished", "group_info")
_INTERRUPTED = "interrupted; run it again to resume"
_BEGAN = time.time()  # this run
_NOISE = (
    *("Select jobs to execute", "Removing temporary", "Would remove temporary", "Group jobs:"),
    *("Conda environments: ignored", "Singularity containers: ignored"),
)


def print_briefly(logger: logging.Logger, settings: Any, cores: int = 1) -> None:
    """Make Snakemake print a line for each job, unless its `output_settings` ask for more.

    With `--quiet rules` it is a line for each stage and, unless `progress` is quiet too, every 20
    seconds one of the progress and the time left on these `cores`; in a dry run none. The log keeps
    all.
    """
    if settings.verbose or settings.printshellcmds or settings.show_failed_logs:
        return
    quiet = {each.name for each in settings.quiet or ()}
    by_stage = "RULES" in quiet and "ALL" not in quiet and not settings.dryrun
    # Snakemake does not report which jobs are done where progress is quiet.
    pace = Pace(cores) if by_stage and "PROGRESS" not in quiet else None
    for handler in list(logger.handlers):
        if handler.name == "DefaultStreamHandler":
            logger.removeHandler(handler)
            logger.addHandler(_Brief(handler, pace, by_stage=by_stage))
        elif handler.name == "DefaultLogFileHandler" and by_stage:
            for each in handler.filters:  # else jobs are missing in the log, too
                if hasattr(each, "quiet"):
                    each.quiet = ()


class _Brief(logging.Handler):
    """Stands before the handler that would print twenty lines for each job."""

    def __init__(self, printer: logging.Handler, pace: Pace | None, *, by_stage: bool) -> None:
        super().__init__()
        self._printer, self._pace, self._by_stage = printer, pace, by_stage
        self._printed = time.monotonic()
        self._stages: set[str] = set()
        self._started: dict[int, str] = {}
        self._logs: dict[int, Path] = {}  # of the jobs at work
        self._total = 0
        self._interrupted = False
        self._alone = threading.Lock()  # one thread prints the notes of the other

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record of Snakemake, shorter or not at all."""
        try:
            with self._alone:
                line = self._line(record.getMessage(), vars(record))
        except (KeyError, AttributeError):  # another version of Snakemake
            line = None
        # --quiet rules hides the lines of a job, but not the line of its stage
        is_stage = self._by_stage and bool(line) and vars(record)["event"] == "job_info"
        if line == "" or not (is_stage or self._printer.filter(record)):
            return
        if line is not None:  # with its event the printer would print all of it
            record = logging.makeLogRecord({**vars(record), "event": None, "msg": line})
        self._printer.emit(record)
        self._printed = time.monotonic()

    def _line(self, text: str, fields: dict[str, Any]) -> str | None:
        """Return the text to print: an empty line for nothing, None for all of Snakemake's."""
        event = fields.get("event")
        if event == "run_info":  # a dry run has its table twice
            again, self._total = self._total > 0, fields["stats"]["total"]
            if self._pace is not None and not again:
                self._pace.plan(fields["stats"])
                threading.Thread(target=self._keep_telling, args=(self._pace,), daemon=True).start()
            return "" if again or self._pace is not None else None
        if event == "job_info":
            name = " ".join([fields["rule_name"], *filter(None, fields["wildcards"].values())])
            self._started[fields["jobid"]] = name
            place = f"[{len(self._started)}/{self._total}]"
            if self._pace is not None:
                self._pace.start(fields["jobid"], fields["rule_name"])
                self._logs[fields["jobid"]] = Path(next(iter(fields["log"]), ""))
            if self._by_stage:
                return self._stage_line(place, fields["rule_name"].split("_"))
            reasons, other = fields["reason"].split("; "), "Input files updated by another"
            own = [each for each in reasons if not each.startswith(other)]
            line = f"{place} {name}: {'; '.join(own or reasons)}"
            return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
        if event == "job_finished" and self._pace is not None:
            self._pace.finish(fields["job_id"])
            del self._logs[fields["job_id"]]
        if event == "job_error":
            # of a group all are reported to have failed, as are jobs that Ctrl-C reaches first
            if fields["indent"] or self._interrupted or any(map(_ended_by_hand, fields["log"])):
                return ""
            name = self._started.get(fields["jobid"], fields["rule_name"])
            return f"{name} failed: {', '.join(fields['log'])}"
        self._interrupted |= text.startswith("Terminating processes on user request")
        silent = event in _SILENT or (event is None and text.startswith(_NOISE))
        silent |= event == "progress" and fields["done"] < fields["total"]
        silent |= event == "resources_info" and self._by_stage
        # the command of the job that failed
        return "" if silent or (event == "error" and "\nCalledProcessError" in text) else None

    def _stage_line(self, place: str, rule: list[str]) -> str:
        # where ours is a module, a name of its own stands before
        stage = next((part for part in rule if part in STAGES), "")
        if not stage or stage in self._stages:
            return ""
        self._stages.add(stage)
        if self._pace is None:
            return f"{place} {stage}"
        whole = f", all {about(self._pace.seconds_left())}" if len(self._stages) == 1 else ""
        seconds = self._pace.seconds_left(lambda rule: stage in rule.split("_"))
        return f"{place} {stage}: {about(seconds)}{whole}"

    def _keep_telling(self, pace: Pace) -> None:
        """Print the progress and the time left, whenever nothing else is printed for long."""
        while True:
            time.sleep(max(_SILENT_SECONDS - (time.monotonic() - self._printed), 0.01))
            with self._alone:
                if self._interrupted or pace.seconds_left() <= 0:
                    return
                if time.monotonic() - self._printed < _SILENT_SECONDS:
                    continue
                done, logs = len(self._started) - len(self._logs), self._logs.values()
                found = [_OF.match((_tail(path) or [""])[-1]) for path in logs]
                now = [each[1] for each in found if each] or sorted(set(pace.rules_running))
                line = f"[{done}/{self._total}] done, {about(pace.seconds_left())} left: "
                record = {"msg": line + "; ".join(now), "levelno": logging.INFO}
                self._printer.emit(logging.makeLogRecord(record))
                self._printed = time.monotonic()


SHOWN_JOBS = 4
SHOWN_LINES = 12
_LOG_WIDTH = 300
_TAIL_BYTES = 64 * 1024
# SLURM's own lines in its log, among Snakemake's
_SCHEDULER_WORDS = ("slurmstepd: error", "srun: error", "CANCELLED", "oom")


@dataclass(frozen=True)
class Failed:
    """A job that failed: its rule, wildcards, log, the scheduler's log and the executor's words."""

    rule: str
    wildcards: tuple[str, ...]
    log: Path
    scheduler_log: Path | None = None
    message: str = ""

    @property
    def name(self) -> str:
        """The rule and its wildcards, e.g. `temporal_train mtn ring-2`."""
        return " ".join(filter(None, (self.rule, *self.wildcards)))


def failures_text(failed: Iterable[Failed]) -> str:
    """Return a block for each failed job, and one line for each beyond the first few.

    None failed in a run that was interrupted.
    """
    failed = [job for job in failed if not _ended_by_hand(job.log)]
    jobs = sorted(failed, key=lambda job: (job.rule, job.wildcards))
    blocks = [_block(job) for job in jobs[:SHOWN_JOBS]]
    rest = [f"{job.name} failed too: {job.log}" for job in jobs[SHOWN_JOBS:]]
    return "\n".join([*blocks, *rest]) or _INTERRUPTED


def _ended_by_hand(log: str | Path) -> bool:
    """Return whether Ctrl-C ended a job in this run; one that never began has an older log."""
    path = Path(log)
    lines = _tail(path)
    return bool(lines) and lines[-1].endswith(_INTERRUPTED) and path.stat().st_mtime >= _BEGAN


def _block(job: Failed) -> str:
    path, lines = job.log, _tail(job.log)
    scheduler = _tail(job.scheduler_log) if job.scheduler_log else []
    reasons = [line for line in scheduler if any(word in line for word in _SCHEDULER_WORDS)]
    if not lines and not reasons and job.scheduler_log:
        path, lines = job.scheduler_log, scheduler
    head = f"{job.name} failed; its log is {path}"
    head += f", the scheduler's {job.scheduler_log}" if reasons else ""
    shown = [*lines[-SHOWN_LINES:], *dict.fromkeys(reasons[-2:]), *filter(None, [job.message])]
    shown = shown or ["(it is empty)"]
    return "\n".join([head, *(f"    {line[:_LOG_WIDTH]}" for line in shown)])


def _tail(path: Path) -> list[str]:
    """Return the last lines of a text, without empty ones; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    # a progress bar writes its line again and again
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.split("\n")]
    return [line for line in lines if line]
