"""ActivityNet's `v_`, the start of a video's id in some files and not in others."""


def other_names(video_id: str) -> list[str]:
    """Return other names of a video: its id with `v_` before it, and without.

    A look-up tries the id itself first: `x` and `v_x` may be two videos.
    """
    bare = [video_id.removeprefix("v_")] if video_id.startswith("v_") else []
    return [f"v_{video_id}", *bare]
