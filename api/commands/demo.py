"""placeholder while writing"""
def demo() -> None:
    """x"""
