"""A small transformer on clips, in which every patch of every frame sees all others.

Its lower layers can keep the backward paths of some patches only (paper 004, SBP), by frames or as
a checkerboard in space and time.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from actionspan_papers.sbp.node_rows import checked_rows, take
from actionspan_papers.sbp.transformer import Form, TransformerEncoder


class VideoTransformer(nn.Module):
    """(B, T, C, H, W) clips to (B, classes) scores: patches, layers, the mean of all, a classifier.

    Nodes are patches of t frames, row by row and frame by frame; each has a learned position in
    time and one in the picture.
    """

    def __init__(
        self,
        classes: int,
        *,
        frames: int = 8,
        height: int = 64,
        width: int = 64,
        channels: int = 1,
        patch: tuple[int, int, int] = (1, 8, 8),
        features: int = 64,
        heads: int = 4,
        layers: int = 6,
        top: int = 2,
        form: Form = "masked",
        fused: bool = True,
    ) -> None:
        """Make the network.

        Args:
            classes: How many scores.
            frames: T of a clip.
            height: H of its frames, in pixels.
            width: W of its frames, in pixels.
            channels: C, maps of a frame.
            patch: Frames, rows and columns of a patch; each divides the clip's.
            features: D, of a node.
            heads: Of attention; divides the features.
            layers: How many.
            top: How many of them always keep all backward paths.
            form: As for `TransformerLayer`.
            fused: As for `TransformerLayer`.

        Raises:
            ValueError: An argument is not allowed.
        """
        super().__init__()
        sizes = frames, height, width
        if min(patch) < 1 or any(size % part for size, part in zip(sizes, patch, strict=True)):
            raise ValueError(f"patch {patch}: each number divides that of the clip, {sizes}")
        t, h, w = (size // part for size, part in zip(sizes, patch, strict=True))
        self.clip = frames, channels, height, width
        """The shape of a clip."""
        self.grid = t, h, w
        """Patches in time, in a column and in a row."""
        self.embedding = nn.Conv3d(channels, features, patch, stride=patch)
        self.time = nn.Parameter(0.02 * torch.randn(t, 1, features))
        self.place = nn.Parameter(0.02 * torch.randn(h * w, features))
        self.encoder = TransformerEncoder(features, heads, layers, top=top, form=form, fused=fused)
        self.norm = nn.LayerNorm(features)
        self.classifier = nn.Linear(features, classes)

    def forward(
        self,
        clips: Tensor,
        kept: Tensor | Sequence[Tensor] | None = None,
        *,
        only: Tensor | None = None,
    ) -> Tensor:
        """Return the class scores before softmax, (B, classes).

        Args:
            clips: (B, T, C, H, W).
            kept: Rows of nodes as `TransformerEncoder.forward` takes them.
            only: (k,) or (B, k) rows of nodes; all others are left out of both passes (frame
                dropout). `kept` then counts among these.
        """
        nodes = self.nodes(clips)  # (B, N, D)
        if only is not None:
            only = checked_rows(only, nodes.shape[1]).to(nodes.device)
            nodes = take(nodes, only)
        nodes = self.encoder(nodes, kept)
        scores: Tensor = self.classifier(self.norm(nodes).mean(dim=1))
        return scores

    def nodes(self, clips: Tensor) -> Tensor:
        """Return the (B, N, D) nodes of (B, T, C, H, W) clips, with their positions.

        Raises:
            ValueError: The clips are not of the network's length and size.
        """
        if clips.dim() != 5 or tuple(clips.shape[1:]) != self.clip:
            raise ValueError(f"clips of shape {tuple(clips.shape)}: (B, *{self.clip})")
        patches: Tensor = self.embedding(clips.transpose(1, 2))  # (B, D, t, h, w)
        positions = (self.time + self.place).flatten(0, 1)  # (N, D)
        return patches.flatten(2).transpose(1, 2) + positions

    def frame_nodes(self, frames: Tensor) -> Tensor:
        """Return all nodes of some frames, (…, k h w) rows of (…, k) frames from 0 to t - 1."""
        _, h, w = self.grid
        inside = torch.arange(h * w, device=frames.device)
        return (frames.unsqueeze(-1) * (h * w) + inside).flatten(-2)
