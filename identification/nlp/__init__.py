"""Identification as a nonlinear programme, solved by IPOPT."""

from mechsmith.identification.nlp.ipopt import Ipopt

__all__ = ["Ipopt"]
