"""The friction library: identities of every model, closed forms, and what each model adds to another."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sympy

from mechsmith.codegen.build import build_simulator, find_compiler
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator, Simulator
from mechsmith.symbolic.catalogue import make_lugre_linear
from mechsmith.symbolic.compose import compose
from mechsmith.symbolic.drive.closed_loop import make_emps_closed_loop
from mechsmith.symbolic.drive.emps import make_axis
from mechsmith.symbolic.evaluate import Evaluator
from mechsmith.symbolic.friction.coulomb import make_coulomb, make_coulomb_directional, make_coulomb_loaded
from mechsmith.symbolic.friction.dahl import make_dahl
from mechsmith.symbolic.friction.elasto_plastic import make_elasto_plastic
from mechsmith.symbolic.friction.identities import BRISTLE_IDENTITIES, COULOMB_VISCOUS, DISSIPATION
from mechsmith.symbolic.friction.lugre import make_lugre
from mechsmith.symbolic.friction.lugre_variants import make_lugre_asymmetric, make_lugre_constant
from mechsmith.symbolic.friction.maxwell_slip import make_maxwell_slip
from mechsmith.symbolic.friction.passivity import bristle_passivity
from mechsmith.symbolic.friction.stribeck import make_stribeck
from mechsmith.symbolic.friction.viscous import add_viscous, make_viscous
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.quantity import Quantity
from mechsmith.symbolic.verify import verify, verify_identity

LIBRARY: dict[str, Callable[..., Model]] = {
    "coulomb": make_coulomb,
    "coulomb_directional": make_coulomb_directional,
    "coulomb_loaded": make_coulomb_loaded,
    "viscous": make_viscous,
    "viscous_quadratic": lambda *, motion: make_viscous(order=2, motion=motion),
    "viscous_cubic": lambda *, motion: make_viscous(order=3, motion=motion),
    "stribeck": make_stribeck,
    "stribeck_exponent": lambda *, motion: make_stribeck(shape="exponent", motion=motion),
    "dahl": make_dahl,
    "lugre_constant": make_lugre_constant,
    "lugre_asymmetric": make_lugre_asymmetric,
    "elasto_plastic": make_elasto_plastic,
    "maxwell_slip": make_maxwell_slip,
}
STATES = ("dahl", "lugre_constant", "lugre_asymmetric", "elasto_plastic")


def force_at(model: Model, **values: float) -> float:
    nominal = {quantity.name: quantity.nominal for quantity in model.parameters}
    return float(Evaluator([model.expand(model.expression("force"))])({**nominal, **values})[0])


def nominal_vector(model: Model, **values: float) -> np.ndarray:
    return np.array([values.get(q.name, q.nominal) for q in model.parameters], dtype=float)


@pytest.mark.parametrize("motion", ["rotary", "linear"])
@pytest.mark.parametrize("name", LIBRARY)
def test_every_model_is_whole(name: str, motion: str) -> None:
    model = LIBRARY[name](motion=motion)
    assert model.name == (name if motion == "rotary" else f"{name}_linear")
    assert model.references
    assert [v.identity.name for v in verify(model) if not v.as_expected] == []
    stated = {identity.name for identity in model.identities}
    if name not in ("viscous", "viscous_quadratic", "viscous_cubic"):
        # viscous friction alone has no Coulomb part to tend to
        assert stated & {COULOMB_VISCOUS, "(6)"}
    if name != "maxwell_slip":
        # its passivity condition is stated in its docstring: a memory stores energy in no closed form
        assert DISSIPATION in stated
    lower_bounds = {quantity.name: quantity.lower for quantity in model.parameters}
    for parameter in ("a0", "a1", "s1", "k1", "w1", "mu"):
        assert lower_bounds.get(parameter, 0.0) >= 0.0
    for parameter in ("v0", "s0"):
        assert lower_bounds.get(parameter, 1.0) > 0.0
    assert all(quantity.nominal is not None for quantity in model.parameters)


def test_a_limit_that_does_not_hold_is_refuted() -> None:
    # The same identities of a model with a wrong sign in the peak's limit: a1 instead of a0 remains.
    wrong = make_stribeck()
    a0, a1, v, v0 = (wrong[name] for name in ("a0", "a1", "velocity", "v0"))
    wrong = wrong.replace(definitions={"stribeck": a1 + a0 * sympy.exp(-((v / v0) ** 2))})
    assert {v.identity.name for v in verify(wrong) if v.status == "refuted"} == {COULOMB_VISCOUS}


def test_bristles_that_add_energy_are_refuted() -> None:
    dahl = make_dahl()
    rate = dahl["velocity"] + dahl["s0"] * sympy.Abs(dahl["velocity"]) * dahl["z"] / dahl["a0"]
    broken = {v.identity.name for v in verify(dahl.replace(derivatives={"z": rate})) if v.status == "refuted"}
    assert DISSIPATION in broken


def test_static_models_at_a_point() -> None:
    # By hand: a0 = 1, a1 = 0.5, v0 = 0.01, a2 = 0.4, a3 = 0.1 at v = -0.01, where the peak is 0.5 / e.
    peak = 0.5 * math.exp(-1.0)
    viscous = 0.4 * 0.01 + 0.1 * 1e-4
    assert force_at(make_stribeck(), velocity=-0.01) == pytest.approx(-(1.0 + peak) - viscous, rel=1e-14)
    gaussian = force_at(make_stribeck(shape="exponent"), velocity=0.02, exponent=2.0)
    assert gaussian == pytest.approx(force_at(make_stribeck(), velocity=0.02), rel=1e-14)
    assert force_at(make_coulomb_directional(), velocity=-2.0, a0_backward=3.0) == -3.0
    assert force_at(make_coulomb_loaded(), velocity=2.0, load=-10.0, mu=0.1) == pytest.approx(2.0, rel=1e-14)
    cubic = make_viscous(order=3)
    assert force_at(cubic, velocity=-2.0) == pytest.approx(-(0.8 + 0.4 + 0.4), rel=1e-14)
    assert force_at(make_coulomb(), velocity=0.0) == 0.0


def test_viscous_friction_is_added_once() -> None:
    dahl = add_viscous(make_dahl(), order=2)
    assert dahl.name == "dahl_viscous_quadratic"
    assert force_at(dahl, z=1e-5, velocity=2.0) == pytest.approx(1.0 + 0.8 + 0.4, rel=1e-14)
    one_sided = add_viscous(make_dahl(), directional=True)
    assert one_sided.name == "dahl_viscous_directional"
    assert force_at(one_sided, z=0.0, velocity=-2.0, a2_backward=0.7) == pytest.approx(-1.4, rel=1e-14)
    assert force_at(one_sided, z=0.0, velocity=2.0, a2_backward=0.7) == pytest.approx(0.8, rel=1e-14)
    with pytest.raises(ModelError, match="a2, a3 already"):
        add_viscous(make_lugre(), order=2)
    with pytest.raises(ModelError, match="allowed is 1, 2 or 3"):
        make_viscous(order=4)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="2 or more"):
        make_maxwell_slip(elements=1)


def test_lugre_itself_dissipates_as_its_variants_do() -> None:
    assert verify_identity(make_lugre(), BRISTLE_IDENTITIES[1]).status == "proved"


def test_passivity_is_a_matter_of_the_damping() -> None:
    constant = make_lugre_constant()
    # s1^2 v / (4 g (s1 + f / v)) at 10 rad/s: g = 1, f / v = 0.4 + 0.1 * 10.
    s1 = 316.22776601683796
    found = bristle_passivity(constant)
    assert found.ratio == pytest.approx(s1**2 * 10.0 / (4.0 * (s1 + 1.4)), rel=1e-12)
    assert not found.passive
    assert bristle_passivity(constant, {"s1": 0.4}).passive
    # damping that decays: the largest s1 v exp(-(v/vd)^2) is at vd / sqrt(2)
    decaying = bristle_passivity(make_lugre(), {"s1": 20.0})
    assert decaying.passive
    assert "passive" in str(decaying)
    with pytest.raises(ModelError, match="no bristle damping"):
        bristle_passivity(make_dahl())


def simulator_of(model: Model, folder: Path) -> Simulator:
    if find_compiler() is None:
        pytest.skip("there is no C compiler")
    return build_simulator(discretise(lower(model)), cache=folder)


def ramp_and_back(count: int = 1200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return time, velocity and position: 10 um/ms amplitude out and back through rest, so that bristles bend and slip."""
    time = np.arange(count) * 1e-3
    omega = 2.0 * np.pi
    return time, 0.02 * np.sin(omega * time), 0.02 / omega * (1.0 - np.cos(omega * time))


