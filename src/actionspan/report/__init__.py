"""The page: videos next to their timelines, and a summary of what was measured."""
