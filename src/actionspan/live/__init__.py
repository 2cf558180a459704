"""Proposals while the video plays: from a file or a camera, snippet by snippet."""
