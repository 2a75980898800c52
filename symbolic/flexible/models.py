"""The models of flexible joints and links by name, for the catalogue."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from mechsmith.symbolic.control.position import make_pd_controller
from mechsmith.symbolic.flexible.beam import make_beam_frequencies
from mechsmith.symbolic.flexible.critical import make_critical_stiffness
from mechsmith.symbolic.flexible.link import make_flexible_link, make_spong_link
from mechsmith.symbolic.model import Model


def make_flexible_link_of_two_modes() -> Model:
    """Return `make_flexible_link` with two modes, whose code is short enough to read."""
    return make_flexible_link(modes=2)


def make_spong_link_of_two_modes() -> Model:
    """Return `make_spong_link` with two modes."""
    return make_spong_link(modes=2)


FLEXIBLE_MODELS: Mapping[str, Callable[[], Model]] = MappingProxyType(
    {
        "beam_frequencies": make_beam_frequencies,
        "critical_stiffness": make_critical_stiffness,
        "flexible_link": make_flexible_link_of_two_modes,
        "pd_controller": make_pd_controller,
        "spong_link": make_spong_link_of_two_modes,
    }
)
