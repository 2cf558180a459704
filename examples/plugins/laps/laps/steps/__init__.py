"""Count laps."""
