"""The page: videos beside their timelines, and a summary of what was measured."""
