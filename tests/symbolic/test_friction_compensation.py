"""The sampled controller with a LuGre observer: its identities, and the compiled C against the bristle equation."""

import numpy as np
import pytest

from mechsmith.codegen.build import build, find_compiler
from mechsmith.codegen.lower import lower
from mechsmith.symbolic.control.friction_compensation import make_friction_compensation
from mechsmith.symbolic.friction.lugre import Motion
from mechsmith.symbolic.verify import verify


@pytest.mark.parametrize("motion", ["rotary", "linear"])
def test_identities(motion: Motion) -> None:
    verdicts = verify(make_friction_compensation(motion=motion))
    assert len(verdicts) == 3
    assert all(verdict.status == "proved" for verdict in verdicts)


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_compiled_observer_follows_the_bristles_where_euler_diverges() -> None:
    functions = lower(make_friction_compensation())
    compiled = build(functions)
    # s0 v h / g is 50 at 0.5 rad/s and 1 ms; Euler's method is stable below 2.
    u, p = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.5]), functions.vector("p")
    state = np.array([1e-3, 0.0])
    for _ in range(5):
        state = compiled.evaluate("update", d=state, u=u, p=p).ravel()
    # exp(-50) of the start's error is left after one sample; a0 = 1 N m, exp(-(0.5/0.01)^2) = 0, s0 = 1e5 N m/rad.
    assert state[0] == pytest.approx(1e-5, rel=1e-14)
    # Steady friction: a0 + a2 v + a3 v^2, and no bristle rate; Kd, Kp and inertia see no error. The rate is a difference
    # of equal velocities, times s1(v) = 316 exp(-25).
    assert state[1] == pytest.approx(1.0 + 0.4 * 0.5 + 0.1 * 0.25, rel=1e-13)


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_observer_holds_the_bristles_at_rest() -> None:
    functions = lower(make_friction_compensation())
    u, p = np.zeros(6), functions.vector("p")
    state = build(functions).evaluate("update", d=np.array([3e-6, 0.0]), u=u, p=p).ravel()
    assert state[0] == 3e-6
    assert state[1] == pytest.approx(0.3, rel=1e-15)
