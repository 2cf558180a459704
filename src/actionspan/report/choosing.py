"""Which videos of a large data set its page shows."""

import hashlib
from collections.abc import Collection, Mapping


def choose_videos(
    videos: Collection[str], recalls: Mapping[str, float], most: int
) -> tuple[list[str], str]:
    """Choose videos to look at, and say how they were chosen.

    Args:
        videos: The ids.
        recalls: Of the videos that are scored.
        most: At most so many are chosen.

    Returns:
        Ids in order, and a sentence that is empty if they are all.
    """
    if len(videos) <= most:
        return sorted(videos), ""
    scored = sorted((recalls[video], video) for video in videos if video in recalls)
    third = min(most // 3, len(scored) // 2)
    worst = [video for _, video in scored[:third]]
    best = [video for _, video in scored[len(scored) - third :]]
    chosen = {*worst, *best}
    # by a hash, so that a video that is added moves few others
    others = sorted(set(videos) - chosen, key=lambda video: hashlib.sha256(video.encode()).digest())
    drawn = others[: most - len(chosen)]
    said = f"{most:,} of {len(videos):,} videos: {len(drawn):,} drawn by chance"
    if third:
        said += f", the {third:,} of lowest and the {third:,} of highest recall"
    return sorted(chosen.union(drawn)), said
