"""Columns of a record that contradict each other: a rate, and what should be its integral."""

from dataclasses import dataclass

import numpy as np

from mechsmith.identification.record import Record

# Factors between units that are mixed up, and what to say of them.
_FACTORS = (
    (180.0 / np.pi, "degrees where radians are declared"),
    (np.pi / 180.0, "radians where degrees are declared"),
    (1000.0, "thousandths of the declared unit"),
    (0.001, "a thousand of the declared unit"),
    (60.0 / (2.0 * np.pi), "revolutions per minute where rad/s are declared"),
)
NEAR = 0.05  # relative: a factor this near to a known one is taken for it, one this near to 1 for right


@dataclass(frozen=True)
class Mismatch:
    """A rate whose integral is `ratio` times the change of the column that should be that integral.

    `cause` is empty where the ratio is that of no known mistake.
    """

    ratio: float
    cause: str
    message: str


def integral_mismatch(record: Record, rate: str, integral: str) -> Mismatch | None:
    """Return how a rate contradicts its integral, or None where it does not.

    The whole way from the first sample is compared, beside which quantisation of the integral is nothing.

    Parameters
    ----------
    record : Record
        With both columns.
    rate, integral : str
        Their names.
    """
    v, q = record[rate], record[integral]
    travelled = np.concatenate([[0.0], np.cumsum(0.5 * (v[1:] + v[:-1]) * np.diff(record.time))])
    moved = q - q[0]
    total = float(moved @ moved)
    if total == 0.0:
        return None
    ratio = float(travelled @ moved) / total
    if abs(ratio - 1.0) <= NEAR:
        return None
    cause = "the sign of one of them is wrong" if abs(ratio + 1.0) <= NEAR else ""
    for factor, meaning in _FACTORS:
        if abs(abs(ratio) / factor - 1.0) <= NEAR:
            cause = f"it looks like {meaning}"
    message = f"the integral of {rate!r} is {ratio:.4g} times the change of {integral!r}"
    return Mismatch(ratio, cause, f"{message}{f': {cause}' if cause else ''}. Mend the record.")
