"""Parallel robots: postures, self-calibration, and the planar robot's records."""
