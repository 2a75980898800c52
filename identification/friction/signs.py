"""Wrong signs and units of a friction record, found from what its columns say of each other."""

import numpy as np

from mechsmith.identification.friction.checks import Finding, Kind
from mechsmith.identification.friction.shape_regressions import Windows
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


def check_signs(
    record: Record,
    *,
    velocity: str = "velocity",
    position: str = "position",
    force: str = "force",
    windows: Windows | None = None,
) -> tuple[Finding, ...]:
    """Return what contradicts itself: friction along the motion, a position that is not the velocity's integral.

    A unit that is wrong in position and velocity alike, or in the friction, contradicts nothing: it shows in an estimate at its
    bounds, or far from what is known of the joint.

    Parameters
    ----------
    record : Record
        With velocity and friction; the position is looked at where there is one.
    velocity, position, force : str
        Its columns.
    windows : Windows, optional
        Friction is looked at above the sliding velocity.
    """
    windows = windows or Windows()
    v, friction = record[velocity], record[force]
    findings = []
    sliding = np.abs(v) > windows.sliding_velocity
    if sliding.any():
        along = float(np.mean(np.sign(v[sliding]) * friction[sliding]))
        size = float(np.mean(np.abs(friction[sliding])))
        if along < 0.0 and -along > 0.5 * size:
            findings.append(
                Finding(
                    "sign",
                    True,
                    ("a0", "a2", "a3"),
                    f"{force!r} points along {velocity!r} while sliding, {along:.3g} in the mean: friction opposes motion, "
                    "and is positive with it here. Change the sign of one of them.",
                )
            )
    if position in record:
        findings += _against_position(record, velocity, position)
    return tuple(findings)


def _against_position(record: Record, velocity: str, position: str) -> list[Finding]:
    v, q = record[velocity], record[position]
    travelled = 0.5 * (v[1:] + v[:-1]) * np.diff(record.time)
    moved = np.diff(q)
    total = float(moved @ moved)
    if total == 0.0:
        return []
    ratio = float(travelled @ moved) / total
    told = ""
    if abs(ratio - 1.0) <= NEAR:
        return []
    if abs(ratio + 1.0) <= NEAR:
        told = "the sign of one of them is wrong"
    for factor, meaning in _FACTORS:
        if abs(abs(ratio) / factor - 1.0) <= NEAR:
            told = f"it looks like {meaning}"
    kind: Kind = "sign" if ratio < 0.0 else "unit"
    message = (
        f"the integral of {velocity!r} is {ratio:.4g} times the change of {position!r}"
        f"{f': {told}' if told else ''}. Mend the record."
    )
    return [Finding(kind, True, ("s0", "s1", "v0", "vd", "a2", "a3"), message)]
