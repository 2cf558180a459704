"""Paper 000: the ring against a parameter server, by its printed fits and by timed runs."""
