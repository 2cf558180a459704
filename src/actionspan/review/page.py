"""The served page of a folder and the tables next to it."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from actionspan import __version__
from actionspan.dataset.recordings import Places
from actionspan.evaluation.operating import Point
from actionspan.propose.page import page_video
from actionspan.propose.result_folder import write_tables
from actionspan.propose.results import Result, Shown
from actionspan.report.content import Page, PageVideo
from actionspan.report.page import write_page
from actionspan.review.lists import Lists


class ServedPage:
    """The page of all videos that are looked at.

    Args:
        folder: Of all files of the review.
        places: Files and clocks of recordings.
        note: Returns the line under a video that a browser may not play, else an empty text.

    Raises:
        InputError: The file of earlier lists is damaged.
    """

    def __init__(self, folder: Path, places: Places, note: Callable[[Result], str]) -> None:
        self.path, self.version = folder / "index.html", 0
        self.due = 0.0  # by `time.monotonic`
        self._folder, self._places, self._note = folder, places, note
        self._lists = Lists(folder / "listed.json")

    def write(
        self,
        results: Sequence[Result],
        done: Collection[str],
        thresholds: Mapping[str, Sequence[Point]],
    ) -> None:
        """Write the page and the tables.

        Of many videos that takes long: the next is due when ten times as long has gone by.
        """
        started, shown = time.monotonic(), Shown()
        page = Page(
            title=self._folder.resolve().name.removesuffix("-review"),
            subtitle=f"actionspan {__version__}",
            videos=[self.video(result, shown, result.video_id in done) for result in results],
            thresholds=thresholds,
            served=True,
        )
        write_page(self.path, page)
        write_tables(self._folder, lambda: results, shown, self._places)
        self._lists.write()
        self.version += 1
        self.due = time.monotonic() + 10 * (time.monotonic() - started)

    def video(self, result: Result, shown: Shown, done: bool) -> PageVideo:
        """Return the page's content of a video; of a `done` one a person knows all events."""
        zones = str(result.source.get("zones", ""))
        listed = self._lists.follow(result.video_id, shown.events(result.events), zones)
        video = page_video(result, f"videos/{result.video_id}", self._note(result), shown)
        gone = () if done else listed.gone
        files = self._places.files(result.video_id)
        return replace(video, before=listed.before, gone=gone, files=files)
