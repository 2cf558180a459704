"""Paper 004, SBP: gradients, tables, figures and verdicts."""
