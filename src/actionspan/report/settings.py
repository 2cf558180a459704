"""Settings of the page of a data set."""

from dataclasses import dataclass

from actionspan.dataset.formats.records import Subset
from actionspan.settings import Checked, option


@dataclass(frozen=True, kw_only=True)
class PageSettings(Checked):
    """Which videos the page shows, and how many pictures of each."""

    subsets: tuple[Subset, ...] = option(
        ("validation", "training", "testing"), "whose videos it shows", fewest=1
    )
    most_videos: int = option(
        200,
        "where there are more: a third of lowest recall, a third of highest, the rest by chance",
        least=1,
    )
    thumbnails: int = option(16, "small pictures of each video; 0: none", least=0, most=200)
