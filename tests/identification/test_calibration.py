"""Self-calibration of the planar robot: what can be found, with what configurations, and that it is found."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mechsmith.codegen.functions import FunctionSet
from mechsmith.codegen.lower import lower
from mechsmith.identification import (
    EquationError,
    LeastSquares,
    Prior,
    Problem,
    ProblemError,
    Record,
    identify,
)
from mechsmith.identification.nlp.ipopt import Ipopt
from mechsmith.identification.parallel.calibration import choose_configurations, identifiability, joint_rmse
from mechsmith.identification.parallel.planar_robot import (
    aligned,
    aligned_error,
    calibration_record,
    circle,
    grid,
    offsets,
    polyline,
    readings,
)
from mechsmith.symbolic.parallel.planar import WORKING_MODES, make_planar_inverse
from mechsmith.symbolic.parallel.planar_calibration import make_planar_closure_error, make_planar_misfit

Array = NDArray[np.float64]
# In the order of the reference.
TWELVE = (
    "base_2_y", "base_3_x", "base_3_y", "arm_cos_1", "arm_sin_1", "arm_cos_2", "arm_sin_2", "arm_cos_3", "arm_sin_3",
    "distal_1", "distal_2", "distal_3",
)  # fmt: skip
ELEVEN = TWELVE[1:]
FROZEN = {"base_1_x": 0.0, "base_1_y": 0.25, "base_2_x": 0.433}
LEFT = (1, 1, 1)


@pytest.fixture(scope="module")
def misfit() -> FunctionSet:
    return lower(make_planar_misfit())


@pytest.fixture(scope="module")
def inverse() -> FunctionSet:
    return lower(make_planar_inverse())


@pytest.fixture(scope="module")
def data(reference: Path) -> Any:
    return json.loads((reference / "parallel" / "p1_selfcal.json").read_text())


@pytest.fixture(scope="module")
def true(data: Any) -> dict[str, float]:
    return dict(zip(TWELVE, data["inputs"]["true"], strict=True)) | FROZEN


def problem(
    functions: FunctionSet,
    record: Record,
    free: Sequence[str] = ELEVEN,
    noise: float | None = None,
    **more: Any,
) -> Problem:
    output = functions.labels("y")[0]
    fixed = {name: value for name, value in {**FROZEN, "base_2_y": 0.0}.items() if name not in free}
    residual = EquationError(outputs={output: output}, noise={} if noise is None else {output: noise})
    return Problem(functions, (record,), free=tuple(free), fixed=fixed, residual=residual, **more)


@pytest.mark.parametrize("which", ["circle", "wide"])
def test_the_reference_jacobian_has_rank_11(
    misfit: FunctionSet, data: Any, true: dict[str, float], which: str
) -> None:
    case = data["sets"][which]
    record = calibration_record(np.array(case["q_measured_noise_free"]), LEFT)
    whole = problem(misfit, record, TWELVE)
    found = identifiability(whole, true)
    assert found.rank == 11
    tolerance = data["tolerance"]["sv_rel"]
    np.testing.assert_allclose(
        found.singular_values[:11], case["jacobian_sv_at_truth_12"][:11], rtol=tolerance
    )
    (null,) = found.null_directions
    vector = np.array([null.shares.get(name, 0.0) for name in TWELVE])
    assert abs(vector @ case["null_vector"]) == pytest.approx(1.0, rel=1e-10)
    assert np.isinf(null.deviation)
    assert "base_2_y" in str(null)
    row = whole.data_jacobian(whole.start_vector(true))[0]
    # Columns come in the model's order.
    ordered = np.array([row[whole.names.index(name)] for name in TWELVE])
    # n has free sign.
    np.testing.assert_allclose(np.abs(ordered), np.abs(case["jacobian_row0"]), rtol=1e-6)


def test_the_null_direction_is_the_similarity_about_the_first_base(
    misfit: FunctionSet, data: Any, true: dict[str, float]
) -> None:
    record = calibration_record(np.array(data["sets"]["wide"]["q_measured_noise_free"]), LEFT)
    whole = problem(misfit, record, TWELVE)
    small = 1e-6
    # The similarity that keeps base_2_x: scale and rotation together.
    moved = aligned(true, {**true, "base_2_y": true["base_2_y"] + small})
    difference = np.array([(moved[name] - true[name]) / small for name in whole.names])
    (null,) = identifiability(whole, true).null_directions
    vector = np.array([null.shares.get(name, 0.0) for name in whole.names])
    np.testing.assert_allclose(
        np.outer(vector, difference), np.outer(difference, vector), atol=1e-5 * np.linalg.norm(difference)
    )


def test_the_circle_leaves_directions_to_decimetres(
    misfit: FunctionSet, data: Any, true: dict[str, float]
) -> None:
    record = calibration_record(np.array(data["sets"]["circle"]["q_measured_noise_free"]), LEFT)
    found = identifiability(problem(misfit, record, noise=1e-4), true)
    assert found.rank == 11
    assert found.condition == pytest.approx(6.8e5, rel=0.05)
    # 1e-4 rad of noise: five directions better than 1 mm, the worst parameters known to some 0.2-0.6 m.
    assert len(found.weak_directions(1e-3)) == 6
    assert 0.1 < found.deviations.max() < 0.6


@pytest.mark.parametrize("make", [make_planar_closure_error, make_planar_misfit])
@pytest.mark.parametrize("which", ["circle", "wide"])
def test_the_reference_solutions_without_noise(
    make: Any, which: str, data: Any, true: dict[str, float]
) -> None:
    case = data["sets"][which]
    record = calibration_record(np.array(case["q_measured_noise_free"]), LEFT)
    estimate = identify(problem(lower(make()), record), LeastSquares())
    assert estimate.success
    values = [estimate.parameters[name] for name in TWELVE]
    np.testing.assert_allclose(
        values, case["solution_11_ya2_fixed_nominal"], atol=data["tolerance"][f"solution_{which}_abs"]
    )
    assert aligned_error(estimate.parameters, true) < 1e-8


@pytest.mark.parametrize("noise", ["0.0001", "0.001"])
def test_the_reference_solutions_with_noise(
    misfit: FunctionSet, noise: str, data: Any, true: dict[str, float]
) -> None:
    case = data["sets"]["wide"][f"noisy_sigma_{noise}"]
    tolerance = data["tolerance"]
    record = calibration_record(np.array(case["q_measured"]), LEFT)
    for functions, key in ((lower(make_planar_closure_error()), "alg"), (misfit, "ml")):
        estimate = identify(problem(functions, record), LeastSquares())
        values = [estimate.parameters[name] for name in TWELVE]
        np.testing.assert_allclose(values, case[f"{key}_solution_11"], atol=tolerance["noisy_solution_abs"])
        assert 1e3 * aligned_error(estimate.parameters, true) == pytest.approx(
            case["aligned_err_mm"][key], abs=1e-6
        )
    assert estimate.residual_norm**2 == pytest.approx(case["ml_sum_sq_rad2"], rel=1e-9)
    path = calibration_record(np.array(data["inputs"]["validation_polyline_q_measured"]), LEFT)
    found = joint_rmse(problem(misfit, record), estimate.parameters, sensors=3, record=path)
    assert found == pytest.approx(case["aj_rmse_validation_ml"], rel=tolerance["aj_rel"])


def test_the_joint_error_before_and_after(misfit: FunctionSet, data: Any, true: dict[str, float]) -> None:
    path = calibration_record(np.array(data["inputs"]["validation_polyline_q_measured"]), LEFT)
    nominal = dict(zip(TWELVE, data["inputs"]["nominal"], strict=True)) | FROZEN
    judged = problem(misfit, path, TWELVE)
    assert joint_rmse(judged, nominal, sensors=3) == pytest.approx(
        data["expected"]["aj_rmse_nominal_validation_ls"], rel=data["tolerance"]["aj_rel"]
    )
    assert joint_rmse(judged, true, sensors=3) < 1e-14


def candidates(inverse: FunctionSet, nominal: dict[str, float]) -> tuple[Array, Array]:
    """Return points within 15 mm of the workspace's end in all working modes, and their readings' modes."""
    points = grid(0.02, margin=0.015)
    modes = np.array(list(WORKING_MODES.values()))
    return np.tile(points, (len(modes), 1)), np.repeat(modes, len(points), axis=0)


def test_the_proposed_configurations_are_conditioned_well(
    misfit: FunctionSet, inverse: FunctionSet, data: Any, true: dict[str, float]
) -> None:
    nominal = dict(zip(TWELVE, data["inputs"]["nominal"], strict=True)) | FROZEN
    points, modes = candidates(inverse, nominal)
    everything = problem(misfit, calibration_record(readings(inverse, points, modes, nominal), modes))
    rows = everything.data_jacobian(everything.start_vector())[:, None, :]
    left = np.flatnonzero((modes == LEFT).all(axis=1))
    one_mode = choose_configurations(rows[left], 100)
    all_modes = choose_configurations(rows, 100)
    assert all_modes.condition < 10.0 < one_mode.condition < 30.0
    assert len(set(all_modes.chosen)) == 100
    # No worse than the best of 50 random choices.
    rng = np.random.default_rng(0)
    for _ in range(50):
        chosen = rng.choice(len(rows), 100, replace=False)
        sign, log_determinant = np.linalg.slogdet(rows[chosen, 0].T @ rows[chosen, 0])
        assert sign > 0.0
        assert log_determinant < all_modes.log_determinant
    # And on it, the true robot is found from 20 poor starts, as its noise allows.
    chosen_points, chosen_modes = points[all_modes.chosen], modes[all_modes.chosen]
    clean = readings(inverse, chosen_points, chosen_modes, true)
    exact = problem(misfit, calibration_record(clean, chosen_modes))
    algebraic = problem(lower(make_planar_closure_error()), calibration_record(clean, chosen_modes))
    for _ in range(20):
        start = {name: nominal[name] + rng.uniform(-2e-3, 2e-3) for name in ELEVEN}
        # From poor starts the closed form first: the misfit is undefined where a point can't be reached.
        coarse = identify(algebraic, LeastSquares(), start=start)
        estimate = identify(exact, LeastSquares(), start=coarse)
        assert aligned_error(estimate.parameters, true) < 1e-9
    record = calibration_record(clean + rng.normal(0.0, 1e-4, clean.shape), chosen_modes)
    noisy = problem(misfit, record, noise=1e-4)
    coarse = identify(dataclasses.replace(algebraic, records=(record,)), LeastSquares())
    estimate = identify(noisy, LeastSquares(), start=coarse)
    target = aligned(true, {**true, "base_2_y": 0.0})
    deviation = identifiability(noisy, estimate.parameters).deviations
    error = np.array([estimate.parameters[name] - target[name] for name in noisy.names])
    # Eleven normal errors: beyond 4 standard deviations in 7e-4 of all seeds.
    assert np.all(np.abs(error) < 4.0 * deviation)


def test_the_circle_converges_with_a_prior_and_says_what_is_not_determined(
    misfit: FunctionSet, data: Any, true: dict[str, float]
) -> None:
    clean = np.array(data["sets"]["circle"]["q_measured_noise_free"])
    noisy = clean + np.random.default_rng(0).normal(0.0, 1e-4, clean.shape)
    nominal = dict(zip(TWELVE, data["inputs"]["nominal"], strict=True)) | FROZEN
    priors = {name: Prior(nominal[name], 1e-3 if "sin" not in name else 2.5e-3) for name in ELEVEN}
    guarded = problem(misfit, calibration_record(noisy, LEFT), noise=1e-4, priors=priors)
    estimate = identify(guarded, LeastSquares())
    assert estimate.success
    # No better than the prior, and no worse than a few of its standard deviations.
    assert 1e-5 < aligned_error(estimate.parameters, true) < 5e-3
    free = identifiability(guarded, estimate.parameters)
    assert len(free.weak_directions(1e-3)) == 6


def test_offsets_and_paths(inverse: FunctionSet, true: dict[str, float]) -> None:
    np.testing.assert_allclose(offsets(true), [0.0112, -0.006, 0.0068], atol=1e-4)
    motion = circle(0.04, 0.2, 100)
    np.testing.assert_allclose(np.linalg.norm(motion.velocity, axis=1), 0.2, rtol=1e-12)
    assert len(polyline(((0, 0), (1, 0), (1, 1)), 5)) == 11
    with pytest.raises(ProblemError, match="does not reach point 1"):
        readings(inverse, np.array([[0.29, 0.25], [0.9, 0.9]]), LEFT, true)


def test_errors_say_what_is_allowed(misfit: FunctionSet, data: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(20, 1, 3))
    with pytest.raises(ProblemError, match=r"count is 2; allowed is 3 \(for 3 parameters\) to 20"):
        choose_configurations(rows, 2)
    rows[:, :, 2] = rows[:, :, 1]
    with pytest.raises(ProblemError, match="do not determine the parameters"):
        choose_configurations(rows, 5)
    record = calibration_record(np.array(data["sets"]["circle"]["q_measured_noise_free"]), LEFT)
    apart = calibration_record(
        np.full((20, 3), np.deg2rad([180.0, -90.0, 90.0])), LEFT
    )  # arms point away from each other
    with pytest.raises(ProblemError, match="Jacobian is not finite"):
        identifiability(problem(misfit, apart))
    with pytest.raises(ProblemError, match=r"fixed\['base_2_y'\] is 3.0, allowed is -0.02 to 0.02"):
        dataclasses.replace(problem(misfit, record), fixed={**FROZEN, "base_2_y": 3.0})


def test_ipopt_finds_what_least_squares_find(data: Any) -> None:
    case = data["sets"]["wide"]["noisy_sigma_0.0001"]
    record = calibration_record(np.array(case["q_measured"]), LEFT)
    estimate = identify(problem(lower(make_planar_closure_error()), record), Ipopt())
    assert estimate.success
    values = [estimate.parameters[name] for name in TWELVE]
    # Its tolerance of 1e-8 on a gradient, over squared singular values of order 1, and residuals of 1e-9.
    np.testing.assert_allclose(values, case["alg_solution_11"], atol=1e-8)
