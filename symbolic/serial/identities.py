"""The numbered equations (1)-(18) of the stiffness source as identities of a chain's models, misprints refuted.

Each left side is an output of a model. Each right side is what the source states, from 4x4 matrices multiplied out joint by
joint and not from the recursions that the model was made by. For chains whose moving joints are all revolute.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import sympy

from mechsmith.symbolic import graph
from mechsmith.symbolic.model import Model
from mechsmith.symbolic.serial.chain import AXES, Chain
from mechsmith.symbolic.serial.frames import skew
from mechsmith.symbolic.serial.kinematics import SOURCE
from mechsmith.symbolic.serial.matrices import Matrices, below, inverse_of
from mechsmith.symbolic.statement import Identity, IdentityKind, Scope, Statement, Status


@dataclass(frozen=True)
class Stated:
    """A statement about a chain, made from its matrices and a model's scope; it pickles."""

    chain: Chain
    make: Callable[[Matrices], Statement]

    def __call__(self, scope: Scope) -> Statement:
        """Return the statement."""
        return self.make(Matrices(self.chain, scope))


# -- kinematics -------------------------------------------------------------------------------------------


def _pose(m: Matrices) -> Statement:
    rotation = [m.scope[f"rotation_{i}_{j}"] for i in range(3) for j in range(3)]
    position = [m.scope[f"position_{i}"] for i in range(3)]
    right = [*m.rotation, *m.flange[:3, 3]]
    return Statement(sympy.Matrix([*rotation, *position]), sympy.Matrix(right))


def _columns(m: Matrices) -> sympy.Matrix:
    return sympy.Matrix([m.scope[f"jacobian_{i + 1}_{k}"] for i in range(len(m.axes)) for k in range(6)])


def _jacobian(m: Matrices) -> Statement:
    left = graph.substitute(
        [m.scope.expand(m.scope.expression(symbol.name)) for symbol in _columns(m)],
        {m.scope[f"point_{axis}"]: sympy.Integer(0) for axis in AXES if f"point_{axis}" in m.scope},
    )
    return Statement(sympy.Matrix(left), sympy.Matrix(list(m.jacobian.T)))


def _jacobian_by_derivative(m: Matrices) -> Statement:
    """The linear part is the derivative of the point's position by each joint."""
    point = m.flange * sympy.Matrix([*m.point("point"), 1])
    left = [m.scope[f"jacobian_{i + 1}_{k}"] for i in range(len(m.axes)) for k in range(3)]
    right = [point[k].diff(m.scope[f"q_{i + 1}"]) for i in range(len(m.axes)) for k in range(3)]
    return Statement(sympy.Matrix(left), sympy.Matrix(right))


def _length(m: Matrices) -> Statement:
    return Statement(_at_flange(m, "characteristic_length"), m.length)


def _at_flange(m: Matrices, name: str) -> sympy.Expr:
    """Return an output with the reference point at the flange centre."""
    centre = {m.scope[f"point_{axis}"]: sympy.Integer(0) for axis in AXES if f"point_{axis}" in m.scope}
    (value,) = graph.substitute([m.scope.expand(m.scope.expression(name))], centre)
    return value


def _normalised(m: Matrices) -> sympy.Matrix:
    return sympy.Matrix.vstack(m.jacobian[:3, :] / m.length, m.jacobian[3:, :])


def _conditioning(m: Matrices) -> Statement:
    normalised = _normalised(m)
    inverse = inverse_of(normalised)
    traces = [sum((v**2 for v in matrix), sympy.Integer(0)) for matrix in (normalised, inverse)]
    return Statement(_at_flange(m, "conditioning"), sympy.sqrt(traces[0] * traces[1]) / len(m.axes))


def _normalised_trace(m: Matrices) -> Statement:
    left = sum((v**2 for v in _normalised(m)), sympy.Integer(0))
    return Statement(left, sympy.Integer(2 * len(m.axes)))


# -- the source's closed form of the first column, for its own table -------------------------------------


