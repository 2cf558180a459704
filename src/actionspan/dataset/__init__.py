"""The dataset stage: videos and annotations in any known form to one canonical form."""
