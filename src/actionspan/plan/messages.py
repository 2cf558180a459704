"""What a run prints: a line for each job. Snakemake's log in `.snakemake/log/` has the rest."""

import logging
from typing import Any

_WIDTH = 110
# what the line of a job says already, or nobody asked for
_UNSAID = ("workflow_started", "job_started", "job_finished", "group_info")
_FOLLOWS = "Input files updated by another job"
_NOISE = (
    "Select jobs to execute",
    "Group jobs: inactive",
    "Conda environments: ignored",
    "Singularity containers: ignored",
    "Removing temporary output",
    "Would remove temporary output",
)


def print_briefly(logger: logging.Logger, settings: Any) -> None:
    """Make Snakemake print a line for each job, unless a flag asks for more.

    Args:
        logger: Snakemake's.
        settings: Its `output_settings`.
    """
    if settings.verbose or settings.printshellcmds or settings.show_failed_logs:
        return
    for handler in [each for each in logger.handlers if each.name == "DefaultStreamHandler"]:
        logger.removeHandler(handler)
        logger.addHandler(_Brief(handler))


class _Brief(logging.Handler):
    """Stands before the handler that would print twenty lines for each job."""

    def __init__(self, printer: logging.Handler) -> None:
        super().__init__()
        self._printer = printer
        self._started: dict[int, str] = {}
        self._total = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record of Snakemake, shorter or not at all."""
        try:
            line = self._line(record, vars(record))
        except (KeyError, AttributeError):  # another version of Snakemake
            line = None
        if line == "" or not self._printer.filter(record):
            return
        if line is not None:  # with its event the printer would print all of it
            record = logging.makeLogRecord({**vars(record), "event": None, "msg": line})
        self._printer.emit(record)

    def _line(self, record: logging.LogRecord, said: dict[str, Any]) -> str | None:
        """Return what to print: an empty line for nothing, None for all that Snakemake says."""
        event = said.get("event")
        if event == "run_info":  # a dry run has its table twice
            again, self._total = self._total > 0, said["stats"]["total"]
            return "" if again else None
        if event == "job_info":
            name = " ".join([said["rule_name"], *filter(None, said["wildcards"].values())])
            self._started[said["jobid"]] = name
            line = f"[{len(self._started)}/{self._total}] {name}: {_own(said['reason'])}"
            return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
        if event == "job_error":
            name = self._started.get(said["jobid"], said["rule_name"])
            # of a group, all are said to have failed
            return "" if said["indent"] else f"{name} failed: {', '.join(said['log'])}"
        if event == "progress":
            return None if said["done"] == said["total"] else ""
        text = record.getMessage()
        if event == "error":  # the command of the job that failed
            return "" if "\nCalledProcessError" in text else None
        return "" if event in _UNSAID or (event is None and text.startswith(_NOISE)) else None


def _own(reason: str) -> str:
    """Return why a job runs, without what follows from others if there is more to say."""
    parts = reason.split("; ")
    return "; ".join([part for part in parts if not part.startswith(_FOLLOWS)] or parts)
