"""The zones of a folder's cameras, which a person draws in the page."""

from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Any

from actionspan.errors import InputError
from actionspan.storage.writing import write_json
from actionspan.video.zones import Cameras, as_json, check_zones, pattern_of, read_zones


class DrawnZones:
    """The zones in a file, `zones.json` of the folder; without the file there are none.

    Raises:
        InputError: The file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cameras: Cameras = read_zones(path if path.exists() else None)

    def of(self, video_id: str) -> dict[str, Any]:
        """Return the pattern of a video's zones, these zones, and the pattern of it alone."""
        pattern = pattern_of(self.cameras, video_id)
        drawn = as_json(self.cameras).get(pattern, [])
        return {"pattern": pattern or "*", "zones": drawn, "own": escape(video_id)}

    def save(self, video_id: str, pattern: str, zones: Any) -> None:
        """Keep the zones drawn on a video for all with names that match a pattern.

        Raises:
            InputError: They are not zones, or not the video's.
        """
        if not isinstance(pattern, str) or not fnmatchcase(video_id, pattern):
            raise InputError(f"{pattern}: not a pattern that the name {video_id} matches")
        content: dict[str, Any] = {**as_json(self.cameras), pattern: zones}
        cameras: dict[str, Any] = dict(check_zones(content, self.path.name))
        if not zones:
            del cameras[pattern], content[pattern]
        elif (longer := pattern_of(cameras, video_id)) != pattern:
            line = f"{video_id} has zones of its own, of {longer}: clear these, or change them"
            raise InputError(f"{pattern}: {line}")
        write_json(self.path, content)
        self.cameras = cameras
