"""Names of videos and of their files; standard library only, as the Snakefile needs them too."""

VIDEO_SUFFIXES = frozenset(
    ".3g2 .3gp .asf .avi .divx .f4v .ffconcat .flv .gif .m2ts .m4v .mkv .mov .mp4 .mpeg .mpg "
    ".mts .mxf .ogv .ts .vob .webm .wmv".split()
)
LONGEST_ID = 251  # bytes: names of files have up to 255, and results add a suffix
# in a folder of files
ANNOTATION_SUFFIXES = (".boris", ".csv", ".eaf", ".json", ".tsv", ".txt", ".xml")


def other_names(video_id: str) -> list[str]:
    """Return other names of a video: its id with ActivityNet's `v_` before it, and without.

    A look-up tries the id itself first: `x` and `v_x` may be two videos.
    """
    bare = [video_id.removeprefix("v_")] if video_id.startswith("v_") else []
    return [f"v_{video_id}", *bare]
