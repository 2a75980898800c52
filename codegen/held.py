"""Unknowns that depend on parameters alone: solved once per parameter vector, and held while the model runs.

The roots of a beam's frequency equation are such unknowns. `hold` splits a model's functions at every value that
depends on parameters and unknowns alone: `preparation` computes those values, and `functions` are what is left, with
the values as further parameters and without unknowns. The latter are discretised and generated like any other model.
`HeldSimulator` joins both again: to its user the parameters are the model's own, and derivatives are exact, through
the implicit functions.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi
import numpy

from mechsmith.codegen.functions import (
    Array,
    CasadiEvaluator,
    FunctionSet,
    FunctionSetError,
    Variable,
    make_function,
)
from mechsmith.codegen.simulator import Rollout, RolloutSensitivities, Simulator
from mechsmith.codegen.unknowns import eliminate

SX = casadi.SX
HELD = "held"


@dataclass(frozen=True)
class Held:
    """A model split at what depends on parameters and unknowns alone.

    Parameters
    ----------
    original : FunctionSet
        The model.
    preparation : FunctionSet
        Named ``<model>_preparation``: its one output ``held`` is computed from the model's parameters and unknowns.
    functions : FunctionSet
        The model without unknowns; its parameters are those of the model that are still used as they are, then ``held``.
    """

    original: FunctionSet
    preparation: FunctionSet
    functions: FunctionSet

    @cached_property
    def _solved(self) -> FunctionSet:
        return eliminate(self.preparation)

    @cached_property
    def _places(self) -> list[int]:
        """Where the parameters that `functions` keeps are among the model's own."""
        own = self.original.labels("p")
        return [own.index(label) for variable in self.functions.parameters[:-1] for label in variable.labels]

    def parameters(self, p: Array) -> Array:
        """Return the parameters of `functions` for the model's own, (np,) -> (nq,) or (k, np) -> (k, nq).

        Raises
        ------
        FunctionSetError
            If the unknowns are not found.
        """
        rows = numpy.atleast_2d(numpy.asarray(p, dtype=float))
        held = self._solved.batch("output", p=rows)[:, :, 0]
        if not numpy.isfinite(held).all():
            bad = int(numpy.flatnonzero(~numpy.isfinite(held).all(axis=1))[0])
            values = dict(zip(self.original.labels("p"), map(float, rows[bad]), strict=True))
            raise FunctionSetError(
                f"functions {self.original.name!r}: no {', '.join(self.original.labels('z'))} solve the constraints at {values}. "
                "Use parameters at which they have a solution between their bounds."
            )
        whole = numpy.hstack([rows[:, self._places], numpy.broadcast_to(held, (len(rows), held.shape[1]))])
        return whole if numpy.ndim(p) == 2 else whole[0]

    def derivative(self, p: Array) -> Array:
        """Return the derivative of `parameters`, (nq, np), exact."""
        return numpy.vstack([numpy.eye(len(p))[self._places], self._solved.evaluate("output_p", p=p)])

    def simulator(self, inner: Simulator) -> "HeldSimulator":
        """Return a simulator of the model from one of `functions`."""
        return HeldSimulator(self, inner)


def hold(functions: FunctionSet) -> Held:
    """Split the functions of a model at what depends on parameters and unknowns alone.

    Parameters
    ----------
    functions : FunctionSet
        With CasADi functions; its constraints may depend on parameters alone.

    Raises
    ------
    FunctionSetError
        If there are no unknowns, or they depend on states or inputs.
    """
    functions.require("embeddable", "hold")
    symbols = functions.arguments()
    if not functions.unknowns:
        raise FunctionSetError(
            f"functions {functions.name!r}: there are no unknowns to hold. Use them as they are."
        )
    x, d, z, u, p = symbols
    constraint = functions.casadi_function("constraint")(*symbols)
    if casadi.depends_on(constraint, casadi.vertcat(x, d, u)):
        raise FunctionSetError(
            f"functions {functions.name!r}: {', '.join(functions.labels('z'))} depend on states or inputs, so that they can't be held. "
            "Use mechsmith.codegen.unknowns.eliminate."
        )
    names = [name for name in functions.functions if name != "constraint"]
    values = [functions.casadi_function(name)(*symbols) for name in names]
    flat = casadi.cse(casadi.vertcat(*(casadi.vec(value) for value in values)))
    remaining, placeholders, parametric = casadi.extract_parametric(flat, casadi.vertcat(z, p))
    if casadi.depends_on(remaining, z):
        # what is an unknown and nothing else isn't extracted: it becomes a held value too
        used = [z[i] for i in range(z.numel()) if casadi.depends_on(remaining, z[i])]
        fresh = [SX.sym(f"root_{i}") for i in range(len(used))]
        remaining = casadi.substitute(remaining, casadi.vertcat(*used), casadi.vertcat(*fresh))
        placeholders, parametric = [*placeholders, *fresh], [*parametric, *used]
    return _split(functions, names, values, remaining, placeholders, parametric, symbols)


