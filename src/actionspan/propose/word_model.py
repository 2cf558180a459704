"""A model of words and pictures, or of words and clips, and how videos are encoded for it."""

from collections.abc import Mapping, Sequence
from typing import Any

from actionspan.arrays import Float32
from actionspan.features.hub_encoders import encoder_name, pinned
from actionspan.features.settings import Device, EncoderSettings, VideoSettings
from actionspan.networks.hub import find_source
from actionspan.networks.hub_clips import sees_clips
from actionspan.networks.hub_words import Texts, text_vectors, words_digest
from actionspan.storage.writing import digest
from actionspan.video.settings import FrameSettings

WORDINGS = ("{}", "a photo of {}", "a video of {}", "a scene in which {}")
# X-CLIP learned 8 frames of two seconds
_CLIP_FRAMES = FrameSettings(mover_side=0, clip_rate=4.0, clip_side=256)
_CLIP_STRIDE = 2


class WordModel:
    """A model by its name or folder.

    Raises:
        InputError: It cannot be had.
    """

    def __init__(self, name: str, device: Device | None = None) -> None:
        name = encoder_name(name)
        self.source = find_source(name)
        self.stream = "clip" if sees_clips(self.source) else "rgb"
        frames = FrameSettings(mover_side=0)
        chosen: dict[str, Any] = {"rgb_encoder": name}
        if self.stream == "clip":
            frames, chosen = _CLIP_FRAMES, {"clip_encoder": name, "clip_stride": _CLIP_STRIDE}
        chosen |= {"flow_encoder": "none", "mover": False, "device": device or "auto"}
        encoders = pinned(EncoderSettings(**chosen))
        self.settings = VideoSettings(frames=frames, encoders=encoders)
        self.digest = str(encoders.clip_digest or encoders.rgb_digest)
        self.made_by = digest(self.digest, words_digest(self.source))

    def texts(self, wordings: Sequence[str]) -> Texts:
        """Return the vectors of wordings as they are.

        Raises:
            InputError: The model knows no words.
        """
        return text_vectors(self.source, wordings)

    def of(self, streams: Mapping[str, Float32]) -> Float32:
        """Return the vectors (T, D) of a video's snippets that lie where those of words do."""
        return streams[self.stream]


def worded(texts: Sequence[str]) -> list[str]:
    """Return texts in several wordings."""
    return [wording.format(text) for text in texts for wording in WORDINGS]
