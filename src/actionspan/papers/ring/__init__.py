"""Paper 000: simulated ranks and the bounds of the ring and the parameter server."""
