"""Annotation formats of VIA 2, Audacity and ELAN's exported tables, for actionspan."""
