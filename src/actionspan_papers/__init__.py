"""The papers' published values, claims, tables and figures, held against our own runs."""
