"""Intervals by the likelihood ratio: those of a linear problem in closed form, and vd that noise has drawn low."""

import numpy as np
import pytest
from scipy.stats import f as fisher

from mechsmith.codegen.build import build_simulator, find_compiler
from mechsmith.codegen.discretise import discretise
from mechsmith.codegen.lower import lower
from mechsmith.identification import LinearLeastSquares, OutputError, Problem, Record, identify
from mechsmith.identification.excitation import Dwell, Move, Trajectory
from mechsmith.identification.friction.checks import planned_record
from mechsmith.identification.friction.shape_factor import NAMES, FromClosedForm
from mechsmith.identification.problem import ProblemError
from mechsmith.identification.profile import profile_interval
from mechsmith.identification.search import LeastSquares
from mechsmith.symbolic.friction.lugre import make_lugre


def test_a_linear_problem_in_closed_form(systems) -> None:  # type: ignore[no-untyped-def]
    record = systems.line_record(noise=0.5)
    problem = Problem(systems.line, (record,), ("mass", "viscous", "offset"))
    estimate = identify(problem, LinearLeastSquares())
    found = profile_interval(problem, estimate, "mass")
    # the sum of squares is quadratic: the interval is value +- sqrt(F) standard deviations, and F of one is t squared
    half = np.sqrt(fisher.ppf(0.95, 1, estimate.samples - 3)) * estimate.deviations_white[0]
    # the ends are found to 2^(1 / 256) of a factor of two
    assert found.lower == pytest.approx(estimate["mass"] - half, rel=3e-3)
    assert found.upper == pytest.approx(estimate["mass"] + half, rel=3e-3)
    assert "95%" in str(found)
    with pytest.raises(ProblemError, match="positive free"):
        profile_interval(problem, estimate, "offset")
    with pytest.raises(ProblemError, match=r"confidence 1\.5"):
        profile_interval(problem, estimate, "mass", confidence=1.5)


@pytest.mark.compiler
def test_vd_that_noise_drew_low_is_open() -> None:
    if find_compiler() is None:
        pytest.skip("there is no C compiler")
    simulator = build_simulator(discretise(lower(make_lugre())))
    motion = Trajectory(
        (Dwell(0.1), Move(1.5, 1.0, 2.0, 10.0), Dwell(0.1), Move(-1.5, 1.0, 2.0, 10.0), Dwell(0.1))
    )
    values = (1e5, 316.22776601683796, 1.0, 0.5, 0.01, 0.1, 0.4, 0.1)
    record = planned_record(simulator, motion, dict(zip(NAMES, values, strict=True)))
    columns = {name: (record[name], record.units[name]) for name in ("position", "velocity")}
    told = []
    for seed in range(6):
        noise = 0.013192806202244119 * np.random.default_rng(seed).standard_normal(len(record))
        noisy = Record.from_arrays(record.time, {**columns, "force": (record["force"] + noise, "N*m")})
        problem = Problem(simulator, (noisy,), NAMES, OutputError(), bounds={"vd": (1e-3, 10.0)})
        estimate = identify(problem, FromClosedForm(LeastSquares()))
        # the wrong minimum, with vd below v0, fits worse than no decay at all
        assert estimate["vd"] > 0.01
        found = profile_interval(problem, estimate, "vd")
        told.append((found.upper == np.inf, found.lower <= 0.1 <= found.upper))
    # at this noise the bound of vd is 195 %; seeds 0 to 5 were fixed beforehand, and two misses of six at 95 % have a probability of 3 %
    assert sum(covers for _, covers in told) >= 5
    assert sum(opened for opened, _ in told) >= 5
