"""Tests of the evaluation stage."""
