"""Serial robots: joint stiffness from deflections, where to measure it, maps of it, and regressors of dynamics."""
