"""Training and validation videos, where the annotations name no subsets."""

import hashlib
from collections.abc import Collection, Mapping


def split_subsets(
    videos: Mapping[str, bool], validation_fraction: float, named: Collection[str] = ()
) -> dict[str, str]:
    """Put each video into training or validation by the hash of its id.

    Other videos have no influence, except that neither subset lacks a video with an action: if one
    would, it takes the video whose hash is nearest.

    Args:
        videos: Whether something happens in each, by id.
        validation_fraction: The part held out; with 0 and 1 a subset stays empty.
        named: Subsets in which other videos are, by the annotations.

    Returns:
        The subset of each video by id.
    """
    bar = validation_fraction * 2**64
    places = {video_id: _place(video_id) for video_id in videos}
    subsets = {
        video_id: "validation" if place < bar else "training" for video_id, place in places.items()
    }
    active = sorted((video_id for video_id in videos if videos[video_id]), key=places.__getitem__)
    if 0 < validation_fraction < 1 and len(active) > 1:
        held_out = {subsets[video_id] for video_id in active} | set(named)
        if "validation" not in held_out:
            subsets[active[0]] = "validation"
        if "training" not in held_out:
            subsets[active[-1]] = "training"
    return subsets


def _place(video_id: str) -> int:
    return int.from_bytes(hashlib.sha256(b"subset " + video_id.encode()).digest()[:8], "big")