@pytest.mark.compiler
@pytest.mark.parametrize("name", STATES)
def test_generated_c_and_casadi_agree(name: str, tmp_path: Path) -> None:
    model = LIBRARY[name](motion="rotary")
    time, v, q = ramp_and_back(400)
    arguments = (time, np.column_stack([v, q]), np.zeros(1), np.zeros(0), nominal_vector(model))
    compiled = simulator_of(model, tmp_path).rollout(*arguments)
    machine = CasadiSimulator(discretise(lower(model))).rollout(*arguments)
    assert compiled.status == machine.status == ""
    # The same kernels in the same order: only the compiler's contraction of products differs.
    assert compiled.outputs == pytest.approx(machine.outputs, rel=0, abs=1e-10)


@pytest.mark.compiler
def test_dahl_in_closed_form(tmp_path: Path) -> None:
    dahl = make_dahl()
    time = np.arange(60) * 1e-3
    v = np.full(60, 1e-3)
    rollout = simulator_of(dahl, tmp_path).rollout(
        time, np.column_stack([v, v * time]), np.zeros(1), np.zeros(0), nominal_vector(dahl)
    )
    exact = 1.0 - np.exp(-1e5 * v * time)
    # Radau of order 5 with h s0 v / a0 = 0.1: (0.1)^6 / 7200 of each step, over 60 steps
    assert rollout.outputs[:, 0] == pytest.approx(exact, rel=0, abs=1e-9)


