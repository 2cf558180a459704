"""What people do with events: clips of them, time budgets, tables by frame, agreement."""
