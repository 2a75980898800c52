"""The models of parallel robots that are in the catalogue, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from mechsmith.symbolic.model import Model
from mechsmith.symbolic.parallel.closed_form import make_closed_inverse
from mechsmith.symbolic.parallel.closure import make_forward
from mechsmith.symbolic.parallel.mechanisms import delta, five_bar, four_bar, hexapod, three_rrr
from mechsmith.symbolic.parallel.planar import make_planar_forward, make_planar_inverse
from mechsmith.symbolic.parallel.planar_calibration import make_planar_closure_error
from mechsmith.symbolic.parallel.planar_dynamics import (
    make_planar_balance,
    make_planar_inverse_dynamics,
)


def make_delta_forward() -> Model:
    """Return the closure of the Delta robot with its motors' angles given."""
    return make_forward(delta())


def make_delta_inverse_closed() -> Model:
    """Return the inverse kinematics of the Delta robot in closed form."""
    return make_closed_inverse(delta())


def make_five_bar_forward() -> Model:
    """Return the closure of the five-bar linkage with its motors' angles given."""
    return make_forward(five_bar())


def make_four_bar_forward() -> Model:
    """Return the closure of the four-bar linkage with its crank's angle given."""
    return make_forward(four_bar())


def make_hexapod_forward() -> Model:
    """Return the closure of the Gough-Stewart platform with its legs' lengths given."""
    return make_forward(hexapod())


def make_hexapod_inverse_closed() -> Model:
    """Return the leg lengths of the Gough-Stewart platform."""
    return make_closed_inverse(hexapod())


def make_three_rrr_forward() -> Model:
    """Return the closure of the planar 3-RRR with its motors' angles given."""
    return make_forward(three_rrr())


PARALLEL_MODELS: Mapping[str, Callable[[], Model]] = MappingProxyType(
    {
        "delta_forward": make_delta_forward,
        "delta_inverse_closed": make_delta_inverse_closed,
        "five_bar_forward": make_five_bar_forward,
        "four_bar_forward": make_four_bar_forward,
        "hexapod_forward": make_hexapod_forward,
        "hexapod_inverse_closed": make_hexapod_inverse_closed,
        "planar_balance": make_planar_balance,
        "planar_closure_error": make_planar_closure_error,
        "planar_forward": make_planar_forward,
        "planar_inverse": make_planar_inverse,
        "planar_inverse_dynamics": make_planar_inverse_dynamics,
        "three_rrr_forward": make_three_rrr_forward,
    }
)
