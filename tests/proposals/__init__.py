"""Tests of the proposals stage."""
