"""Linear least squares: the published EMPS digits, agreement with nonlinear least squares, refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechsmith.identification import (
    Decimation,
    EquationError,
    LeastSquares,
    LinearLeastSquares,
    MethodError,
    OutputError,
    Problem,
    Record,
    Uncertainty,
    identify,
    validate,
)
from mechsmith.identification.preprocessing import butterworth_zero_phase, differentiate, drop
from mechsmith.identification.readers import ColumnSpec, read_record

FREE = ("mass", "viscous", "offset")


def test_exact_data_give_the_parameters(systems: Any) -> None:
    estimate = identify(Problem(systems.line, (systems.line_record(),), FREE), LinearLeastSquares())
    assert estimate.success
    # condition below 100 and rounding of forces of 100 N
    assert estimate.values == pytest.approx([12.0, 7.0, -1.5], rel=1e-12)
    assert estimate.relative_error < 1e-12


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(1.0, 100.0), st.floats(1.0, 100.0), st.floats(-50.0, 50.0))
def test_linear_equals_nonlinear(systems: Any, seed: int, mass: float, viscous: float, offset: float) -> None:
    record = systems.line_record(mass, viscous, offset, noise=0.5, seed=seed)
    problem = Problem(systems.line, (record,), FREE)
    linear = identify(problem, LinearLeastSquares())
    nonlinear = identify(problem, LeastSquares())
    assert linear.success
    assert nonlinear.success
    # the nonlinear solver ends when the cost changes by 1e-12 of itself, which leaves 1e-6 of a standard deviation;
    # where a bound is active (viscous near 0) its margin is what trf leaves, a thousandth of a deviation
    assert np.all(np.abs(linear.values - nonlinear.values) < 1e-3 * linear.deviations_white)


def test_several_records_share_and_keep_apart(systems: Any) -> None:
    records = (systems.line_record(offset=1.0), systems.line_record(offset=4.0, seed=1))
    problem = Problem(systems.line, records, FREE, per_record=("offset",))
    estimate = identify(problem, LinearLeastSquares())
    assert estimate.free == pytest.approx(
        {"mass": 12.0, "viscous": 7.0, "offset[0]": 1.0, "offset[1]": 4.0}, rel=1e-11
    )
    assert estimate.parameters_for(1) == pytest.approx(
        {"mass": 12.0, "viscous": 7.0, "offset": 4.0}, rel=1e-11
    )


def test_bounds_and_constraints_are_kept(systems: Any) -> None:
    record = systems.line_record(noise=0.5)
    bounded = identify(
        Problem(systems.line, (record,), FREE, bounds={"viscous": (8.0, 20.0)}), LinearLeastSquares()
    )
    assert bounded["viscous"] == 8.0
    assert bounded.at_bound == ("viscous",)
    held = identify(
        Problem(systems.line, (record,), ("mass", "offset"), fixed={"viscous": 8.0}), LinearLeastSquares()
    )
    assert bounded["mass"] == pytest.approx(held["mass"], rel=1e-9)
    constrained = identify(
        Problem(systems.line, (record,), FREE, constraints=("2*viscous >= mass + 6",)), LinearLeastSquares()
    )
    assert constrained.success
    # the closed form: least squares on the plane 2 viscous - mass = 6, which cuts off the free solution (12, 7)
    regressor = np.column_stack([record["acceleration"], record["velocity"], np.ones(len(record))])
    on_plane = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    origin = np.array([0.0, 3.0, 0.0])
    reduced = np.linalg.lstsq(regressor @ on_plane, record["force"] - regressor @ origin, rcond=None)[0]
    # SLSQP ends when the cost changes by 1e-15, which leaves 3e-8 of the parameters' effect
    assert constrained.values == pytest.approx(origin + on_plane @ reduced, rel=1e-6)
    assert len(constrained.at_bound) == 1
    slack = identify(
        Problem(systems.line, (record,), FREE, constraints=("mass >= viscous",)), LinearLeastSquares()
    )
    free = identify(Problem(systems.line, (record,), FREE), LinearLeastSquares())
    assert np.array_equal(slack.values, free.values)


def test_what_is_not_linear_is_refused_by_name(systems: Any) -> None:
    record = systems.stribeck_record(np.array([10.0, 20.0, 0.05, 10.0]))
    problem = Problem(systems.stribeck, (record,), ("fc", "fs", "vs", "fv"))
    # fc and fs enter linearly, but multiplied by a function of vs, as the derivative by fc shows
    with pytest.raises(MethodError, match="not linear in 'fc', 'fs', 'vs'"):
        identify(problem, LinearLeastSquares())
    linear = identify(
        Problem(systems.stribeck, (record,), ("fc", "fs", "fv"), fixed={"vs": 0.05}), LinearLeastSquares()
    )
    assert linear.values == pytest.approx([10.0, 20.0, 10.0], rel=1e-10)
    slid = Problem(systems.slider, (systems.slider_record(15.0, 40.0),), ("mass",), OutputError())
    with pytest.raises(MethodError, match="EquationError"):
        identify(slid, LinearLeastSquares())


def test_dependent_columns_are_named(systems: Any) -> None:
    record = systems.line_record()
    # an acceleration that is twice the velocity: mass and viscous can't be told apart
    tied = record.with_column(
        "acceleration", 2.0 * record["velocity"], "m/s^2", provenance="tied", overwrite=True
    )
    estimate = identify(Problem(systems.line, (tied,), FREE), LinearLeastSquares())
    assert estimate.undetermined == ("mass", "viscous")
    (direction,) = estimate.null_directions
    # changing mass by 1 and viscous by -2 changes nothing
    assert direction["viscous"] / direction["mass"] == pytest.approx(-2.0, rel=1e-9)
    assert estimate.interval("mass") == (0.1, np.inf)
    assert estimate.deviation("mass") == np.inf
    assert np.isfinite(estimate.deviation("offset"))
    assert np.isnan(estimate.correlations[0, 2])


def _emps(shared: Path, name: str) -> Record:
    record = read_record(
        shared / "data" / "emps" / name,
        time=ColumnSpec("t", "s", "s"),
        columns={
            "position": ColumnSpec("qm", "m", "m"),
            "force": ColumnSpec("vir", "V", "N", gain=35.15065188248547, gain_unit="N/V"),
        },
    )
    record = butterworth_zero_phase(record, ["position"], order=4, cutoff_hz=100.0)
    record = differentiate(record, "position", "velocity")
    return drop(differentiate(record, "velocity", "acceleration"), first=49)


@pytest.mark.shared
def test_emps_published_table(shared: Path) -> None:
    """Janot, Gautier, Brunot (2019): every printed digit, through the model, CasADi and a Problem."""
    from mechsmith.codegen.lower import lower
    from mechsmith.symbolic.drive.emps import make_emps_static

    functions = lower(make_emps_static())
    residual = EquationError(decimation=Decimation(10))
    free = ("mass", "viscous", "coulomb", "offset")
    problem = Problem(functions, (_emps(shared, "DATA_EMPS.mat"),), free, residual)
    estimate = identify(
        problem, LinearLeastSquares(), uncertainty=Uncertainty(degrees_of_freedom="samples-1")
    )
    assert [f"{value:.4f}" for value in estimate.values] == ["95.1089", "203.5034", "20.3935", "-3.1648"]
    printed = [f"{value:.4f}" for value in estimate.deviations_white]
    assert printed == ["0.1085", "1.1460", "0.1012", "0.0444"]
    assert f"{estimate.condition:.4f}" == "25.9883"
    assert f"{estimate.residual_norm:.4f}" == "108.7569"
    assert f"{estimate.relative_error:.4f}" == "4.0834"
    # what the published table leaves out: decimated residuals are far from white, and deviations are 2-4 times larger
    assert not estimate.white
    assert np.all(estimate.deviations_corrected > 2.0 * estimate.deviations_white)
    other = validate(functions, _emps(shared, "DATA_EMPS_PULSES.mat"), estimate, residual)
    assert f"{other.relative_error:.4f}" == "5.9824"


@pytest.mark.shared
def test_emps_friction_by_direction(shared: Path) -> None:
    from mechsmith.codegen.lower import lower
    from mechsmith.symbolic.drive.emps import make_emps_asymmetric

    functions = lower(make_emps_asymmetric())
    record = _emps(shared, "DATA_EMPS.mat")
    residual = EquationError(decimation=Decimation(10))
    estimate = identify(Problem(functions, (record,), functions.labels("p"), residual), LinearLeastSquares())
    expected = {
        "mass": "95.1540",
        "viscous_positive": "166.7061",
        "coulomb_positive": "20.1440",
        "viscous_negative": "240.4236",
        "coulomb_negative": "20.6277",
    }
    assert {name: f"{value:.4f}" for name, value in estimate.free.items()} == expected
    assert f"{estimate.relative_error:.4f}" == "3.1117"
