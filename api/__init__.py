"""mechsmith: mechanics in SymPy, verified, generated to CasADi and C, identified from data."""

__version__ = "0.1.0"
