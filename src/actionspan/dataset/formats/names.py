"""Names by which annotations are found: those of a video, and those of the files themselves."""

ANNOTATION_SUFFIXES = (
    ".boris",
    ".csv",
    ".eaf",
    ".json",
    ".tsv",
    ".txt",
    ".xml",
)  # in a folder of files


def other_names(video_id: str) -> list[str]:
    """Return other names of a video: its id with ActivityNet's `v_` before it, and without.

    A look-up tries the id itself first: `x` and `v_x` may be two videos.
    """
    bare = [video_id.removeprefix("v_")] if video_id.startswith("v_") else []
    return [f"v_{video_id}", *bare]
