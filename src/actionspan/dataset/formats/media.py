"""Media files as annotation tools name them: a path or an address, whose stem is the video's id."""

import re
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import unquote, urlsplit

from actionspan.dataset.formats.records import Record
from actionspan.dataset.sharding import VIDEO_SUFFIXES

SUFFIXES = VIDEO_SUFFIXES | {".aac", ".flac", ".m4a", ".mp3", ".ogg", ".wav"}
_ADDRESS = re.compile(r"(?:https?|s3|gs)://")
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def video_id_of(media: str) -> str:
    """Return the id of the video that a path or an address names."""
    path = media.strip()
    if _ADDRESS.match(path):
        try:
            path = unquote(urlsplit(path).path)
        except ValueError:  # such as https://[
            return path
    elif path.startswith("file://"):
        path = path.removeprefix("file://").lstrip("/")
    name = (PureWindowsPath if _WINDOWS.match(path) else PurePosixPath)(path).name
    stem, dot, suffix = name.rpartition(".")
    return stem if stem and dot + suffix.lower() in SUFFIXES else name


def media_name(record: Record) -> str:
    """Return the name under which a tool looks for a video: that of its file, if it is known."""
    return record.media or f"{record.video_id}.mp4"
