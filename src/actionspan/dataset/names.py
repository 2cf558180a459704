"""ActivityNet's `v_`, which stands before a video's id in some files and not in others."""


def other_names(video_id: str) -> list[str]:
    """Return what else a video may be called: its id with `v_` before it, and without.

    Whoever looks a video up tries its own id first: `x` and `v_x` may be two videos.
    """
    bare = [video_id.removeprefix("v_")] if video_id.startswith("v_") else []
    return [f"v_{video_id}", *bare]
