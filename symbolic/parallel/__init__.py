"""Parallel robots: mechanisms with closed loops, as data and as models."""
