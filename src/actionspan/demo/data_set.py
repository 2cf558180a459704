"""The embedded data set: small untrimmed videos of a person who acts now and then.

The videos are rendered, so they need no download and their annotations are exact. Actions are
`fall`, `jump`, `sit`, `walk` and `wave` of an articulated figure. Between them the figure stands
and fidgets, while the camera shakes, pans and zooms, lights change and flicker, things roll, drive
and float past, and shots are cut: motion that is not an action.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from actionspan.demo.scenario import LABELS, DemoSettings, VideoPlan, plan_video
from actionspan.jobs.apart import worker_pool
from actionspan.jobs.progress import progress
from actionspan.storage.writing import write_json


def plan_demo(settings: DemoSettings) -> list[VideoPlan]:
    """Return the plans of all videos of the data set."""
    return [plan_video(settings, index) for index in range(settings.videos)]


def render_demo(folder: Path, settings: DemoSettings, processes: int) -> None:
    """Write the videos and `annotations.json` of the embedded data set into a folder.

    The bytes of each video depend on the seed, its index, the two durations and the versions of
    the libraries that draw and encode, not on the number of videos or processes.
    """
    plans = plan_demo(settings)
    workers = min(processes, len(plans))
    with worker_pool(workers) if workers > 1 else nullcontext() as pool:
        rendered = (pool.map if pool else map)(partial(_render, folder), plans)
        for _ in progress(rendered, "rendering", len(plans)):
            pass
    write_json(folder / "annotations.json", _annotations(plans))


def _render(folder: Path, plan: VideoPlan) -> None:
    # Imported here, in the worker: OpenCV and PyAV are only needed to draw.
    from actionspan.demo.rendering import render_video

    render_video(folder / plan.name, plan)


def _annotations(plans: Sequence[VideoPlan]) -> dict[str, Any]:
    """Return the annotations of the planned videos in ActivityNet format."""
    taxonomy = [{"nodeId": 0, "nodeName": "Root", "parentId": None, "parentName": None}]
    taxonomy += [
        {"nodeId": node, "nodeName": label, "parentId": 0, "parentName": "Root"}
        for node, label in enumerate(LABELS, start=1)
    ]
    database = {
        plan.name.split(".")[0]: {
            "subset": plan.subset,
            "duration": plan.duration_seconds,
            "resolution": f"{plan.width}x{plan.height}",
            "fps": float(plan.fps),
            "annotations": [
                {"label": action.kind, "segment": [action.start, action.end]}
                for action in plan.actions
            ],
        }
        for plan in plans
    }
    return {"version": "actionspan demo 1", "taxonomy": taxonomy, "database": database}
