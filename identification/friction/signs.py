"""Wrong signs and units of a friction record, found from what its columns say of each other."""

import numpy as np

from mechsmith.identification.consistency import integral_mismatch
from mechsmith.identification.friction.checks import Finding, Kind
from mechsmith.identification.friction.shape_regressions import Windows
from mechsmith.identification.record import Record


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
    mismatch = integral_mismatch(record, velocity, position)
    if mismatch is None:
        return []
    kind: Kind = "sign" if mismatch.ratio < 0.0 else "unit"
    return [Finding(kind, True, ("s0", "s1", "v0", "vd", "a2", "a3"), mismatch.message)]