def _first_column(m: Matrices, sign: int) -> Statement:
    """(3), printed with the sign of d6 c4 s5 in R the other way."""
    offsets = {2: -sympy.pi / 2, 6: sympy.pi}
    angles = {i: m.scope[f"q_{i}"] + offsets.get(i, 0) for i in range(1, 6)}
    s, c = ({i: function(angle) for i, angle in angles.items()} for function in (sympy.sin, sympy.cos))
    s23, c23 = (function(angles[2] + angles[3]) for function in (sympy.sin, sympy.cos))
    a1, a2, a3, d4, d6 = (m.scope[name] for name in ("a_2", "a_3", "a_4", "d_4", "d_6"))
    reach = a1 + a2 * c[2] + c23 * (a3 + sign * d6 * c[4] * s[5]) - s23 * (d4 + d6 * c[5])
    right = [-s[1] * reach - d6 * c[1] * s[4] * s[5], c[1] * reach - d6 * s[1] * s[4] * s[5]]
    left = [_at_flange(m, f"jacobian_1_{k}") for k in range(6)]
    return Statement(sympy.Matrix(left), sympy.Matrix([*right, 0, 0, 0, 1]))


def _first_column_corrected(m: Matrices) -> Statement:
    return _first_column(m, -1)


def _first_column_printed(m: Matrices) -> Statement:
    return _first_column(m, 1)


# -- stiffness ----------------------------------------------------------------------------------------------


def _stiffness(m: Matrices) -> Statement:
    """(8) with (12): F = J^-T K_q J^-1 X, load and measurement at the flange centre."""
    inverse = inverse_of(m.jacobian)
    turned = inverse * m.centred("base_deflection", "rotation")
    torques = sympy.Matrix([t / c for t, c in zip(turned, m.compliances, strict=True)])
    return Statement(inverse.T * torques, m.wrench)


def _joint_spring(m: Matrices) -> Statement:
    """(9): tau = K_q dq."""
    count = len(m.axes)
    bends, torques = m.column("joint_deflection", count), m.column("torque", count)
    return Statement(torques, sympy.Matrix([b / c for b, c in zip(bends, m.compliances, strict=True)]))


def _torque_at_centre(m: Matrices) -> Statement:
    """(10): tau = J^T F."""
    written = [m.scope.expand(m.scope.expression(f"torque_{i + 1}")) for i in range(len(m.axes))]
    return Statement(sympy.Matrix(graph.substitute(written, m.at_centre)), m.jacobian.T * m.wrench)


def _displacement(m: Matrices) -> Statement:
    """(11): X = J dq."""
    bends = [m.scope.expand(m.scope.expression(f"joint_deflection_{i + 1}")) for i in range(len(m.axes))]
    right = m.jacobian * sympy.Matrix(graph.substitute(bends, m.at_centre))
    return Statement(m.centred("base_deflection", "rotation"), right)


def _linear_in_compliances(m: Matrices) -> Statement:
    """(13), (14): Y = [I 0] J diag(J^T F) c."""
    right = m.jacobian[:3, :] * sympy.diag(*(m.jacobian.T * m.wrench)) * m.compliances
    return Statement(m.centred("base_deflection"), right)


def _linear_printed(m: Matrices) -> Statement:
    """(14) as printed: the matrix K_q^-1 where the column of compliances must stand."""
    right = m.jacobian[:3, :] * sympy.diag(*(m.jacobian.T * m.wrench)) * sympy.diag(*m.compliances)
    return Statement(m.centred("base_deflection"), right)


def _measured(m: Matrices, sign: int, point: sympy.Matrix) -> Statement:
    """(16): the Jacobian of the measured point, J_L = [I -skew(r_m); 0 I] J; both torques as the model has them."""
    moved = m.jacobian[:3, :] + sign * skew(point) * m.jacobian[3:, :]
    bends = m.column("joint_deflection", len(m.axes))
    return Statement(m.outputs("base_deflection"), moved * bends)


def _measured_corrected(m: Matrices) -> Statement:
    return _measured(m, -1, m.rotation * m.point("measured"))


def _measured_printed(m: Matrices) -> Statement:
    return _measured(m, 1, m.rotation * m.point("measured"))


def _measured_not_turned(m: Matrices) -> Statement:
    return _measured(m, -1, m.point("measured"))


def _loaded(m: Matrices) -> Statement:
    """(17): tau = J^T [I 0; skew(r_f) I] F."""
    return Statement(m.column("torque", len(m.axes)), m.torques)


def _loaded_printed(m: Matrices) -> Statement:
    """(17) as printed: the factors in the other order."""
    return Statement(m.column("torque", len(m.axes)), m.load_transfer * (m.jacobian.T * m.wrench))


def _loaded_not_turned(m: Matrices) -> Statement:
    right = m.jacobian.T * (below(skew(m.point("loaded"))) * m.wrench)
    return Statement(m.column("torque", len(m.axes)), right)


