"""The page: videos next to their timelines, and a summary of the measurements."""
