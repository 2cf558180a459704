"""The settings of the page; the Snakefile reads them, so imports stay light."""

from dataclasses import dataclass

from actionspan.annotations.formats.records import Subset
from actionspan.settings import Checked, option


@dataclass(frozen=True, kw_only=True)
class PageSettings(Checked):
    """Which videos the page shows, and how many images of each."""

    subsets: tuple[Subset, ...] = option(
        ("validation", "training", "testing"), "the subset of the videos shown", fewest=1
    )
    most_videos: int = option(
        200,
        "where there are more: a third of lowest recall, a third of highest, the rest by chance",
        least=1,
    )
    thumbnails: int = option(16, "small images of each video; 0: none", least=0, most=200)
