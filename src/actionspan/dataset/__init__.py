"""The dataset stage: videos and annotations in any known format to one canonical format."""