@pytest.mark.compiler
def test_elasto_plastic_does_not_drift_below_break_away(tmp_path: Path) -> None:
    model, lugre = make_elasto_plastic(), make_lugre_constant()
    time = np.arange(2000) * 1e-3
    omega = 2.0 * np.pi * 5.0
    # deflections of 3 um about 1 um, and z_ba = 0.5 a0 / s0 = 5 um
    q = 3e-6 * np.sin(omega * time) + 1e-6 * (1.0 - np.exp(-time / 0.05))
    v = 3e-6 * omega * np.cos(omega * time) + 1e-6 / 0.05 * np.exp(-time / 0.05)
    samples = np.column_stack([v, q])

    def travelled(made: Model) -> float:
        motion = simulator_of(made, tmp_path).rollout(
            time, samples, np.zeros(1), np.zeros(0), nominal_vector(made)
        )
        return float(np.abs(motion.states[:, 0] - q).max())

    # z = q is what the equations say below break-away; Hermite input leaves rounding
    assert travelled(model) < 1e-10
    assert travelled(lugre) > 1e-7


@pytest.mark.compiler
def test_maxwell_slip_is_piecewise_linear_and_closes_its_loop(tmp_path: Path) -> None:
    model = make_maxwell_slip(elements=3)
    values = {"a1": 0.0, "a2": 0.0, "a3": 0.0, "k1": 6e4, "k2": 3e4, "k3": 1e4, "w1": 0.2, "w2": 0.3}
    values["sample_time"] = 1e-3
    time = np.arange(400) * 1e-3
    v = np.where(time < 0.2, 1e-3, -1e-3)
    travel = np.concatenate([[0.0], np.cumsum(v[:-1] * 1e-3)])
    simulator = simulator_of(model, tmp_path)
    count = len(model.discrete_states)
    force = simulator.rollout(
        time, np.column_stack([v, travel]), np.zeros(1), np.zeros(count), nominal_vector(model, **values)
    ).outputs[:, 0]
    way_out = slice(0, 200)
    limits = np.array([0.2, 0.3, 0.5])
    by_hand = np.minimum(np.array([6e4, 3e4, 1e4]) * travel[way_out, None], limits).sum(axis=1)
    # an element clipped at its limit stays there: equality to rounding
    assert force[way_out] == pytest.approx(by_hand, rel=1e-12, abs=1e-14)
    # Masing: back from saturation every element runs through twice its limit
    back = travel[200] - travel[200:]
    by_hand = 1.0 - np.minimum(np.array([6e4, 3e4, 1e4]) * back[:, None], 2.0 * limits).sum(axis=1)
    assert force[200:] == pytest.approx(by_hand, rel=1e-12, abs=1e-13)


