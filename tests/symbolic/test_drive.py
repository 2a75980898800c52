"""The models of the EMPS axis, against its published figures and its recorded motion."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.io
import scipy.signal
import sympy
from numpy.typing import NDArray

from mechsmith.symbolic.control.emps_controller import make_emps_controller
from mechsmith.symbolic.drive.closed_loop import make_emps_closed_loop
from mechsmith.symbolic.drive.emps import make_axis, make_emps_asymmetric, make_emps_axis, make_emps_static
from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.friction.static import make_coulomb_viscous
from mechsmith.symbolic.model import Kind, Model
from mechsmith.symbolic.names import ModelError

Array = NDArray[np.float64]


class Log(NamedTuple):
    position: Array
    reference: Array
    voltage: Array
    pulse: Array


def log(shared: Path, name: str) -> Log:
    data = scipy.io.loadmat(shared / "data" / "emps" / f"{name}.mat", squeeze_me=True)
    pulse = data.get("pulses_N", np.zeros(data["qm"].shape))
    return Log(*(np.asarray(column, dtype=float) for column in (data["qm"], data["qg"], data["vir"], pulse)))


def relative(found: Array, measured: Array) -> float:
    """Return the norm of the difference in per cent of what was measured, without the first 49 samples.

    The law looks two samples back, and nothing is known from before the record.
    """
    difference = (found - measured)[49:]
    return float(100 * np.linalg.norm(difference) / np.linalg.norm(measured[49:]))


def numeric(model: Model, kind: Kind, names: Sequence[str]) -> Callable[..., list[float]]:
    """Return the equations of a kind as a function of the named quantities, parameters at nominal values."""
    values = {q.elements[0]: q.nominal for q in model.parameters}
    expressions = [model.expand(equation.expression).subs(values) for equation in model.of_kind(kind)]
    return sympy.lambdify([model[name] for name in names], expressions, "math", cse=True)  # type: ignore[no-any-return]


# -- what the models are --------------------------------------------------------------------------------


def test_static_model_is_linear_in_its_parameters() -> None:
    for model in (make_emps_static(), make_emps_asymmetric()):
        force = model.expression("force")
        symbols = [model[q.name] for q in model.parameters]
        assert sympy.hessian(force, symbols) == sympy.zeros(len(symbols))


def test_asymmetric_model_is_a_variant() -> None:
    model = make_emps_asymmetric()
    names = ["mass", "viscous_positive", "coulomb_positive", "viscous_negative", "coulomb_negative"]
    assert [q.name for q in model.parameters] == names
    a, v = model["acceleration"], model["velocity"]
    equal = {"viscous": 3, "coulomb": 2, "mass": 5, "offset": 0}
    numbers = {model[name]: equal[name.split("_")[0]] for name in names}
    emps = make_emps_static()
    for speed in (-2, 0, 2):
        at = {a: 7, v: speed}
        symmetric = emps.expression("force").subs({emps[k]: value for k, value in equal.items()} | at)
        assert model.expression("force").subs(numbers | at) == symmetric


def test_forward_and_inverse_dynamics_are_inverse() -> None:
    forward, inverse = make_emps_axis(), make_emps_static()
    names = {q.name: forward[q.name] for q in inverse.parameters}
    acceleration = forward.expand(forward.expression("acceleration"))
    force = inverse.expression("force").subs(
        {inverse[name]: symbol for name, symbol in names.items()}
        | {inverse["velocity"]: forward["velocity"], inverse["acceleration"]: acceleration}
    )
    assert sympy.simplify(force - forward["motor_force"]) == 0


def test_axis_has_crossing_only_with_friction() -> None:
    assert make_axis().crossings == ()
    assert make_emps_axis().crossings == (make_emps_axis()["velocity"],)
    assert make_coulomb_viscous(regularised=True).crossings == ()


def test_regularised_friction_tends_to_coulomb_friction() -> None:
    sharp, smooth = (
        make_coulomb_viscous(motion="rotary"),
        make_coulomb_viscous(motion="rotary", regularised=True),
    )
    force = smooth.expression("force")
    for speed in (sympy.Rational(-3, 10), sympy.Rational(3, 10)):
        at = force.subs({smooth["velocity"]: speed, smooth["transition_velocity"]: sympy.Rational(1, 1000)})
        wanted = sharp.expression("force").subs(sharp["velocity"], speed)
        numbers = {smooth["viscous"]: 2, smooth["coulomb"]: 5}
        # 1 - tanh(300) is about 2 exp(-600), below the precision.
        assert float(at.subs(numbers)) == pytest.approx(float(wanted.subs(numbers)), rel=1e-15)


def test_controller_law_by_hand() -> None:
    controller = make_emps_controller()
    names = ("reference", "position", "pulse", "previous_position", "earlier_position", "voltage")
    update = numeric(controller, "update", names)
    previous, earlier, voltage = update(0.1101, 0.1099, 0.5, 0.1098, 0.10988, 3.0)
    assert (previous, earlier) == (0.1099, 0.1098)
    # kv (kp 0.2 mm - 0.02 mm / 2 ms) + 0.5 V; positions cancel to some 1e-13 of the result.
    assert voltage == pytest.approx(243.45 * (160.18 * 2e-4 - 0.01) + 0.5, rel=1e-10)
    assert update(1.0, 0.0, 0.0, 0.0, 0.0, 0.0)[2] == 10.0
    assert update(-1.0, 0.0, 5.0, 0.0, 0.0, 0.0)[2] == -10.0
    with pytest.raises(ModelError, match="delay 2 is not modelled"):
        make_emps_controller(delay=2)


def test_delayed_controller_holds_the_voltage_of_the_sample_before() -> None:
    controller = make_emps_controller(delay=1)
    assert controller.expression("voltage") == controller["computed_voltage"]
    assert controller.expand(controller.expression("computed_voltage")).has(controller["reference"])


def test_closed_loop_takes_any_friction() -> None:
    for friction in (None, make_coulomb_viscous(), make_lugre(motion="linear")):
        model = make_emps_closed_loop(friction)
        assert [q.name for q in model.inputs] == ["controller_reference", "controller_pulse"]
        assert {"position", "voltage", "force"} <= {q.name for q in model.outputs}
        assert model.sample_time == "sample_time"
    with pytest.raises(ModelError, match="has no 'velocity'"):
        make_emps_closed_loop(make_emps_controller())
    with pytest.raises(ModelError, match=r"friction.velocity is in rad/s"):
        make_emps_closed_loop(make_coulomb_viscous(motion="rotary"))


# -- against the recorded motion ------------------------------------------------------------------------


def decimated(column: Array) -> Array:
    """Return every tenth sample of a column, low-pass filtered, aligned on the last."""
    filter_ = scipy.signal.cheby1(8, 0.05, 0.8 / 10)
    return np.asarray(scipy.signal.filtfilt(*filter_, column, padtype="odd", padlen=24)[::-1][::10][::-1])


@pytest.mark.shared
@pytest.mark.parametrize(
    ("make", "published", "error"),
    [
        (
            make_emps_static,
            {"mass": 95.1089, "viscous": 203.5034, "coulomb": 20.3935, "offset": -3.1648},
            4.0834,
        ),
        (
            make_emps_asymmetric,
            {
                "mass": 95.1540,
                "viscous_positive": 166.7061,
                "coulomb_positive": 20.1440,
                "viscous_negative": 240.4236,
                "coulomb_negative": 20.6277,
            },
            3.1117,
        ),
    ],
)
def test_published_parameters(
    shared: Path, make: Callable[[], Model], published: dict[str, float], error: float
) -> None:
    """The model's own regressor gives every published digit; the asymmetric form has no offset."""
    data, model = log(shared, "DATA_EMPS"), make()
    position = scipy.signal.filtfilt(*scipy.signal.butter(4, 100 / 500), data.position, padlen=12)
    velocity = np.gradient(position, 1e-3)
    acceleration = np.gradient(velocity, 1e-3)
    force = model.expression("force")
    columns = []
    for name in published:
        column = sympy.lambdify([model["acceleration"], model["velocity"]], force.diff(model[name]), "numpy")
        columns.append(decimated(np.broadcast_to(column(acceleration, velocity), position.shape)[49:]))
    measured = decimated(35.15065188248547 * data.voltage[49:])
    matrix = np.column_stack(columns)
    found = np.linalg.lstsq(matrix, measured, rcond=None)[0]
    # Half a unit of the last digit printed.
    assert dict(zip(published, found, strict=True)) == pytest.approx(published, rel=0, abs=0.5e-4)
    misfit = 100 * np.linalg.norm(measured - matrix @ found) / np.linalg.norm(measured)
    assert misfit == pytest.approx(error, rel=0, abs=0.5e-4)


