"""A velocity whose integral is not the position beside it: named with its cause before anything is fitted."""

import numpy as np
import pytest

from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.lower import lower
from mechsmith.codegen.simulator import CasadiSimulator
from mechsmith.identification import OutputError, Problem, ProblemError, Record
from mechsmith.identification.consistency import integral_mismatch
from mechsmith.identification.record_checks import RecordWarning
from mechsmith.symbolic.catalogue import make_model

TIME = np.arange(0.0, 2.0, 1e-3)
POSITION = 0.2 * (1.0 - np.cos(2.0 * np.pi * TIME))
VELOCITY = 0.4 * np.pi * np.sin(2.0 * np.pi * TIME)


def record(velocity: np.ndarray, position: np.ndarray) -> Record:
    columns = {
        "velocity": (velocity, "rad/s"),
        "position": (position, "rad"),
        "force": (np.sign(VELOCITY), "N*m"),
    }
    return Record.from_arrays(TIME, columns, source="log")


@pytest.mark.parametrize(
    ("factor", "cause"),
    [
        (180.0 / np.pi, "degrees where radians"),
        (-1.0, "sign"),
        (1e3, "thousandths"),
        (np.pi / 180.0, "radians where degrees"),
    ],
)
def test_a_known_factor_is_refused_before_the_fit(factor: float, cause: str) -> None:
    simulator = CasadiSimulator(discretise(lower(make_model("lugre"))))
    with pytest.raises(ProblemError, match=cause):
        Problem(simulator, (record(factor * VELOCITY, POSITION),), ("a0",), OutputError())


def test_any_other_factor_is_a_warning() -> None:
    simulator = CasadiSimulator(discretise(lower(make_model("lugre"))))
    with pytest.warns(RecordWarning, match="1.3 times"):
        Problem(simulator, (record(1.3 * VELOCITY, POSITION),), ("a0",), OutputError())


def test_quantisation_and_noise_are_no_mismatch() -> None:
    """A 12-bit encoder moves by 1.5 mrad a count, of which a sample is a fraction."""
    rng = np.random.default_rng(0)
    step = 2.0 * np.pi / 4096.0
    quantised = np.round(POSITION / step) * step
    assert integral_mismatch(record(VELOCITY, quantised), "velocity", "position") is None
    noisy = VELOCITY + 0.5 * rng.standard_normal(len(TIME))
    assert integral_mismatch(record(noisy, POSITION), "velocity", "position") is None


def test_a_fixed_value_outside_its_bounds_is_refused() -> None:
    simulator = CasadiSimulator(discretise(lower(make_model("lugre"))))
    with pytest.raises(ProblemError, match=r"fixed\['s0'\] is -5.0, allowed is 1e-06 to inf"):
        Problem(simulator, (record(VELOCITY, POSITION),), ("a0",), OutputError(), fixed={"s0": -5.0})
