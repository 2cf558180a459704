"""Seeded campaigns of hostile input and injected faults; docs/reliability.md says what they show."""
