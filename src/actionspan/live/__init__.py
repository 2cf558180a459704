"""Proposals while the video plays."""
