"""Tests of the scaling stage."""
