"""Friction models compared on a second trajectory: by way and joint, as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mechsmith.identification.friction.shape_regressions import Windows, coulomb_viscous, sliding_regression
from mechsmith.identification.metrics import max_percentage_error, wape
from mechsmith.identification.problem import ProblemError
from mechsmith.identification.record import Record

if TYPE_CHECKING:
    from mechsmith.codegen.simulator import Simulator

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint on the trajectory that validates.

    Parameters
    ----------
    name : str
        Of the joint.
    record : Record
        With the columns that drive the friction model, and the measured torque.
    torque : str
        Column of the measured torque, rigid-body torque included where `rigid_body` names it.
    rigid_body : str, optional
        Column of the torque that the rigid body takes: total = rigid body + friction.
    """

    name: str
    record: Record
    torque: str = "force"
    rigid_body: str | None = None


@dataclass(frozen=True, eq=False)
class WayFit:
    """How one way predicts one joint.

    Parameters
    ----------
    way, joint : str
        Which.
    wape, max_percentage_error : float
        %, of the total torque.
    predicted : array
        The total torque, shape (n,).
    """

    way: str
    joint: str
    wape: float
    max_percentage_error: float
    predicted: Array


@dataclass(frozen=True, eq=False)
class WayTable:
    """The comparison of ways over joints, in the order given."""

    fits: tuple[WayFit, ...]

    def __getitem__(self, key: tuple[str, str]) -> WayFit:
        """Return the fit of (way, joint)."""
        for fit in self.fits:
            if (fit.way, fit.joint) == key:
                return fit
        known = ", ".join(f"({fit.way}, {fit.joint})" for fit in self.fits)
        raise KeyError(f"validation: there is no {key}; there are {known}.")

    def table(self) -> str:
        """Return WAPE / maxPE in %, one line for each way and one column for each joint."""
        joints = list(dict.fromkeys(fit.joint for fit in self.fits))
        ways = list(dict.fromkeys(fit.way for fit in self.fits))
        width = max(len(way) for way in ways)
        lines = [" " * width + "".join(f"{joint:>20}" for joint in joints)]
        for way in ways:
            cells = (self[way, joint] for joint in joints)
            texts = (f"{cell.wape:.3f} / {cell.max_percentage_error:.2f}" for cell in cells)
            lines.append(f"{way:<{width}}" + "".join(f"{text:>20}" for text in texts))
        return "\n".join(lines) + "\nWAPE / maxPE of the total torque, %"


def compare_ways(
    simulator: "Simulator", joints: Sequence[Joint], ways: Mapping[str, Sequence[Mapping[str, float]]]
) -> WayTable:
    """Return how each way predicts each joint's torque.

    Parameters
    ----------
    simulator : Simulator
        Of the friction model, with outputs in the torque's unit; it starts from straight bristles.
    joints : sequence of Joint
        On a trajectory that the parameters do not come from, to be worth something.
    ways : mapping of name to values for each joint
        All parameters of the model; or a0, a2 and a3 alone, which is the Coulomb model (6).

    Raises
    ------
    ProblemError
        If a way has not one set of values for each joint, values are missing, or a simulation fails.
    MetricError
        If a measured torque is 0 throughout.
    """
    fits = []
    for way, values in ways.items():
        if len(values) != len(joints):
            raise ProblemError(
                f"compare_ways: {way!r} has values for {len(values)} joints, there are {len(joints)}."
            )
        for joint, one in zip(joints, values, strict=True):
            predicted = predicted_friction(simulator, joint.record, one)
            if joint.rigid_body is not None:
                predicted = predicted + joint.record[joint.rigid_body]
            measured = joint.record[joint.torque]
            errors = wape(predicted, measured), max_percentage_error(predicted, measured)
            fits.append(WayFit(way, joint.name, *errors, predicted))
    return WayTable(tuple(fits))


def predicted_friction(simulator: "Simulator", record: Record, values: Mapping[str, float]) -> Array:
    """Return the friction over a record: of the simulator's model, or by (6) where only a0, a2 and a3 are given."""
    if set(values) == {"a0", "a2", "a3"}:
        return coulomb_viscous(record["velocity"], values["a0"], values["a2"], values["a3"])
    labels = simulator.functions.labels("p")
    missing = [name for name in labels if name not in values]
    if missing:
        raise ProblemError(f"compare_ways: no value for {', '.join(missing)}; given are {', '.join(values)}.")
    samples = np.column_stack([record[name] for name in simulator.samples])
    states = np.zeros(simulator.functions.size("x")), np.zeros(simulator.functions.size("d"))
    motion = simulator.rollout(record.time, samples, *states, np.array([values[name] for name in labels]))
    if motion.status:
        raise ProblemError(f"compare_ways: the simulation failed: {motion.status}.")
    return np.asarray(motion.outputs[:, 0])


def coulomb_values(
    record: Record, *, velocity: str = "velocity", force: str = "force", windows: Windows | None = None
) -> dict[str, float]:
    """Return a0, a2 and a3 of the Coulomb model (6) by (17): way B."""
    window = (windows or Windows()).sliding_velocity
    a0, a2, a3 = sliding_regression(record[velocity], record[force], window)
    return {"a0": a0, "a2": a2, "a3": a3}
