"""The file names of the embedded data set; imports nothing, so that the workflow can ask early."""

_SUFFIXES = {4: "mkv", 7: "avi"}  # by the last digit of the index; MP4 for all others


def demo_video_name(index: int) -> str:
    """Return the file name of one video."""
    return f"demo_{index:03d}.{_SUFFIXES.get(index % 10, 'mp4')}"


def demo_video_names(videos: int) -> list[str]:
    """Return the file names of the first `videos` videos."""
    return [demo_video_name(index) for index in range(videos)]
