"""What a person reads when jobs failed: a block each, with the last lines of its log."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SHOWN_JOBS = 4
SHOWN_LINES = 12
_WIDTH = 300
_TAIL_BYTES = 64 * 1024
# what SLURM itself says in its log, among what Snakemake prints there
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
        """The rule and what it worked on, e.g. `temporal_train mtn ring-2`."""
        return " ".join(filter(None, (self.rule, *self.wildcards)))


def failures_text(failed: Iterable[Failed]) -> str:
    """Return a block for each failed job, and one line for each beyond the first few.

    None failed in a run that was interrupted.
    """
    jobs = sorted(failed, key=lambda job: (job.rule, job.wildcards))
    blocks = [_block(job) for job in jobs[:SHOWN_JOBS]]
    rest = [f"{job.name} failed too: {job.log}" for job in jobs[SHOWN_JOBS:]]
    return "\n".join([*blocks, *rest]) or "interrupted; run it again to go on"


def _block(job: Failed) -> str:
    path, lines = job.log, _tail(job.log)
    said = [
        line
        for line in (_tail(job.scheduler_log) if job.scheduler_log else [])
        if any(word in line for word in _SCHEDULER_WORDS)
    ]
    if not lines and not said and job.scheduler_log:
        path, lines = job.scheduler_log, _tail(job.scheduler_log)
    head = f"{job.name} failed; its log is {path}"
    head += f", the scheduler's {job.scheduler_log}" if said else ""
    shown = [*lines[-SHOWN_LINES:], *dict.fromkeys(said[-2:]), *filter(None, [job.message])]
    shown = shown or ["(it says nothing)"]
    return "\n".join([head, *(f"    {line[:_WIDTH]}" for line in shown)])


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
