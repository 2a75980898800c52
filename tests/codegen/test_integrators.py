"""Integrators: order, stiff and switching motions, mass matrices, exact sensitivities, and how they fail."""

from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import sympy
from scipy.integrate import solve_ivp

from mechsmith.codegen.build import build_simulator
from mechsmith.codegen.discretise import StiffnessError, discretise
from mechsmith.codegen.functions import FunctionSetError
from mechsmith.codegen.integrators import Exponential, ImplicitMidpoint, Integrator, Radau, RungeKutta4
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator, Simulator
from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.quantity import Quantity

x, v, u, d, k, c, m, dt = sympy.symbols("x v u d k c m dt", real=True)
NOTHING = numpy.zeros(0)


@pytest.fixture(params=["casadi", "c"])
def simulate(request: pytest.FixtureRequest, cache: Path) -> Callable[..., Simulator]:
    def make(model: Model, integrator: Integrator | None = None) -> Simulator:
        discretisation = discretise(lower(model), integrator)
        if request.param == "casadi":
            return CasadiSimulator(discretisation)
        return build_simulator(discretisation, cache=cache)

    return make


def pendulum(*, mass: bool = False, discrete: bool = False) -> Model:
    """Return a damped pendulum, smooth and not linear; the output is not linear either."""
    torque = u - c * v - k * sympy.sin(x) + (d if discrete else 0)
    inertia = m + sympy.cos(x) * m / 4
    return Model(
        name="pendulum_" + ("m" if mass else "") + ("d" if discrete else "") + "_",
        states=(Quantity(x, "rad"), Quantity(v, "rad/s")),
        discrete_states=(Quantity(d, "N*m"),) if discrete else (),
        inputs=(Quantity(u, "N*m"),),
        parameters=(Quantity(k, "N*m"), Quantity(c, "N*m*s"), Quantity(m, "kg*m^2"))
        + ((Quantity(dt, "s"),) if discrete else ()),
        mass=sympy.Matrix([[1, 0], [0, inertia]]) if mass else None,
        derivatives={x: v, v: torque if mass else torque / inertia},
        updates={d: 0.7 * d - k * sympy.tanh(x) + c * v} if discrete else {},
        sample_time="dt" if discrete else None,
        outputs={Quantity("y", "rad"): x * (1 + x**2), Quantity("speed", "rad/s"): v},
    )


P = numpy.array([4.0, 0.3, 1.5])