def _both_points(m: Matrices) -> Statement:
    """(18): Y = R^T [I 0] J_L diag(tau) c, along flange axes."""
    moved = m.jacobian[:3, :] - skew(m.rotation * m.point("measured")) * m.jacobian[3:, :]
    bends = sympy.Matrix([t * c for t, c in zip(m.torques, m.compliances, strict=True)])
    return Statement(m.outputs("deflection"), m.rotation.T * (moved * bends))


def _backlash(m: Matrices) -> Statement:
    """(15): Y - Y' = n . J_L diag(tau) c."""
    moved = m.jacobian[:3, :] - skew(m.rotation * m.point("measured")) * m.jacobian[3:, :]
    bends = sympy.Matrix([t * c for t, c in zip(m.torques, m.compliances, strict=True)])
    net = m.scope["loaded_reading"] - m.scope["unloaded_reading"]
    return Statement(net, (m.rotation * m.point("direction")).dot(moved * bends))


# -- attaching them ---------------------------------------------------------------------------------------


def _identities(
    chain: Chain, *rows: tuple[str, IdentityKind, Callable[[Matrices], Statement], str, Status]
) -> tuple[Identity, ...]:
    return tuple(
        Identity(name, kind, Stated(chain, make), expected, f"{SOURCE}: {note}")
        for name, kind, make, note, expected in rows
    )


def with_pose_identities(chain: Chain, model: Model) -> Model:
    """Return a pose model with (1)."""
    return replace(model, identities=_identities(chain, ("(1)", "definition", _pose, "T60", "supported")))


def with_jacobian_identities(chain: Chain, model: Model, *, of_the_source: bool = False) -> Model:
    """Return a hybrid Jacobian with (2), and with (3) if the chain is the source's own robot."""
    rows: list[tuple[str, IdentityKind, Callable[[Matrices], Statement], str, Status]] = [
        ("(2)", "definition", _jacobian, "columns Z x P, Z", "supported"),
        ("(2) by derivative", "identity", _jacobian_by_derivative, "of the position", "supported"),
    ]
    if of_the_source:
        rows += [
            ("(3)", "identity", _first_column_corrected, "first column, corrected", "proved"),
            ("(3) as printed", "identity", _first_column_printed, "up to 0.21 m wrong", "refuted"),
        ]
    return replace(model, identities=_identities(chain, *rows))


def with_conditioning_identities(chain: Chain, model: Model) -> Model:
    """Return a conditioning model of six joints with (4)-(7)."""
    return replace(
        model,
        identities=_identities(
            chain,
            ("(4), (5)", "definition", _length, "characteristic length", "supported"),
            ("(6)", "identity", _normalised_trace, "tr(J_N^T J_N) = 2 n, in every pose", "supported"),
            ("(7)", "definition", _conditioning, "conditioning by the inverse", "supported"),
        ),
    )


def with_deflection_identities(chain: Chain, model: Model) -> Model:
    """Return a deflection model of six joints under a wrench with (8)-(14) and (16)-(18)."""
    return replace(
        model,
        identities=_identities(
            chain,
            ("(8), (12)", "identity", _stiffness, "F = J^-T K_q J^-1 X", "supported"),
            ("(9)", "definition", _joint_spring, "tau = K_q dq", "proved"),
            ("(10)", "identity", _torque_at_centre, "tau = J^T F", "supported"),
            ("(11)", "identity", _displacement, "X = J dq", "supported"),
            ("(13), (14)", "identity", _linear_in_compliances, "linear in c", "supported"),
            ("(14) as printed", "identity", _linear_printed, "a matrix for a column", "refuted"),
            ("(16)", "identity", _measured_corrected, "J_L, corrected", "supported"),
            ("(16) as printed", "identity", _measured_printed, "J_L's inverse factor", "refuted"),
            ("(16) not turned", "identity", _measured_not_turned, "r_m in flange axes", "refuted"),
            ("(17)", "identity", _loaded, "torques, corrected", "supported"),
            ("(17) as printed", "identity", _loaded_printed, "factors exchanged", "refuted"),
            ("(17) not turned", "identity", _loaded_not_turned, "r_f in flange axes", "refuted"),
            ("(18)", "identity", _both_points, "measured at r_m, loaded at r_f", "supported"),
        ),
    )


def with_gauge_identities(chain: Chain, model: Model) -> Model:
    """Return a gauge model under a wrench with (15)."""
    return replace(
        model, identities=_identities(chain, ("(15)", "identity", _backlash, "net of backlash", "supported"))
    )
