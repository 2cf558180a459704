"""Search: segments of videos that are like marked ones, or that words describe."""
