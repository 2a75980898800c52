"""Every model of the catalogue: SymPy = CasADi = generated Python = generated C, pointwise and as motions."""

from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.functions import ARGUMENTS, FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator
from mechsmith.symbolic.catalogue import CATALOGUE
from mechsmith.symbolic.evaluate import Evaluator
from mechsmith.symbolic.model import Model

KINDS = ("derivative", "update", "constraint", "output", "mass", "crossing")
POINTS = 6
# A condition number k taken from determinants errs by k^2 roundings; these Jacobians have k up to some 1e3.
SENSITIVE = {"irb6700_conditioning": 10**6}


def points(functions: FunctionSet) -> dict[str, numpy.ndarray]:
    """Return random points, of parameters near their nominal values; the last one is at rest."""
    rng = numpy.random.default_rng(0)
    result = {}
    for argument in ARGUMENTS:
        values = rng.uniform(-1.0, 1.0, (POINTS, functions.size(argument)))
        given = [v.nominal for v in functions.variables(argument) for _ in range(v.size)]
        for column, nominal in enumerate(given):
            if nominal is not None:  # near it, for there the model has a meaning
                values[:, column] = nominal + 0.05 * max(abs(nominal), 0.1) * values[:, column]
        if argument in ("x", "u") and not any(given):
            values[-1] = 0.0
        result[argument] = values
    return result


@pytest.fixture(scope="module", params=list(CATALOGUE))
def model(request: pytest.FixtureRequest) -> Model:
    return CATALOGUE[request.param]()


@pytest.fixture(scope="module")
def functions(model: Model) -> FunctionSet:
    plain = lower(model)
    pairs = [(of, wrt) for of in plain.functions for wrt in ARGUMENTS if plain.size(wrt)]
    return plain.with_jacobians(*pairs)


@pytest.fixture(scope="module")
def ways(
    functions: FunctionSet, three_ways: Callable[[FunctionSet], dict[str, FunctionSet]]
) -> dict[str, FunctionSet]:
    return three_ways(functions)


def test_values(model: Model, functions: FunctionSet, ways: dict[str, FunctionSet]) -> None:
    where = points(functions)
    for kind in (kind for kind in KINDS if kind in functions.functions):
        sympy_values = Evaluator(
            [model.expand(equation.expression) for equation in model.of_kind(kind)], digits=30
        )
        got = {way: evaluated.batch(kind, **where).reshape(POINTS, -1) for way, evaluated in ways.items()}
        for i in range(POINTS):
            point = {argument: values[i] for argument, values in where.items()}
            named = {
                label: float(value)
                for argument in ARGUMENTS
                for label, value in zip(functions.labels(argument), point[argument], strict=True)
            }
            expected = numpy.array([float(value) for value in sympy_values(named)])
            finite = numpy.isfinite(expected)
            # Terms of a sum or a matrix product cancel; how large they are shows in the change with each argument.
            scale = numpy.abs(expected)
            for argument in (argument for argument in ARGUMENTS if point[argument].size):
                slopes = numpy.abs(functions.evaluate(f"{kind}_{argument}", **point))
                scale = scale + numpy.where(numpy.isfinite(slopes), slopes, 0.0) @ numpy.abs(point[argument])
            # Entries of a vector or matrix come from each other by rotations, so they share their errors; where there is
            # no finite value `test_jacobians` still compares the three ways with each other.
            largest = scale[finite].max(initial=0.0)
            for way in ways:
                error = numpy.abs(got[way][i, finite] - expected[finite])
                # An ulp of each of at most some ten operations that follow one another, in a chain of rotations and
                # the solution of a linear system a hundred times as many.
                ulps = SENSITIVE.get(model.name, 1024)
                assert (error <= ulps * 2.0**-52 * largest + 1e-300).all(), (way, kind, i)


def test_jacobians(functions: FunctionSet, ways: dict[str, FunctionSet]) -> None:
    where = points(functions)
    for name in functions.functions:
        expected = ways["casadi"].batch(name, **where)
        finite = numpy.isfinite(expected)
        scale = numpy.abs(numpy.where(finite, expected, 0.0)).max(initial=1e-300)
        for way in ("python", "c"):
            got = ways[way].batch(name, **where)
            assert (numpy.isfinite(got) == finite).all(), (way, name)
            # The same operations; the order of a sum and an ulp of libm may differ. C cuts exp off at 1e-307.
            error = numpy.abs(got[finite] - expected[finite])
            assert (error <= 1e-13 * scale + 1e-300).all(), (way, name)


def test_products_are_those_of_the_jacobian(functions: FunctionSet) -> None:
    where = {argument: values[0] for argument, values in points(functions).items()}
    rng = numpy.random.default_rng(1)
    for of in (kind for kind in KINDS if kind in functions.functions):
        for wrt in (argument for argument in ARGUMENTS if functions.size(argument)):
            jacobian = functions.evaluate(f"{of}_{wrt}", **where)
            rows, columns = jacobian.shape
            for direction, size, matrix in (("forward", columns, jacobian), ("adjoint", rows, jacobian.T)):
                vector = rng.normal(size=size)
                got = functions.product(of, wrt, direction)(*where.values(), vector).full()[:, 0]
                expected = matrix @ vector
                finite = numpy.isfinite(expected)
                # The product adds in another order than the Jacobian, with terms of all its entries.
                bound = 1e-13 * numpy.abs(matrix[finite]).max(initial=0.0) * numpy.abs(vector).sum()
                error = numpy.abs(got[finite] - expected[finite])
                assert (error <= bound + 1e-300).all(), (of, wrt, direction)


DYNAMIC = [name for name in CATALOGUE if CATALOGUE[name]().states and not CATALOGUE[name]().unknowns]


@pytest.mark.parametrize("name", DYNAMIC)
def test_motions(name: str, through_python: Callable[[FunctionSet], FunctionSet], cache: Path) -> None:
    functions = lower(CATALOGUE[name]())
    compiled = build_simulator(discretise(functions), cache=cache)
    time = numpy.arange(41) * 1e-3
    inputs = functions.labels("u")
    angle = 40.0 * time[:, None] + numpy.arange(len(inputs))
    integrals = [inputs.index(name) for name, _ in functions.integrals]
    samples = numpy.hstack([0.3 * numpy.sin(angle), -0.3 / 40.0 * numpy.cos(angle[:, integrals])])
    p = functions.vector("p")
    start = (functions.vector("x"), functions.vector("d"))
    expected = compiled.rollout(time, samples, *start, p)
    derivatives = compiled.rollout_sensitivities(time, samples, *start, p)
    assert not expected.status
    numpy.testing.assert_allclose(derivatives.outputs, expected.outputs, rtol=1e-9, atol=1e-12)
    for way in (functions, through_python(functions)):
        simulator = CasadiSimulator(discretise(way))
        got = simulator.rollout(time, samples, *start, p)
        assert not got.status
        for field in ("outputs", "states", "discrete_states"):
            a, b = getattr(got, field), getattr(expected, field)
            # Rounding errors of 40 steps, each grown by what the stiff models damp at once; in units of the largest value.
            assert (numpy.abs(a - b) <= 1e-9 * numpy.abs(b).max(axis=0, initial=1e-12)).all(), field
        sensitivities = simulator.rollout_sensitivities(time, samples, *start, p)
        for field in ("by_parameters", "by_initial_state"):
            a, b = getattr(sensitivities, field), getattr(derivatives, field)
            assert (numpy.abs(a - b) <= 1e-8 * numpy.abs(b).max(axis=(0, 1), initial=1e-9)).all(), field