@pytest.mark.parametrize(
    ("integrator", "order"), [(RungeKutta4, 4), (Radau, 5), (ImplicitMidpoint, 2)], ids=lambda i: str(i)
)
@pytest.mark.parametrize("mass", [False, True])
def test_order(integrator: type[Integrator], order: int, mass: bool) -> None:
    """Halving the step divides the error by 2^order, to a quarter of an order at these lengths."""
    simulator = CasadiSimulator(discretise(lower(pendulum(mass=mass)), integrator()))

    def end(steps: int) -> numpy.ndarray:
        time = numpy.linspace(0.0, 2.0, steps + 1)
        # The input is linear between samples at every step length: no error of reconstruction.
        samples = (0.5 * time)[:, None]
        result = simulator.rollout(time, samples, numpy.array([1.0, -0.5]), NOTHING, P)
        assert not result.status
        return result.states[-1]

    def slope(t: float, s: numpy.ndarray) -> list[float]:
        return [s[1], (0.5 * t - P[1] * s[1] - P[0] * numpy.sin(s[0])) / (P[2] * (1 + numpy.cos(s[0]) / 4))]

    exact = solve_ivp(slope, (0, 2), [1.0, -0.5], "DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    coarse, fine = (numpy.abs(end(n) - exact).max() for n in (16, 32))
    assert numpy.log2(coarse / fine) == pytest.approx(order, abs=0.3)


def test_order_of_the_exponential_integrator() -> None:
    model = Model(
        name="affine",
        states=(Quantity(x, ""),),
        inputs=(Quantity(u, ""),),
        parameters=(Quantity(k, "1/s"),),
        derivatives={x: -k * (1 + u**2) * x + k * sympy.sin(u)},
        outputs={Quantity("y", ""): x},
    )
    simulator = CasadiSimulator(discretise(lower(model), Exponential()))
    exact = solve_ivp(
        lambda t, s: -2 * (1 + t**2) * s + 2 * numpy.sin(t), (0, 2), [1.0], "DOP853", rtol=1e-13, atol=1e-14
    ).y[0, -1]
    errors = []
    for steps in (40, 80):
        time = numpy.linspace(0.0, 2.0, steps + 1)
        result = simulator.rollout(time, time[:, None], numpy.ones(1), NOTHING, numpy.array([2.0]))
        errors.append(abs(result.states[-1, 0] - exact))
    assert numpy.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
    with pytest.raises(FunctionSetError, match="affine in the state with a diagonal matrix"):
        discretise(lower(pendulum()), Exponential())


def lugre_axis() -> Model:
    """Return m dv/dt = F - friction with LuGre friction: not linear, stiff, and it switches on a state."""
    friction = make_lugre()
    velocity = friction["velocity"]
    force = sympy.Symbol("friction_force", real=True)
    return Model(
        name="lugre_axis",
        states=(*friction.states, Quantity(velocity, "rad/s")),
        inputs=(Quantity(u, "N*m"),),
        parameters=(*friction.parameters, Quantity(m, "kg*m^2")),
        definitions={**friction.definitions, Quantity(force, "N*m"): friction.expression("force")},
        derivatives={"z": friction.expression("z"), velocity: (u - force) / m},
        outputs={Quantity("y", "N*m"): force, Quantity("speed", "rad/s"): velocity},
        crossings=(velocity,),
    )


TIME = numpy.linspace(0.0, 0.4, 801)
TORQUE = 2.5 * numpy.sin(2 * numpy.pi * 6 * TIME)


@pytest.fixture(scope="module")
def stick_slip() -> numpy.ndarray:
    """Return the states of the axis at every hundredth sample, by scipy."""
    functions = lower(lugre_axis())
    p = functions.vector("p", {"m": 0.1})
    rate = functions.casadi_function("derivative")
    return solve_ivp(
        lambda t, s: rate(s, [], [], numpy.interp(t, TIME, TORQUE), p).full()[:, 0],
        (0.0, 0.4),
        [0.0, 0.0],
        "Radau",
        t_eval=TIME[::100],
        rtol=1e-8,
        atol=1e-12,
        max_step=1e-3,
    ).y.T


def test_stick_slip_against_scipy(stick_slip: numpy.ndarray, simulate: Callable[..., Simulator]) -> None:
    simulator = simulate(lugre_axis())
    p = simulator.functions.vector("p", {"m": 0.1})
    result = simulator.rollout(TIME, TORQUE[:, None], numpy.zeros(2), NOTHING, p)
    assert not result.status
    assert (numpy.diff(numpy.sign(result.states[:, 1])) != 0).sum() >= 4
    error = numpy.abs(result.states[::100] - stick_slip).max(axis=0) / numpy.abs(stick_slip).max(axis=0)
    # Over the Stribeck peak a step of 0.5 ms is some decay times long: order 5 leaves about 1e-5.
    assert (error < 1e-4).all(), error


def coulomb_exact(force: float, friction: float, start: float, time: float) -> float:
    """Return the velocity of a unit mass under a constant force that turns it around, with Coulomb friction."""
    slowing = force - numpy.sign(start) * friction
    turn = -start / slowing
    return start + slowing * time if time < turn else (force + numpy.sign(start) * friction) * (time - turn)


@pytest.mark.parametrize("integrator", [Radau(), Radau(3), ImplicitMidpoint()], ids=str)
@pytest.mark.parametrize("start", [0.53, 0.011, 0.097, -0.53, -0.011])
def test_a_sign_is_no_constant_though_its_derivative_is_zero(
    start: float, integrator: Integrator, simulate: Callable[..., Simulator]
) -> None:
    """Coulomb friction has the Jacobian 0 in v: it must neither vanish nor be seen with the wrong sign at the turn."""
    model = Model(
        name="coulomb",
        states=(Quantity(v, "m/s"),),
        inputs=(Quantity(u, "m/s^2"),),
        parameters=(Quantity(k, "m/s^2"),),
        derivatives={v: u - k * sympy.sign(v)},
        outputs={Quantity("y", "m/s"): v},
        crossings=(v,),
    )
    time = numpy.arange(11) * 0.1
    force = -3.0 * numpy.sign(start)
    result = simulate(model, integrator).rollout(
        time, numpy.full((11, 1), force), numpy.array([start]), NOTHING, numpy.array([1.0])
    )
    assert not result.status
    exact = [coulomb_exact(force, 1.0, start, t) for t in time]
    # Constant accelerations are integrated exactly; the turn is located to rounding.
    numpy.testing.assert_allclose(result.states[:, 0], exact, atol=1e-12)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("integrator", [RungeKutta4(), Radau(), ImplicitMidpoint()], ids=str)
def test_sensitivities(integrator: Integrator, discrete: bool, simulate: Callable[..., Simulator]) -> None:
    simulator = simulate(pendulum(mass=True, discrete=discrete), integrator)
    time = numpy.arange(31) * 0.05
    samples = numpy.cos(3 * time)[:, None]
    x0, d0 = numpy.array([0.6, -0.4]), numpy.array([0.2] if discrete else [])
    p = numpy.append(P, 0.05) if discrete else P
    got = simulator.rollout_sensitivities(time, samples, x0, d0, p)
    assert not got.status
    assert numpy.isfinite(got.by_parameters).all()
    for start, exact in ((p, got.by_parameters), (x0, got.by_initial_state)):
        for i in range(len(start)):
            h = 1e-5 * max(abs(start[i]), 0.1)
            shift = numpy.eye(len(start))[i] * h
            ends = [
                simulator.rollout(
                    time, samples, *((x0, d0, p + s) if start is p else (x0 + s, d0, p))
                ).outputs
                for s in (shift, -shift)
            ]
            difference = (ends[0] - ends[1]) / (2 * h)
            # The third derivative times h^2 is some 1e-9, rounding over h some 1e-10: of outputs of order 1.
            # Newton stops with a residue that the exact derivative does not know: the same size.
            assert numpy.abs(difference - exact[:, :, i]).max() < 1e-7 * max(1.0, numpy.abs(difference).max())


def test_d4_failure_is_a_status_and_nan_from_then_on(simulate: Callable[..., Simulator]) -> None:
    """dx/dt = k x^2 from 1 is 1/(1 - k t): beyond t = 1/k there is nothing, and nothing must be made up."""
    model = Model(
        name="explodes",
        states=(Quantity(x, ""),),
        parameters=(Quantity(k, "1/s"),),
        derivatives={x: k * x**2},
        outputs={Quantity("y", ""): x},
    )
    time, samples = numpy.linspace(0.0, 2.0, 201), numpy.zeros((201, 0))
    simulator = simulate(model)
    for result in (
        simulator.rollout(time, samples, numpy.ones(1), NOTHING, numpy.ones(1)),
        simulator.rollout_sensitivities(time, samples, numpy.ones(1), NOTHING, numpy.ones(1)),
    ):
        assert "not finite" in result.status or "not solved" in result.status
        first = int(result.status.split("sample ")[1].rstrip(")"))
        assert 90 <= first <= 110
        assert numpy.isfinite(result.outputs[:first]).all()
        assert numpy.isnan(result.outputs[first:]).all()
    outputs, statuses = simulator.rollout_batch(
        time, samples, numpy.ones(1), NOTHING, numpy.array([[1.0], [0.1]])
    )
    assert statuses[0]
    assert not statuses[1]
    assert numpy.isnan(outputs[0, -1]).all()
    assert outputs[1, -1, 0] == pytest.approx(1 / 0.8, rel=1e-9)


def test_a_state_that_is_no_number_is_a_status(simulate: Callable[..., Simulator]) -> None:
    model = Model(
        name="root",
        states=(Quantity(x, ""),),
        parameters=(Quantity(k, "1/s"),),
        derivatives={x: -k * sympy.sqrt(x)},
        outputs={Quantity("y", ""): x},
    )
    result = simulate(model, RungeKutta4()).rollout(
        numpy.linspace(0, 5, 51), numpy.zeros((51, 0)), numpy.ones(1), NOTHING, numpy.ones(1)
    )
    assert "not finite" in result.status
    assert numpy.isnan(result.states[-1]).all()


def test_d5_runge_kutta_names_the_limit(simulate: Callable[..., Simulator]) -> None:
    simulator = simulate(make_lugre(), RungeKutta4())
    p = simulator.functions.vector("p")
    time = numpy.arange(5) * 1e-3
    arguments = (numpy.zeros(1), NOTHING, p)
    # dt s0 |v| / g = 1e-3 * 1e5 * v / 1: the limit 2.785 is passed between v = 0.02 and 0.03 (g = 1 there).
    unit = numpy.column_stack([numpy.ones(5), time])  # velocity, and position as its integral
    assert not simulator.rollout(time, 0.025 * unit, *arguments).status
    with pytest.raises(
        StiffnessError, match=r"dt \|lambda\| reaches 3.*lambda = -3000.* the limit is 2.79.*2 substeps"
    ):
        simulator.rollout(time, 0.03 * unit, *arguments)


def test_d5_the_limit_counts_the_mass_matrix(simulate: Callable[..., Simulator]) -> None:
    model = Model(
        name="light",
        states=(Quantity(x, ""),),
        parameters=(Quantity(k, ""), Quantity(dt, "s")),
        mass=sympy.Matrix([[k * dt]]),
        derivatives={x: -x},
        outputs={Quantity("y", ""): x},
    )
    time = numpy.linspace(0, 1, 11)
    with pytest.raises(StiffnessError, match="lambda = -1000 1/s"):
        simulate(model, RungeKutta4()).rollout(
            time, numpy.zeros((11, 0)), numpy.ones(1), NOTHING, numpy.array([1e-3, 1.0])
        )


@pytest.mark.parametrize(
    ("x0", "p", "named"),
    [
        (numpy.ones((2, 2)), numpy.ones((3, 3)), "x0 has shape"),
        (numpy.ones(2), numpy.ones((3, 4)), "p has shape"),
        (numpy.ones(2), numpy.array([[1.0, 1, 1], [1, numpy.nan, 1]]), "p holds NaN or infinity in row 1"),
        (numpy.array([[1.0, 1], [numpy.inf, 1]]), numpy.ones((2, 3)), "x0 holds NaN or infinity in row 1"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(
    x0: numpy.ndarray, p: numpy.ndarray, named: str, simulate: Callable[..., Simulator]
) -> None:
    with pytest.raises(FunctionSetError, match=named):
        simulate(pendulum()).rollout_batch(numpy.arange(3.0), numpy.zeros((3, 1)), x0, NOTHING, p)


def test_sensitivities_with_a_function_that_only_derivatives_use(simulate: Callable[..., Simulator]) -> None:
    """The derivative of erf is an exponential, which nothing else in the model calls."""
    model = Model(
        name="only_erf",
        states=(Quantity(x, ""),),
        parameters=(Quantity(k, "1/s"),),
        derivatives={x: -k * sympy.erf(x)},
        outputs={Quantity("y", ""): x},
    )
    result = simulate(model, RungeKutta4()).rollout_sensitivities(
        numpy.arange(5) * 0.1, numpy.zeros((5, 0)), numpy.ones(1), NOTHING, numpy.ones(1)
    )
    assert not result.status
    assert numpy.isfinite(result.by_parameters).all()