@pytest.mark.compiler
def test_maxwell_slip_lags_behind_a_falling_friction(tmp_path: Path) -> None:
    model = make_maxwell_slip()
    time = np.arange(3000) * 1e-3
    v = 0.02 + 0.01 * np.sin(2.0 * np.pi * time)
    q = 0.02 * time - 0.01 / (2.0 * np.pi) * np.cos(2.0 * np.pi * time)
    count = len(model.discrete_states)
    motion = simulator_of(model, tmp_path).rollout(
        time, np.column_stack([v, q]), np.zeros(1), np.zeros(count), nominal_vector(model)
    )
    force = motion.outputs[:, 0] - 0.4 * v - 0.1 * v**2
    g = 1.0 + 0.5 * np.exp(-((v / 0.01) ** 2))
    speeding = (np.gradient(v) > 0.0) & (time > 1.0)
    slowing = (np.gradient(v) < 0.0) & (time > 1.0)
    # frictional lag: above the steady curve while speeding up, below while slowing down
    assert np.mean(force[speeding] - g[speeding]) > 0.0
    assert np.mean(force[slowing] - g[slowing]) < 0.0


@pytest.mark.compiler
def test_variants_that_are_lugre_where_they_should_be(tmp_path: Path) -> None:
    time, v, q = ramp_and_back()
    samples = np.column_stack([v, q])

    def force(model: Model, **values: float) -> np.ndarray:
        motion = simulator_of(model, tmp_path).rollout(
            time, samples, np.zeros(1), np.zeros(0), nominal_vector(model, **values)
        )
        return motion.outputs[:, 0]

    lugre = force(make_lugre())
    assert force(make_lugre_asymmetric()) == pytest.approx(lugre, rel=0, abs=1e-12)
    # exp(-(0.02 / 1e6)^2) is 1 to rounding
    assert force(make_lugre_constant()) == pytest.approx(force(make_lugre(), vd=1e6), rel=0, abs=1e-12)
    halved = force(make_lugre_asymmetric(), a0_backward=0.5)
    moving_back = v < -0.015
    assert np.all(np.abs(halved[moving_back]) < np.abs(lugre[moving_back]))


@pytest.mark.parametrize("name", ["dahl", "lugre_asymmetric", "elasto_plastic", "stribeck", "maxwell_slip"])
def test_models_compose_with_an_axis_and_a_joint(name: str) -> None:
    axis = compose(
        "sled",
        {"axis": make_axis(), "friction": LIBRARY[name](motion="linear")},
        {"friction.velocity": "axis.velocity", "axis.friction_force": "friction.force"},
    )
    assert [(v.identity.name, v.status, v.detail) for v in verify(axis) if not v.as_expected] == []
    joint = compose(
        "hinge",
        {"joint": make_joint(), "friction": LIBRARY[name](motion="rotary")},
        {"friction.velocity": "joint.velocity", "joint.friction": "friction.force"},
    )
    assert "joint_inertia" in joint.symbols
    assert lower(joint).size("x") + lower(joint).size("d") >= 2


def make_joint() -> Model:
    angle, velocity = Quantity("angle", "rad", nominal=0.0), Quantity("velocity", "rad/s", nominal=0.0)
    torque, friction = Quantity("torque", "N*m"), Quantity("friction", "N*m")
    inertia = Quantity("inertia", "kg*m^2", nominal=0.1, lower=1e-6)
    w, tau, loss, size = (q.elements[0] for q in (velocity, torque, friction, inertia))
    return Model(
        name="joint",
        states=(angle, velocity),
        inputs=(torque, friction),
        parameters=(inertia,),
        derivatives={"angle": w, "velocity": (tau - loss) / size},
        outputs={Quantity("encoder", "rad"): angle.elements[0]},
        description="One inertia.",
    )


@pytest.mark.compiler
def test_an_axis_with_elasto_plastic_friction_sticks(tmp_path: Path) -> None:
    hinge = compose(
        "hinge",
        {"joint": make_joint(), "friction": make_elasto_plastic()},
        {"friction.velocity": "joint.velocity", "joint.friction": "friction.force"},
    )
    simulator = simulator_of(hinge, tmp_path)
    time = np.arange(500) * 1e-3
    # 0.4 N*m is less than break-away (0.5): the joint stays within the spring's travel
    held = simulator.rollout(time, np.full((500, 1), 0.4), np.zeros(3), np.zeros(0), nominal_vector(hinge))
    assert held.status == ""
    assert np.abs(held.states[:, 0]).max() < 1e-5
    moved = simulator.rollout(time, np.full((500, 1), 2.0), np.zeros(3), np.zeros(0), nominal_vector(hinge))
    assert moved.states[-1, 0] > 0.1


def test_the_closed_loop_takes_any_friction() -> None:
    loop = make_emps_closed_loop(make_lugre_linear())
    other = make_emps_closed_loop(make_elasto_plastic(motion="linear"))
    assert len(other.states) == len(loop.states)
