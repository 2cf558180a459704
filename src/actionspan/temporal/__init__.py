"""The temporal stage: networks that give start, actionness and end probabilities."""
