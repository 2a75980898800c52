"""The published EMPS identification, to all printed digits, from the raw files through records and numpy "
"alone."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mechsmith.identification.metrics import relative_error
from mechsmith.identification.preprocessing import Decimation, butterworth_zero_phase, differentiate, drop
from mechsmith.identification.readers import ColumnSpec, read_record
from mechsmith.identification.record import Record

pytestmark = pytest.mark.shared

Array = NDArray[np.float64]


def _prepared(shared: Path, name: str) -> Record:
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
    record = differentiate(record, "velocity", "acceleration")
    return drop(record, first=49)


def _symmetric(record: Record) -> Array:
    v = record["velocity"]
    return np.column_stack((record["acceleration"], v, np.sign(v), np.ones_like(v)))


def _by_direction(record: Record) -> Array:
    v = record["velocity"]
    return np.column_stack(
        (record["acceleration"], np.maximum(v, 0), v > 0, np.minimum(v, 0), -1.0 * (v < 0)),
    )


def _fit(regressor: Array, force: Array) -> tuple[Array, Array, Array]:
    solution = np.linalg.lstsq(regressor, force, rcond=None)[0]
    residual = force - regressor @ solution
    variance = residual @ residual / (len(force) - 1)
    deviations = np.sqrt(variance * np.diag(np.linalg.inv(regressor.T @ regressor)))
    return solution, deviations, residual


def _digits(values: Array) -> list[str]:
    return [f"{value:.4f}" for value in values]


def test_symmetric_friction_and_cross_test(shared: Path) -> None:
    """M 95.1089, Fv 203.5034, Fc 20.3935, offset -3.1648 as published by Janot, Gautier, Brunot (2019).

    The recipe, confirmed here to all printed digits:

    1. force = gtau vir with gtau = 35.15065188248547 N/V, as recorded: neither filtered nor shifted.
    2. position: Butterworth order 4, 100 Hz of 500 Hz Nyquist, forward and backward, odd extension of 12
       samples.
    3. velocity and acceleration: central differences of the filtered position twice, one-sided at the ends,
       with h = 1 ms. The times in the file are rounded to single precision: their median interval is 1.6e-5
       short, which would make M 95.1059; their mean is 1 ms.
    4. the first 49 of 24,841 samples are dropped (after filtering and differentiation), none at the end.
    5. the regressor [a, v, sign v, 1] is formed on the undecimated signals, so sign v is a step before it is
       filtered; then all four columns, the column of ones included, and the force are decimated by 10:
       Chebyshev I of order 8, 0.05 dB, edge 0.08 of Nyquist, forward and backward, odd extension of 24
       samples, every tenth sample so that the last is kept: 2,480 rows. The filter passes constants with
       0.98855, which is kept: the error norm depends on it.
    6. least squares, unweighted; force = M a + Fv v + Fc sign v + offset.
    7. standard deviations: sqrt(diag(s2 (W'W)^-1)), s2 = e'e / (rows - 1); with rows - 4 they would be
       0.1085, 1.1467, 0.1013, 0.0444. Condition number of W by its singular values, unscaled.
    8. error norm |e| and relative error |e| / |decimated force|.
    """
    record = _prepared(shared, "DATA_EMPS.mat")
    decimation = Decimation(10)
    regressor, force = decimation.apply(_symmetric(record)), decimation.apply(record["force"])
    solution, deviations, residual = _fit(regressor, force)
    assert regressor.shape == (2480, 4)
    assert _digits(solution) == ["95.1089", "203.5034", "20.3935", "-3.1648"]
    assert _digits(deviations) == ["0.1085", "1.1460", "0.1012", "0.0444"]
    assert f"{np.linalg.cond(regressor):.4f}" == "25.9883"
    assert f"{np.linalg.norm(residual):.4f}" == "108.7569"
    assert f"{relative_error(regressor @ solution, force):.4f}" == "4.0834"

    pulses = _prepared(shared, "DATA_EMPS_PULSES.mat")
    predicted = decimation.apply(_symmetric(pulses)) @ solution
    assert f"{relative_error(predicted, decimation.apply(pulses['force'])):.4f}" == "5.9824"


def test_friction_by_direction(shared: Path) -> None:
    """M 95.1540, Fv+ 166.7061, Fc+ 20.1440, Fv- 240.4236, Fc- 20.6277, 3.1117 %.

    As above with the columns [a, max(v, 0), v > 0, min(v, 0), -(v < 0)] and no offset, which the two Coulomb
    columns contain; the force at v < 0 is Fv- v - Fc-.
    """
    record = _prepared(shared, "DATA_EMPS.mat")
    decimation = Decimation(10)
    regressor, force = decimation.apply(_by_direction(record)), decimation.apply(record["force"])
    solution, _, _ = _fit(regressor, force)
    assert _digits(solution) == ["95.1540", "166.7061", "20.1440", "240.4236", "20.6277"]
    assert f"{relative_error(regressor @ solution, force):.4f}" == "3.1117"