def replayed(data: Log) -> Array:
    """Return the voltage the law gives at each sample for the recorded positions."""
    model = make_emps_controller()
    names = ("reference", "position", "pulse", "previous_position", "earlier_position")
    update = numeric(model, "update", names)
    index = [equation.symbol.name for equation in model.of_kind("update")].index("voltage")
    earlier = np.concatenate([data.position[:1], data.position[:1], data.position[:-2]])
    rows = zip(data.reference, data.position, data.pulse, earlier, earlier, strict=True)
    return np.array([update(*row)[index] for row in rows])


@pytest.mark.shared
def test_recorded_voltage_is_the_law_without_delay(shared: Path) -> None:
    data = log(shared, "DATA_EMPS")
    voltage = replayed(data)
    # What is left, 0.0105 V with at most 0.0123 V, is the resolution of the record: 1 of 24 mV is +-0.0122 V.
    assert np.abs(voltage - data.voltage)[2:].max() < 0.0125
    assert relative(voltage, data.voltage) < 0.25
    # One sample later it fits fifteen times worse.
    assert relative(np.concatenate([voltage[:1], voltage[:-1]]), data.voltage) > 3.0


@pytest.mark.shared
def test_saturation_acts_on_the_sum_of_law_and_pulse(shared: Path) -> None:
    data = log(shared, "DATA_EMPS_PULSES")
    voltage = replayed(data)
    alone = replayed(data._replace(pulse=np.zeros_like(data.pulse)))
    beyond = (alone == -10.0) & (data.pulse > 0)
    assert beyond.sum() == 14
    # Saturated first, it would be -5 V; recorded is down to -5.84 V, as the law says but for the pulse's size.
    assert np.abs(voltage - data.voltage)[beyond].max() < 0.12
    assert np.abs(-10.0 + data.pulse - data.voltage)[beyond].max() > 0.8
    # The pulses are 5.07 V rather than the 5 V written: 2.98 %, and 0.28 % with that.
    assert relative(voltage, data.voltage) < 3.0
    assert relative(replayed(data._replace(pulse=1.01378 * data.pulse)), data.voltage) < 0.3


