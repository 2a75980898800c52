"""Maps of stiffness and conditioning over two joints or over a plane of the workspace, as numbers and as pictures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechsmith.codegen.functions import FunctionSet
from mechsmith.identification.serial.stiffness_record import StiffnessError

Array = NDArray[np.float64]
Which = Literal["smallest", "largest"]
# Inverse kinematics ends where position (m) and direction are met to this, or counts as out of reach.
REACHED = 1e-9
DAMPING, STEPS, LONGEST_TURN = 1e-4, 200, 0.3


@dataclass(frozen=True, eq=False)
class SurfaceMap:
    """A value over two coordinates.

    Parameters
    ----------
    names, units : tuple of str
        Of the two coordinates.
    first, second : array
        Their grids, (n,) and (m,).
    values : array
        (n, m); NaN where the pose can't be reached.
    value, unit : str
        What it is.
    """

    names: tuple[str, str]
    units: tuple[str, str]
    first: Array
    second: Array
    values: Array
    value: str
    unit: str

    def draw(self, path: str | Path, *, levels: int = 12) -> None:
        """Write the map as a picture, its kind by the name's ending; white where the pose can't be reached."""
        # Matplotlib is slow to import, and only pictures need it.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        if not np.isfinite(self.values).any():
            raise StiffnessError(
                f"map of {self.value}: no point of it can be reached. Move the plane or the grid."
            )
        figure = Figure(figsize=(6.0, 4.8), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        drawn = axes.contourf(self.first, self.second, np.ma.masked_invalid(self.values.T), levels)
        axes.set_xlabel(f"{self.names[0]}, {self.units[0]}")
        axes.set_ylabel(f"{self.names[1]}, {self.units[1]}")
        figure.colorbar(drawn, label=f"{self.value}, {self.unit}" if self.unit else self.value)
        figure.savefig(path, dpi=150)


@dataclass(frozen=True)
class MapValue:
    """What a map shows: a number made of a model's outputs.

    Parameters
    ----------
    functions : FunctionSet
        Of the model.
    of : callable
        From outputs (n, outputs) to the value, (n,).
    name, unit : str
        Of the value.
    parameters : mapping of name to float, optional
        Nominal values fill the rest.
    """

    functions: FunctionSet
    of: Callable[[Array], Array]
    name: str
    unit: str = ""
    parameters: Mapping[str, float] | None = None

    def at(self, positions: Array) -> Array:
        """Return the value at joint positions (n, joints)."""
        outputs = evaluate_poses(self.functions, positions, self.parameters)
        return np.asarray(self.of(outputs), dtype=np.float64)


def evaluate_poses(
    functions: FunctionSet, positions: ArrayLike, parameters: Mapping[str, float] | None = None
) -> Array:
    """Return outputs (n, outputs) at joint positions (n, joints), whichever of them the model depends on."""
    q = np.atleast_2d(np.asarray(positions, dtype=float))
    labels = functions.labels("u")
    wrong = [name for name in labels if not name.startswith("q_") or int(name[2:]) > q.shape[1]]
    if wrong:
        raise StiffnessError(
            f"functions {functions.name!r}: inputs {', '.join(wrong)} are not among {q.shape[1]} joint positions."
        )
    columns = q[:, [int(name[2:]) - 1 for name in labels]]
    return np.asarray(functions.batch("output", u=columns, p=functions.vector("p", parameters))[:, :, 0])


def inverse_conditioning(functions: FunctionSet, parameters: Mapping[str, float] | None = None) -> MapValue:
    """Return 1/KF as a map's value; functions of `make_conditioning`."""
    place = functions.labels("y").index("inverse_conditioning")
    return MapValue(functions, lambda y: y[:, place], "1/KF", "", parameters)


def stiffness_along(
    functions: FunctionSet, direction: ArrayLike, parameters: Mapping[str, float] | None = None
) -> MapValue:
    """Return the translation stiffness in a direction (base axes), 1/(n C n), N/m; functions of `make_compliance`."""
    n = np.asarray(direction, dtype=float)
    n = n / np.linalg.norm(n)
    return MapValue(
        functions,
        lambda y: 1.0 / np.einsum("i,nij,j->n", n, _translation(y), n),
        "stiffness",
        "N/m",
        parameters,
    )


def extreme_stiffness(
    functions: FunctionSet, which: Which, parameters: Mapping[str, float] | None = None
) -> MapValue:
    """Return the smallest or largest translation stiffness over all directions, N/m; functions of `make_compliance`."""
    if which not in ("smallest", "largest"):
        raise StiffnessError(f"stiffness {which!r} is not allowed. Use smallest or largest.")
    place = -1 if which == "smallest" else 0

    def stiffness(outputs: Array) -> Array:
        return np.asarray(1.0 / np.linalg.eigvalsh(_translation(outputs))[:, place], dtype=np.float64)

    return MapValue(functions, stiffness, f"{which} stiffness", "N/m", parameters)


def cartesian_stiffness(outputs: ArrayLike) -> Array:
    """Return K = (J diag(c) J^T)^-1 of `make_compliance`'s outputs (n, 27), (n, 6, 6): forces first; (12)."""
    blocks = np.asarray(outputs, dtype=float).reshape(-1, 3, 3, 3)
    top = np.concatenate([blocks[:, 0], blocks[:, 1]], axis=2)
    bottom = np.concatenate([blocks[:, 1].transpose(0, 2, 1), blocks[:, 2]], axis=2)
    return np.asarray(np.linalg.inv(np.concatenate([top, bottom], axis=1)))


