"""The embedded data set: small untrimmed videos of a person who acts now and then.

The videos are rendered, so they need no download and their annotations are exact. Actions are
`fall`, `jump`, `sit`, `walk` and `wave` of an articulated figure. Between them the figure stands
and fidgets, while the camera shakes, pans and zooms, lights change and flicker, things roll, drive
and float past, and shots are cut: motion that is no action.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from actionspan.demo.names import demo_video_names
from actionspan.demo.scenario import LABELS, DemoSettings, VideoPlan, plan_video
from actionspan.files.storage import write_json
from actionspan.running.pool import worker_pool
from actionspan.running.progress import progress

__all__ = ["DemoSettings", "demo_annotations", "demo_video_names", "plan_demo", "render_demo"]


def plan_demo(settings: DemoSettings) -> list[VideoPlan]:
    """Write the scripts of all videos of the data set."""
    return [plan_video(settings, index) for index in range(settings.videos)]


def render_demo(folder: Path, settings: DemoSettings, processes: int) -> None:
    """Write the videos and `annotations.json` of the embedded data set into a folder.

    The bytes of each video depend on the seed, its index, the two durations and the versions of
    the libraries that draw and encode, not on the number of videos or processes.

    Args:
        folder: Where the files go; it is made when missing.
        settings: How many videos, how long, and from which seed.
        processes: How many videos are rendered at once.
    """
    plans = plan_demo(settings)
    render = partial(_render, folder)
    workers = min(processes, len(plans))
    if workers > 1:
        with worker_pool(workers) as pool:
            _run_all(pool.map(render, plans), len(plans))
    else:
        _run_all(map(render, plans), len(plans))
    write_json(folder / "annotations.json", demo_annotations(plans))


def _run_all(done: Iterable[None], total: int) -> None:
    for _ in progress(done, "rendering", total):
        pass


def _render(folder: Path, plan: VideoPlan) -> None:
    # Imported here, in the worker: OpenCV and PyAV are only needed to draw.
    from actionspan.demo.rendering import render_video

    render_video(folder / plan.name, plan)


def demo_annotations(plans: Iterable[VideoPlan]) -> Mapping[str, Any]:
    """Return the annotations of the planned videos in ActivityNet form."""
    taxonomy = [{"nodeId": 0, "nodeName": "Root", "parentId": None, "parentName": None}]
    for node, label in enumerate(LABELS, start=1):
        taxonomy.append({"nodeId": node, "nodeName": label, "parentId": 0, "parentName": "Root"})
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
