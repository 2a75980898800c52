"""Placeholder."""


def check_dimensions(model):
    return None
