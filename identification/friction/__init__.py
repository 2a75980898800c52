"""Friction: closed-form starts, the published method, checks before and after, comparison of ways."""
