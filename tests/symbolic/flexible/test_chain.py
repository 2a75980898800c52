"""Two flexible links in a chain."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mechsmith.codegen.functions import Array
from mechsmith.codegen.held import Held, hold
from mechsmith.codegen.lower import lower
from mechsmith.symbolic.flexible.chain import make_flexible_chain

TORQUES = np.zeros(2)


@pytest.fixture(scope="module")
def chain() -> Held:
    return hold(lower(make_flexible_chain()))


def acceleration(chain: Held, x: Array, p: Array, u: Array) -> Array:
    mass = chain.functions.evaluate("mass", x, u=u, p=p)
    return np.linalg.solve(mass, chain.functions.evaluate("derivative", x, u=u, p=p)[:, 0])


def test_energy_and_angular_momentum_are_conserved(chain: Held) -> None:
    p = chain.parameters(chain.original.vector("p"))
    start = np.array([0.1, 0.5, 0.02, 0.001, 0.01, 0.001, 0.3, -0.5, 0.0, 0.0, 0.0, 0.0])
    motion = solve_ivp(
        lambda _, x: acceleration(chain, x, p, TORQUES),
        (0.0, 1.0),
        start,
        method="DOP853",
        rtol=1e-11,
        atol=1e-13,
    )
    outputs = np.array([chain.functions.evaluate("output", x, u=TORQUES, p=p)[:, 0] for x in motion.y.T])
    values = dict(zip(chain.functions.labels("y"), outputs.T, strict=True))
    # the second joint's angle has turned, so that the links exchange both
    assert abs(motion.y[1, -1] - start[1]) > 0.1
    for name in ("chain_energy", "chain_angular_momentum"):
        np.testing.assert_allclose(values[name], values[name][0], rtol=1e-9)


def test_motors_and_damping_balance_the_energy(chain: Held) -> None:
    p = chain.parameters(chain.original.vector("p", {"chain_structural_damping": 0.4}))
    rng = np.random.default_rng(0)
    labels = chain.functions.labels("y")
    by_x = chain.functions.with_jacobians(("output", "x"))
    for _ in range(10):
        x = rng.normal(size=12) * np.array([1.0, 1.0, 0.02, 0.01, 0.02, 0.01, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1])
        u = rng.normal(size=2)
        slope = by_x.evaluate("output_x", x, u=u, p=p)[labels.index("chain_energy")]
        power = chain.functions.evaluate("output", x, u=u, p=p)[labels.index("chain_power"), 0]
        # rounding, of forces 1e3 times the sum
        assert slope @ acceleration(chain, x, p, u) == pytest.approx(power, rel=1e-9, abs=1e-11)


def test_straight_and_stiff_it_is_the_double_pendulum(chain: Held) -> None:
    values = {
        "first_tip_mass": 0.05,
        "chain_first_rotor": 0.003,
        "chain_second_rotor": 0.002,
        "second_length": 0.6,
    }
    original = chain.original.vector("p", values)
    named = dict(zip(chain.original.labels("p"), original, strict=True))
    p = chain.parameters(original)
    x = np.zeros(12)
    x[1] = 0.7
    mass = chain.functions.evaluate("mass", x, u=TORQUES, p=p)[6:8, 6:8]
    l1, l2 = named["first_length"], named["second_length"]
    m1, m2 = named["first_mass_per_length"] * l1, named["second_mass_per_length"] * l2
    far = m2 * l2**2 / 3.0 + 0.002
    coupling = m2 * l1 * l2 / 2.0 * np.cos(0.7)
    near = m1 * l1**2 / 3.0 + 0.05 * l1**2 + 0.003 + m2 * l1**2
    expected = [[near + far + 2.0 * coupling, far + coupling], [far + coupling, far]]
    np.testing.assert_allclose(mass, expected, rtol=1e-13)
