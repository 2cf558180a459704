"""The stages on one video, without the workflow."""
