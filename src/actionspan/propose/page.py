"""The page of a folder of proposals."""

import shlex
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from actionspan import __version__
from actionspan.annotations.tables import Instance
from actionspan.arrays import temporal_iou
from actionspan.dataset.recordings import Places
from actionspan.evaluation.recall import TIOU_THRESHOLDS
from actionspan.proposals.segments import Row
from actionspan.propose.result_folder import ResultFolder, copy_path
from actionspan.propose.results import Result, Shown
from actionspan.report.content import Page, PageVideo, choose_videos, path_from
from actionspan.report.page import write_page
from actionspan.report.video import playable_file
from actionspan.storage.writing import read_json

_MOST = 1000  # videos: a page of more is slow to open and hundreds of megabytes large


def write_result_page(
    folder: ResultFolder,
    shown: Shown,
    files: Mapping[str, Path],
    truth: Mapping[str, Sequence[Instance]],
    model: Path | None,
    places: Places | None = None,
) -> None:
    """Write the page of all videos in a folder.

    `files` are by video id, of other videos the path that their result has; `truth` are instances
    by video id; the title names the file of the `model`. `places` are the files and clocks.
    """
    chosen, note = choose_videos([result.video_id for result in folder.results()], {}, _MOST)
    wanted = set(chosen)
    videos = [
        _page_video(
            result,
            files.get(result.video_id, Path(result.path)),
            folder.folder,
            shown,
            truth.get(result.video_id, ()),
        )
        for result in folder.results()
        if result.video_id in wanted
    ]
    if places:
        videos = [replace(one, files=places.files(one.video_id)) for one in videos]
    subtitle = " · ".join(filter(None, (_named(model), f"actionspan {__version__}", note)))
    page = Page(
        title=folder.folder.resolve().name,
        subtitle=subtitle,
        videos=videos,
        thresholds=learned(model).get("thresholds", {}) if model else {},
    )
    write_page(folder.page, page)


def learned(model: Path) -> Mapping[str, Any]:
    """Return what `actionspan learn` noted of a model, nothing if it did not make it."""
    path = model.with_name("learned.json")
    noted: Mapping[str, Any] = read_json(path) if path.is_file() else {}
    return noted


def _named(model: Path | None) -> str:
    """Return how the page calls a model: results/proposals/span/model.safetensors is span."""
    if model is None:
        return "motion, without a model"
    path = model.resolve()
    return f"model {path.parent.name if path.name == 'model.safetensors' else path.stem}"


def _page_video(
    result: Result, file: Path, folder: Path, shown: Shown, truth: Sequence[Instance]
) -> PageVideo:
    proposals = shown.proposals(result.proposals)
    copy = copy_path(folder, result.video_id)
    words = ("--video", str(file), "--out", str(copy))
    command = f"actionspan report video {shlex.join(words)}, then propose again"
    played, note = playable_file(file, copy, command, result.unplayable)
    video = page_video(result, path_from(folder, played or file), note, shown)
    known = replace(video, truth=truth, recall=_recall(truth, proposals))
    return known if file.is_file() else replace(known, frames_per_second=None)


def page_video(result: Result, file: str, note: str, shown: Shown) -> PageVideo:
    """Return the page's content of a result, its `file` as the page's browser opens it."""
    return PageVideo(
        video_id=result.video_id,
        file=file,
        note=note,
        duration_seconds=result.duration_seconds,
        frames_per_second=result.frames_per_second,
        proposals=shown.proposals(result.proposals),
        events=shown.events(result.events),
        curves=result.curves,
        thumbnails=[(seconds, b64decode(jpeg)) for seconds, jpeg in result.thumbnails],
    )


def _recall(instances: Sequence[Instance], proposals: Sequence[Row]) -> float | None:
    """Return the mean over 0.5:0.05:0.95 tIoU of the share of instances that a proposal finds."""
    if not instances:
        return None
    if not proposals:
        return 0.0
    tious = temporal_iou(
        [(one.start, one.end) for one in instances], [row["segment"] for row in proposals]
    )
    return float((tious.max(axis=1)[:, None] >= TIOU_THRESHOLDS).mean())
