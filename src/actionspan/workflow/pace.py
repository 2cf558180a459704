"""How much of a run is left: by its jobs that are done, and before these by the demo's."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping

# Seconds of a job of `make demo` on 2 cores; of all other rules 1. A run soon has its own.
_DEMO = {
    **{"dataset_demo": 16, "video_frames": 6, "video_flow": 7, "features_extract": 16},
    **{"temporal_train": 10, "scaling_run": 12, "proposals_select": 12, "proposals_generate": 7},
    **{"proposals_classifier": 5, "features_rescale": 3, "features_sequences": 3},
    **{"evaluation_evaluate": 2, "report_index": 4},
}


class Pace:
    """The jobs of a run by rule, planned, at work and done.

    Args:
        cores: That jobs share, busy for 7 of 10 seconds until some are done.
        now: Seconds of a clock.
    """

    def __init__(self, cores: int, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._cores, self._began = now, cores, now()
        self._left: dict[str, int] = {}
        self._running: dict[int, tuple[str, float]] = {}
        self._done: defaultdict[str, list[float]] = defaultdict(list)

    def plan(self, jobs: Mapping[str, int]) -> None:
        """Take the number of jobs of each rule."""
        self._left, self._began = (
            {rule: jobs[rule] for rule in jobs if rule != "total"},
            self._now(),
        )

    def start(self, job: int, rule: str) -> None:
        """Note that a job begins."""
        self._running[job] = rule, self._now()

    def finish(self, job: int) -> None:
        """Note that a job is done."""
        rule, began = self._running.pop(job)
        self._left[rule] = self._left.get(rule, 1) - 1
        self._done[rule].append(self._now() - began)

    @property
    def rules_running(self) -> list[str]:
        """The rules of the jobs at work, the longest at work first."""
        return [rule for rule, _ in self._running.values()]

    def seconds_left(self, of: Callable[[str], bool] = lambda rule: True) -> float:
        """Return the seconds until the jobs of some rules are done."""
        done = sum(map(sum, self._done.values()))
        demo = sum(_DEMO.get(rule, 1) * len(each) for rule, each in self._done.items())
        scale = (done + 10) / (demo + 10)  # a few short jobs mean little
        spent = [(rule, self._now() - began) for rule, began in self._running.values()]
        work = 0.0
        for rule, count in self._left.items():
            own = self._done[rule]
            each = sum(own) / len(own) if own else scale * _DEMO.get(rule, 1)
            begun = sum(min(seconds, each) for name, seconds in spent if name == rule)
            work += of(rule) * (count * each - begun)
        used = done + sum(seconds for _, seconds in spent)
        at_once = (used + 7 * self._cores) / (self._now() - self._began + 10)
        return work / max(at_once, 1.0)


def about(seconds: float) -> str:
    """Return a length of time in words."""
    if seconds < 90:
        return f"about {max(10 * round(seconds / 10), 5)} s"
    return f"about {seconds / 60:.1f} minutes"
