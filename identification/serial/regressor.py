"""The regressor of a serial robot's torques, and which parameters have an effect at all."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechsmith.codegen.functions import FunctionSet

Array = NDArray[np.float64]
# Columns below this share of the largest are rounding: what cancels leaves 1e-16, the least effect of a link is some 1e-5.
NOTHING = 1e-10


class RegressorError(ValueError):
    """A name that is no parameter, or an input that is no motion of a joint."""


def inertial_names(functions: FunctionSet) -> tuple[str, ...]:
    """Return the inertial parameters of inverse dynamics, link by link."""
    return tuple(n for n in functions.labels("p") if n.startswith(("mass_", "first_", "inertia_")))


def torque_regressor(
    functions: FunctionSet,
    inputs: ArrayLike,
    names: Sequence[str],
    *,
    parameters: Mapping[str, float] | None = None,
) -> Array:
    """Return the derivative of torques by parameters at samples, (samples, torques, parameters).

    Parameters
    ----------
    functions : FunctionSet
        Of inverse dynamics; ``output_p`` is added where it is missing.
    inputs : array
        (samples, inputs), in the functions' order.
    names : sequence of str
        Of the parameters, in which outputs are linear.
    parameters : mapping of name to float, optional
        Of the others: geometry and gravity.

    Raises
    ------
    RegressorError
        If a name is no parameter.
    """
    labels = functions.labels("p")
    unknown = [name for name in names if name not in labels]
    if unknown:
        raise RegressorError(
            f"functions {functions.name!r}: no parameter {', '.join(unknown)}. It has: {', '.join(labels)}."
        )
    functions = functions.with_jacobians(("output", "p"))
    slopes = functions.batch("output_p", u=inputs, p=functions.vector("p", parameters))
    return np.asarray(slopes[:, :, [labels.index(name) for name in names]])


def with_effect(matrix: ArrayLike, names: Sequence[str]) -> tuple[str, ...]:
    """Return the parameters whose columns (rows, parameters) are more than rounding."""
    size = np.linalg.norm(np.asarray(matrix, dtype=float), axis=0)
    return tuple(name for name, one in zip(names, size, strict=True) if one > NOTHING * size.max())


def motion_inputs(functions: FunctionSet, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
    """Return the inputs (samples, inputs) of a motion, each (samples, joints), in the functions' order.

    Raises
    ------
    RegressorError
        If the functions have another input.
    """
    motion = {
        "q": np.asarray(q, dtype=float),
        "dq": np.asarray(dq, dtype=float),
        "ddq": np.asarray(ddq, dtype=float),
    }
    columns = []
    for label in functions.labels("u"):
        kind, _, number = label.partition("_")
        if kind not in motion or not number.isdigit() or int(number) > motion[kind].shape[1]:
            raise RegressorError(
                f"functions {functions.name!r}: input {label!r} is no motion of a joint given."
            )
        columns.append(motion[kind][:, int(number) - 1])
    return np.column_stack(columns)


def random_motion(joints: int, count: int, *, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return random positions within a turn (rad), speeds within 3 rad/s and accelerations within 10 rad/s^2."""
    return tuple(reach * rng.uniform(-1.0, 1.0, (count, joints)) for reach in (np.pi, 3.0, 10.0))  # type: ignore[return-value]