def _split(
    functions: FunctionSet,
    names: list[str],
    values: list[SX],
    remaining: SX,
    placeholders: list[SX],
    parametric: list[SX],
    symbols: tuple[SX, ...],
) -> Held:
    x, d, z, u, p = symbols
    labels = functions.labels("p")
    used = {label for i, label in enumerate(labels) if casadi.depends_on(remaining, p[i])}
    kept = tuple(
        variable
        for variable in functions.parameters
        if used & set(variable.labels) or variable.name == functions.sample_time
    )
    held = Variable(HELD, ("",) * len(placeholders), (len(placeholders),), "computed by the preparation")
    preparation = dataclasses.replace(
        functions,
        name=f"{functions.name}_preparation",
        states=(),
        discrete_states=(),
        inputs=(),
        outputs=(held,),
        sample_time=None,
        integrals=(),
        description=f"What {functions.name} needs of its parameters, once per parameter vector.",
        functions=_preparation(functions, casadi.vertcat(*parametric), z, p),
    )
    places = [labels.index(label) for variable in kept for label in variable.labels]
    arguments = [x, d, SX.sym("z", 0), u, casadi.vertcat(*(p[i] for i in places), *placeholders)]
    left: dict[str, CasadiEvaluator] = {}
    place = 0
    for name, value in zip(names, values, strict=True):
        part = casadi.reshape(remaining[place : place + value.numel()], *value.shape)
        left[name] = CasadiEvaluator(make_function(name, arguments, part))
        place += value.numel()
    reduced = dataclasses.replace(functions, unknowns=(), parameters=(*kept, held), functions=left)
    return Held(functions, preparation, reduced)


def _preparation(functions: FunctionSet, values: SX, z: SX, p: SX) -> Mapping[str, CasadiEvaluator]:
    empty = SX.sym("none", 0)
    arguments = [empty, empty, z, empty, p]
    x, d, _, u, _ = functions.arguments()
    constraint = functions.casadi_function("constraint")(
        SX.zeros(x.numel()), SX.zeros(d.numel()), z, SX.zeros(u.numel()), p
    )
    return {
        "constraint": CasadiEvaluator(make_function("constraint", arguments, constraint)),
        "output": CasadiEvaluator(make_function("output", arguments, values)),
    }


@dataclass(frozen=True)
class HeldSimulator:
    """Rollouts of a model whose unknowns are held; see `mechsmith.codegen.simulator.Simulator`.

    Parameters
    ----------
    held : Held
        The model.
    inner : Simulator
        Of `held.functions`.
    """

    held: Held
    inner: Simulator

    @cached_property
    def functions(self) -> FunctionSet:
        """The model's functions, the unknowns solved for."""
        return eliminate(self.held.original)

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @property
    def samples(self) -> tuple[str, ...]:
        """Names of the columns of `samples`."""
        return self.inner.samples

    def rollout(self, time: Array, samples: Array, x0: Array, d0: Array, p: Array) -> Rollout:
        """Simulate from time[0] to time[-1]."""
        return self.inner.rollout(time, samples, x0, d0, self.held.parameters(p))

    def rollout_sensitivities(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array
    ) -> RolloutSensitivities:
        """Simulate with exact derivatives by the model's parameters and the initial state."""
        motion = self.inner.rollout_sensitivities(time, samples, x0, d0, self.held.parameters(p))
        return motion._replace(by_parameters=motion.by_parameters @ self.held.derivative(p))

    def rollout_batch(
        self, time: Array, samples: Array, x0: Array, d0: Array, p: Array
    ) -> tuple[Array, tuple[str, ...]]:
        """Simulate for each row of p (k, np)."""
        return self.inner.rollout_batch(time, samples, x0, d0, self.held.parameters(numpy.atleast_2d(p)))
