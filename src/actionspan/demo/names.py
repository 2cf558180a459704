"""The file names of the embedded data set; imports nothing, so that the workflow may ask early."""

SUFFIXES = {4: "mkv", 7: "avi"}
"""The container by the last digit of the index, where it is not MP4."""


def demo_video_name(index: int) -> str:
    """Return the file name of one video."""
    return f"demo_{index:03d}.{SUFFIXES.get(index % 10, 'mp4')}"


def demo_video_names(videos: int) -> list[str]:
    """Return the file names of the first `videos` videos."""
    return [demo_video_name(index) for index in range(videos)]
