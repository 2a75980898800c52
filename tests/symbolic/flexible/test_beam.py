"""Beams: roots, frequencies, mode shapes and modal integrals."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh

from mechsmith.codegen.functions import Array, FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.codegen.unknowns import UnknownsSolver, eliminate
from mechsmith.symbolic.flexible.beam import make_beam_frequencies
from mechsmith.symbolic.flexible.modes import make_beam_modes
from mechsmith.symbolic.flexible.shapes import gauss_legendre, pairs
from mechsmith.symbolic.names import ModelError

UNIT = {"bending_stiffness": 1.0, "length": 1.0, "mass_per_length": 1.0}
NONE = np.zeros((1, 0))


def roots_of(functions: FunctionSet, **values: float) -> Array:
    solved = UnknownsSolver(functions).solve(
        NONE, NONE, NONE, functions.vector("p", {**UNIT, **values})[None, :]
    )
    assert solved.found.all()
    return np.asarray(solved.values[0])


def frequencies_of(functions: FunctionSet, **values: float) -> Array:
    return eliminate(functions).evaluate("output", p=functions.vector("p", {**UNIT, **values}))[:, 0]


def finite_elements(
    stiffness: float, *, elements: int = 80, hub_inertia: float | None = None, tip_mass: float = 0.0
) -> Array:
    """Return frequencies of a beam of unit EI, rho A and l from cubic Hermite elements, rotor angle last if it turns."""
    h, size = 1.0 / elements, 2 * (elements + 1)
    bending = np.array([[12, 6 * h, -12, 6 * h], [6 * h, 4 * h * h, -6 * h, 2 * h * h]])
    bending = np.vstack([bending, -bending[0], [6 * h, 2 * h * h, -6 * h, 4 * h * h]]) / h**3
    inertia = np.array(
        [
            [156, 22 * h, 54, -13 * h],
            [22 * h, 4 * h * h, 13 * h, -3 * h * h],
            [54, 13 * h, 156, -22 * h],
            [-13 * h, -3 * h * h, -22 * h, 4 * h * h],
        ]
    )
    mass, matrix = np.zeros((size + 1, size + 1)), np.zeros((size + 1, size + 1))
    for i in range(elements):
        place = slice(2 * i, 2 * i + 4)
        matrix[place, place] += bending
        mass[place, place] += inertia * h / 420.0
    mass[size - 2, size - 2] += tip_mass
    # the spring between the slope at the root and the rotor, which is the last coordinate
    matrix[np.ix_([1, size], [1, size])] += stiffness * np.array([[1.0, -1.0], [-1.0, 1.0]])
    mass[size, size] = hub_inertia or 0.0
    free = [i for i in range(size + 1) if i != 0 and (i != size or hub_inertia is not None)]
    # M against K: the largest eigenvalues are those of the lowest modes, where rounding matters least
    values = eigh(
        mass[np.ix_(free, free)],
        matrix[np.ix_(free, free)] + _rigid(hub_inertia, free, mass),
        eigvals_only=True,
    )
    return np.sort(1.0 / np.sqrt(values[-6:]))


def _rigid(hub_inertia: float | None, free: list[int], mass: Array) -> Array:
    """Return what gives the rigid rotation of a turning beam the frequency 1e-3, and leaves the others as they are."""
    if hub_inertia is None:
        return np.zeros((len(free), len(free)))
    count = mass.shape[0] // 2
    mode = np.zeros(mass.shape[0])
    mode[0:-1:2], mode[1:-1:2], mode[-1] = np.linspace(0.0, 1.0, count), 1.0, 1.0
    momentum = (mass @ mode)[free]
    return 1e-6 * np.outer(momentum, momentum) / float(mode @ mass @ mode)


def test_roots_of_the_frequency_equation(flexible: Callable[[str], dict[str, Any]]) -> None:
    data = flexible("frequency_equation")
    functions = lower(make_beam_frequencies(modes=5))
    for case in data["cases"]:
        found = roots_of(functions, joint_stiffness=float(case["kappa"]))
        np.testing.assert_allclose(
            found, [float(z) for z in case["z"]], rtol=0, atol=data["tolerance"]["z_abs"]
        )
    for root, name in (("clamped", "kappa_inf"), ("pinned", "kappa_0")):
        found = roots_of(lower(make_beam_frequencies(modes=4, root=root)))  # type: ignore[arg-type]
        expected = [float(z) for z in data["limits"][name] if float(z) > 0.0][:4]
        np.testing.assert_allclose(found, expected, rtol=0, atol=data["tolerance"]["z_abs"])


@pytest.mark.parametrize("tip_mass", [False, True])
def test_roots_are_found_for_any_stiffness_and_many_modes(*, tip_mass: bool) -> None:
    functions = lower(make_beam_frequencies(modes=20, tip_mass=tip_mass))
    before = np.zeros(20)
    for stiffness in (1e-8, 1e-4, 1.0, 1e4, 1e8, 1e12):
        for load in (0.0, 1.0, 1e4) if tip_mass else (0.0,):
            loaded = {"tip_mass": load} if tip_mass else {}
            found = roots_of(functions, joint_stiffness=stiffness, **loaded)
            assert (np.diff(found) > 1.0).all()
            if load == 0.0:
                # every root rises with the stiffness, to the clamped beam's
                assert (found >= before * (1.0 - 1e-15)).all()
                before = found
    clamped = roots_of(lower(make_beam_frequencies(modes=20, root="clamped")))
    # 1/kappa is left of the difference
    np.testing.assert_allclose(before, clamped, rtol=1e-11)


@pytest.mark.parametrize("stiffness", [1e-2, 1.0, 1e2, 1e4, 1e6])
def test_frequencies_against_finite_elements(stiffness: float) -> None:
    held = frequencies_of(lower(make_beam_frequencies(modes=4)), joint_stiffness=stiffness)
    # the issue's tolerance; the elements' own error is (z h)^4/720 for the fourth mode, 5e-7
    np.testing.assert_allclose(held, finite_elements(stiffness)[:4], rtol=1e-6)
    turning = lower(make_beam_frequencies(modes=4, hub="turning"))
    found = frequencies_of(turning, joint_stiffness=stiffness, hub_inertia=0.08)
    np.testing.assert_allclose(found, finite_elements(stiffness, hub_inertia=0.08)[1:5], rtol=1e-6)


def test_tip_mass_and_hub_against_finite_elements() -> None:
    held = frequencies_of(lower(make_beam_frequencies(tip_mass=True)), joint_stiffness=2.0, tip_mass=0.7)
    np.testing.assert_allclose(held, finite_elements(2.0, tip_mass=0.7)[:4], rtol=1e-6)
    both = lower(make_beam_frequencies(tip_mass=True, hub="turning"))
    found = frequencies_of(both, joint_stiffness=2.0, tip_mass=0.7, hub_inertia=0.08)
    np.testing.assert_allclose(found, finite_elements(2.0, tip_mass=0.7, hub_inertia=0.08)[1:5], rtol=1e-6)
    clamped = lower(make_beam_frequencies(root="clamped", hub="turning"))
    stiff = finite_elements(1e7, hub_inertia=0.08)[1:5]
    np.testing.assert_allclose(frequencies_of(clamped, hub_inertia=0.08), stiff, rtol=2e-6)


def test_a_turning_hub_against_the_reference(
    flexible: Callable[[str], dict[str, Any]], named: Callable[..., Array]
) -> None:
    functions = lower(make_beam_frequencies(modes=4, hub="turning"))
    for case in flexible("modal")["cases"]:
        found = eliminate(functions).evaluate("output", p=named(functions, case["beam"]))[:, 0]
        np.testing.assert_allclose(found, case["omega_free_hub_exact"], rtol=1e-12)


def test_derivatives_are_exact() -> None:
    functions = lower(make_beam_frequencies(modes=8))
    modes = eliminate(lower(make_beam_modes(modes=8, order="zero", points=2)))
    p = functions.vector("p", {"joint_stiffness": 0.7, "length": 1.3, "mass_per_length": 0.03})
    solved = eliminate(functions)
    omega, by = solved.evaluate("output", p=p)[:, 0], solved.evaluate("output_p", p=p)
    k, bending, length, line = p
    # w = (EI/rho A)^(1/2) l^-2 Z(k l/EI): homogeneity in k and EI, in rho A, and in length and stiffness
    np.testing.assert_allclose(k * by[:, 0] + bending * by[:, 1], omega / 2, rtol=1e-13)
    np.testing.assert_allclose(line * by[:, 3], -omega / 2, rtol=1e-13)
    np.testing.assert_allclose(length * by[:, 2], k * by[:, 0] - 2 * omega, rtol=1e-13)
    # Rayleigh: d(w^2)/dk = phi'(0)^2/modal mass
    labels = modes.labels("y")
    values = dict(zip(labels, modes.evaluate("output", p=p)[:, 0], strict=True))
    slope, mass = (
        np.array([values[f"beam_{n}_{i}"] for i in range(8)]) for n in ("root_slope", "modal_mass")
    )
    np.testing.assert_allclose(2 * omega * by[:, 0], slope**2 / mass, rtol=1e-9)


def test_modal_integrals(flexible: Callable[[str], dict[str, Any]], named: Callable[..., Array]) -> None:
    data = flexible("modal")
    functions = lower(make_beam_modes(axial=2))
    tolerance = data["tolerance"]
    for case in data["cases"]:
        y = eliminate(functions).evaluate("output", p=named(functions, case["beam"]))[:, 0]
        found, place = {}, 0
        for variable in functions.outputs:
            found[variable.name] = y[place : place + variable.size].reshape(variable.shape)
            place += variable.size
        np.testing.assert_allclose(
            found["beam_natural_frequency"], case["omega_locked"], rtol=tolerance["omega_rel"]
        )
        np.testing.assert_allclose(
            found["mode_shape"].T, case["mode_values"]["phi"], rtol=0, atol=tolerance["phi_abs"]
        )
        upper = [case["D"][i][j] for i, j in pairs(4)]
        axial = case["axial"]
        for name, expected in (
            ("root_slope", case["dphi0"]),
            ("hub_coupling", case["S"]),
            ("modal_mass", case["M2_diag"]),
            ("modal_stiffness", case["K2_diag"]),
            ("stiffening", upper),
            ("axial_mass", [axial["M1_diag"][0], 0.0, axial["M1_diag"][1]]),
            ("axial_modal_stiffness", axial["K1_diag"]),
            ("axial_coupling", axial["Sx"]),
            ("axial_transverse", axial["M12"]),
        ):
            scale = np.abs(expected).max() * tolerance["integral_rel"]
            np.testing.assert_allclose(found[f"beam_{name}"], expected, rtol=0, atol=scale, err_msg=name)


def test_high_modes_keep_their_digits() -> None:
    modes, points = 16, 41
    functions = lower(make_beam_modes(modes=modes, order="zero", points=points))
    y = eliminate(functions).evaluate("output", p=functions.vector("p", {**UNIT, "joint_stiffness": 3.0}))[
        :, 0
    ]
    shapes = y[: modes * points].reshape(modes, points)
    # sinh(z) of the 16th mode is 1e20: of deflections of order 1 it would leave nothing
    np.testing.assert_allclose(shapes[:, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(shapes[:, -1], 1.0, rtol=1e-12)
    # away from both ends a mode is a sine, half as high as its tip
    middle = shapes[4:, points // 4 : 3 * points // 4]
    assert np.abs(middle).max() < 0.75


@pytest.mark.parametrize("count", [1, 2, 7, 60])
def test_quadrature_is_exact_for_polynomials(count: int) -> None:
    nodes, weights = np.array(gauss_legendre(count)).T
    for power in range(2 * count):
        # rounding of the weights, and of x^n at the nodes
        assert np.sum(weights * nodes**power) == pytest.approx(1.0 / (power + 1), rel=1e-13)


def test_options_that_will_not_do_are_told() -> None:
    for options, message in (
        ({"modes": 0}, "modes is 0"),
        ({"root": "glued"}, "allowed are spring, clamped, pinned"),
        ({"hub": "loose"}, "allowed are held, turning"),
        ({"root": "pinned", "hub": "turning"}, "carries no torque"),
    ):
        with pytest.raises(ModelError, match=message):
            make_beam_frequencies(**options)  # type: ignore[arg-type]


def test_frequencies_of_two_stiffnesses_interlace() -> None:
    # pinned < spring < clamped for every mode, and a turning hub's lie between two of the held beam's
    functions = lower(make_beam_frequencies(modes=8))
    turning = lower(make_beam_frequencies(modes=8, hub="turning"))
    for stiffness, inertia in itertools.product((1e-3, 1.0, 1e3), (1e-6, 1e-2, 1e2)):
        held = frequencies_of(functions, joint_stiffness=stiffness)
        free = frequencies_of(turning, joint_stiffness=stiffness, hub_inertia=inertia)
        assert (free >= held * (1.0 - 1e-12)).all()
        assert (free[:-1] <= held[1:] * (1.0 + 1e-12)).all()
