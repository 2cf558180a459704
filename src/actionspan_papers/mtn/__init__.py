"""Paper 001: tables, claims and loss curves of the Multipath Temporal Network."""