def geometric_change(
    linear: FunctionSet, exact: FunctionSet, inputs: ArrayLike, parameters: Mapping[str, float] | None = None
) -> Array:
    """Return by what share the geometric stiffness, and all else that is not linear, changes deflections, (n,).

    Parameters
    ----------
    linear : FunctionSet
        Of `make_deflection` under a wrench.
    exact : FunctionSet
        Of `make_equilibrium`, its unknowns eliminated.
    inputs : array
        (n, inputs): joint positions, force and moment.
    parameters : mapping of name to float, optional
        Compliances and points.
    """
    found = []
    for functions in (exact, linear):
        rows = [functions.labels("y").index(f"base_deflection_{axis}") for axis in "xyz"]
        p = functions.vector("p", parameters)
        found.append(functions.batch("output", u=inputs, p=p)[:, rows, 0])
    return np.asarray(np.linalg.norm(found[0] - found[1], axis=1) / np.linalg.norm(found[1], axis=1))


def _translation(outputs: Array) -> Array:
    return outputs[:, :9].reshape(-1, 3, 3)


def map_over_joints(
    value: MapValue, position: ArrayLike, joints: tuple[int, int], first: ArrayLike, second: ArrayLike
) -> SurfaceMap:
    """Return a value over two joints, the others as in `position`.

    Parameters
    ----------
    value : MapValue
        What to show.
    position : array
        (joints,), rad.
    joints : tuple of int
        Which two, from 1.
    first, second : array
        Their grids, rad.
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    q = np.tile(np.asarray(position, dtype=float), (len(x) * len(y), 1))
    q[:, joints[0] - 1], q[:, joints[1] - 1] = (a.reshape(-1) for a in np.meshgrid(x, y, indexing="ij"))
    values = value.at(q).reshape(len(x), len(y))
    names = (f"q_{joints[0]}", f"q_{joints[1]}")
    return SurfaceMap(names, ("rad", "rad"), x, y, values, value.name, value.unit)


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane of the workspace, with the flange's orientation in it.

    Parameters
    ----------
    origin : array
        (3,), base axes, m.
    first, second : array
        Unit vectors (3,) along which the grids run.
    rotation : array
        (3, 3), the flange's axes in base axes, the same everywhere.
    """

    origin: Array
    first: Array
    second: Array
    rotation: Array


def map_over_plane(
    value: MapValue,
    pose: FunctionSet,
    jacobian: FunctionSet,
    plane: Plane,
    first: ArrayLike,
    second: ArrayLike,
    *,
    start: ArrayLike,
    limits: ArrayLike | None = None,
) -> SurfaceMap:
    """Return a value over a plane, at the poses nearest to a start that reach its points.

    Parameters
    ----------
    value : MapValue
        What to show.
    pose, jacobian : FunctionSet
        Of `make_pose` and `make_jacobian` (hybrid).
    plane : Plane
        Where.
    first, second : array
        Grids, m.
    start : array
        (joints,), rad: where inverse kinematics begins; it chooses the branch.
    limits : array, optional
        (joints, 2), rad; poses beyond them do not count.
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    a, b = (grid.reshape(-1, 1) for grid in np.meshgrid(x, y, indexing="ij"))
    targets = plane.origin + a * plane.first + b * plane.second
    q, reached = reach(pose, jacobian, targets, plane.rotation, start=start)
    if limits is not None:
        low, high = np.asarray(limits, dtype=float).T
        reached &= ((q >= low) & (q <= high)).all(axis=1)
    values = np.full(len(q), np.nan)
    if reached.any():
        values[reached] = value.at(q[reached])
    grid = values.reshape(len(x), len(y))
    return SurfaceMap(("first", "second"), ("m", "m"), x, y, grid, value.name, value.unit)


def reach(
    pose: FunctionSet, jacobian: FunctionSet, targets: ArrayLike, rotation: ArrayLike, *, start: ArrayLike
) -> tuple[Array, NDArray[np.bool_]]:
    """Return joint positions (n, joints) that bring the flange to points (n, 3) with an orientation, and which do.

    By damped Newton steps for all points together (Nakamura and Hanafusa 1986, Inverse kinematic solutions with singularity
    robustness, J. Dyn. Sys. Meas. Control 108).
    """
    goals, turn = np.asarray(targets, dtype=float), np.asarray(rotation, dtype=float)
    q = np.tile(np.asarray(start, dtype=float), (len(goals), 1))
    joints = q.shape[1]
    error = np.empty((len(goals), 6))
    for _ in range(STEPS):
        flat = evaluate_poses(pose, q)
        axes = flat[:, :9].reshape(-1, 3, 3)
        error[:, :3] = goals - flat[:, 9:]
        # Half the sum of the axes' cross products is the sine of the angle times the axis; it has the sign to turn by.
        error[:, 3:] = 0.5 * np.cross(axes, turn[None], axis=1).sum(axis=2)
        # Turned by more than a right angle the sine shrinks again: it is made longest there.
        far = np.einsum("nij,ij->n", axes, turn) < 1.0
        length = np.linalg.norm(error[:, 3:], axis=1)
        error[far, 3:] /= np.maximum(length[far], 1e-6)[:, None]
        if np.abs(error).max() <= REACHED:
            break
        slopes = evaluate_poses(jacobian, q).reshape(-1, joints, 6).transpose(0, 2, 1)
        damped = slopes @ slopes.transpose(0, 2, 1)
        damped += DAMPING * np.minimum(np.linalg.norm(error, axis=1), 1.0)[:, None, None] * np.eye(6)
        step = (slopes.transpose(0, 2, 1) @ np.linalg.solve(damped, error[:, :, None]))[:, :, 0]
        step *= np.minimum(1.0, LONGEST_TURN / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
        q = q + step
    return q, np.abs(error).max(axis=1) <= REACHED