def simulated(model: Model, data: Log) -> tuple[Array, Array]:
    """Return position and voltage of the closed loop: at each sample update, then one Runge-Kutta step."""
    states = [q.name for q in model.states]
    held = [q.name for q in model.discrete_states]
    names = (*states, *held, "controller_reference", "controller_pulse")
    rate, update = numeric(model, "derivative", names), numeric(model, "update", names)
    x, d = [data.position[0], 0.0], [data.position[0], data.position[0], *[0.0] * (len(held) - 2)]
    step, positions, voltages = 1e-3, [], []
    for u in zip(data.reference, data.pulse, strict=True):
        positions.append(x[0])
        d = update(*x, *d, *u)
        voltages.append(d[held.index("controller_voltage")])
        slopes = [rate(*x, *d, *u)]
        for fraction in (0.5, 0.5, 1.0):
            at = [a + fraction * step * b for a, b in zip(x, slopes[-1], strict=True)]
            slopes.append(rate(*at, *d, *u))
        x = [a + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4) for a, k1, k2, k3, k4 in zip(x, *slopes, strict=True)]
    return np.array(positions), np.array(voltages)


@pytest.mark.shared
@pytest.mark.parametrize(("name", "published"), [("DATA_EMPS", 5.848), ("DATA_EMPS_PULSES", 8.941)])
def test_closed_loop_is_nearer_than_published(shared: Path, name: str, published: float) -> None:
    """Measured when written: 4.495 % and 5.217 %; four times as many steps change that by 0.004."""
    data = log(shared, name)
    position, voltage = simulated(make_emps_closed_loop(), data)
    assert relative(voltage, data.voltage) < published - 1.0
    assert 100 * np.linalg.norm(position - data.position) / np.linalg.norm(data.position) < 0.002
    # A delay of one sample is further off: 5.75 % and, the pulses now late, 17 %.
    _, delayed = simulated(make_emps_closed_loop(delay=1), data)
    assert relative(delayed, data.voltage) > relative(voltage, data.voltage) + 1.0
