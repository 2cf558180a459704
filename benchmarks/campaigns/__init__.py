"""Seeded campaigns of hostile input and injected faults; docs/reliability.md has their counts."""
