"""Chains from files: DH tables in TOML or CSV, and URDF. The one module of `symbolic` that reads files."""

import csv
import importlib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import sympy

from mechsmith.symbolic.names import ModelError
from mechsmith.symbolic.serial.body import Body, tensor_of
from mechsmith.symbolic.serial.chain import (
    Chain,
    Convention,
    DHRow,
    Joint,
    JointKind,
    Step,
    Transform,
    dh_chain,
    rotation_steps,
    translation_steps,
)

LENGTHS, ANGLES = {"m": 1.0, "mm": 1e-3}, {"rad": 1.0, "deg": math.pi / 180.0}
URDF_KINDS: Mapping[str, JointKind] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
}
_NUMBERS = ("a", "alpha", "d", "offset", "lower", "upper")
_COLUMNS = (*_NUMBERS, "kind", "name")


@dataclass(frozen=True)
class Description:
    """A robot as a URDF describes it.

    Parameters
    ----------
    chain : Chain
        From the root link to the tip.
    bodies : tuple of Body
        Of the link behind each joint, fixed ones too.
    """

    chain: Chain
    bodies: tuple[Body, ...]


def read_toml(path: str | Path) -> Chain:
    """Return the chain of a DH table in TOML.

    The file has ``name``, ``convention`` ("standard" or "modified"), ``lengths`` ("m" or "mm"), ``angles`` ("rad" or "deg"),
    a table ``[[joints]]`` for each row (a, alpha, d, offset, and where wanted kind, name, lower, upper), and where wanted
    ``[[base]]`` and ``[[tool]]``: one key ``rotate`` or ``translate`` with the axis, and ``value``. ``open`` names numbers
    that stay open.

    Raises
    ------
    ModelError
        If the file is not readable as such; it names the key.
    """
    where = f"chain in {str(path)!r}"
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ModelError(f"{where}: {error}") from error
    known = {"name", "convention", "lengths", "angles", "joints", "base", "tool", "open", "references"}
    _refuse_unknown(where, data, known)
    missing = [key for key in ("name", "convention", "lengths", "angles", "joints") if key not in data]
    if missing:
        raise ModelError(
            f"{where}: no {', '.join(missing)}. Give every one of them: tables without units look alike."
        )
    length, angle = _factor(where, data["lengths"], LENGTHS), _factor(where, data["angles"], ANGLES)
    return dh_chain(
        data["name"],
        [_row(f"{where}: row {i}", row, length, angle) for i, row in enumerate(data["joints"], start=1)],
        convention=cast(Convention, data["convention"]),
        base=_steps(f"{where}: base", "base", data.get("base", []), length, angle),
        tool=_steps(f"{where}: tool", "tool", data.get("tool", []), length, angle),
        open=data.get("open", []),
        references=data.get("references", []),
    )


def read_csv(
    path: str | Path, *, name: str, convention: Convention, lengths: str = "m", angles: str = "rad"
) -> Chain:
    """Return the chain of a DH table in CSV, with a header of a, alpha, d, offset, and where wanted kind, name, lower, upper.

    Parameters
    ----------
    path : path
        Of the file.
    name, convention
        See `dh_chain`.
    lengths, angles : str
        Units: m or mm, rad or deg.

    Raises
    ------
    ModelError
        If a column is unknown or a value is no number; it names row and column.
    """
    where = f"chain in {str(path)!r}"
    length, angle = _factor(where, lengths, LENGTHS), _factor(where, angles, ANGLES)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ModelError(f"{where}: {error}") from error
    rows = list(csv.DictReader(text.splitlines(), skipinitialspace=True))
    if not rows:
        raise ModelError(f"{where}: no rows. Give a header and a row for each joint.")
    cleaned = [{str(k).strip(): v.strip() for k, v in row.items() if v and v.strip()} for row in rows]
    parsed = [_row(f"{where}: row {i}", row, length, angle) for i, row in enumerate(cleaned, start=1)]
    return dh_chain(name, parsed, convention=convention)


def _refuse_unknown(where: str, table: Mapping[str, Any], known: Sequence[str] | set[str]) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise ModelError(f"{where}: {', '.join(unknown)} unknown. Known: {', '.join(sorted(known))}.")


def _factor(where: str, unit: str, known: Mapping[str, float]) -> float:
    if unit not in known:
        raise ModelError(f"{where}: unit {unit!r} is not allowed. Use {' or '.join(known)}.")
    return known[unit]


def _row(where: str, row: Mapping[str, Any], length: float, angle: float) -> DHRow:
    _refuse_unknown(where, row, _COLUMNS)
    kind = str(row.get("kind", "revolute"))
    numbers = {}
    for key in _NUMBERS:
        if key not in row:
            continue
        try:
            value = float(row[key])
        except (TypeError, ValueError):
            raise ModelError(f"{where}: {key} is {row[key]!r}. Give a number.") from None
        angular = key in ("alpha", "offset") or (key in ("lower", "upper") and kind != "prismatic")
        numbers[key] = value * (angle if angular else length)
    return DHRow(kind=cast(JointKind, kind), name=str(row.get("name", "")), **numbers)


def _steps(
    where: str, name: str, rows: Sequence[Mapping[str, Any]], length: float, angle: float
) -> Transform:
    steps = []
    for i, row in enumerate(rows, start=1):
        moves = [key for key in ("rotate", "translate") if key in row]
        if len(moves) != 1 or set(row) != {*moves, "value"}:
            raise ModelError(
                f"{where} {i}: got {dict(row)}. Give rotate or translate with an axis, and value."
            )
        factor = angle if moves[0] == "rotate" else length
        move = "rotate" if moves[0] == "rotate" else "translate"
        steps.append(Step(cast(Any, move), str(row[moves[0]]), float(row["value"]) * factor, f"{name}_{i}"))
    return tuple(steps)


def read_urdf(path: str | Path, *, tip: str | None = None) -> Description:
    """Return the chain and bodies of a URDF, by the parser `urdf_parser_py` (``pip install mechsmith[urdf]``).

    Parameters
    ----------
    path : path
        Of the file.
    tip : str, optional
        Link at the end of the chain; needed where links branch.

    Raises
    ------
    ModelError
        If the parser is missing or refuses the file, if the chain branches and no tip is given, or if a joint is of a kind
        that a chain can't have.
    """
    try:
        # By name, since the parser is an extra that need not be installed.
        parser = importlib.import_module("urdf_parser_py.urdf")
    except ImportError as error:
        raise ModelError(
            f"urdf {str(path)!r}: the parser urdf_parser_py is not installed. Install it: pip install mechsmith[urdf]."
        ) from error
    try:
        robot = parser.URDF.from_xml_string(Path(path).read_bytes())
    except Exception as error:  # whatever the parser raises on a broken file is told with its name
        raise ModelError(f"urdf {str(path)!r}: {type(error).__name__}: {error}") from error
    joints = _path_to(robot, tip, str(path))
    links = {link.name: link for link in robot.links}
    bodies = tuple(_body(links[joint.child], str(path)) for joint in joints)
    chain = Chain(
        name="".join(c if c.isalnum() else "_" for c in robot.name),
        joints=tuple(_joint(joint, i, str(path)) for i, joint in enumerate(joints, start=1)),
        references=(f"URDF {Path(path).name}",),
    )
    return Description(chain, bodies)


def _path_to(robot: Any, tip: str | None, path: str) -> list[Any]:
    """Return the joints from the root to the tip."""
    parents = {joint.child: joint for joint in robot.joints}
    starts = {joint.parent for joint in robot.joints}
    ends = sorted(set(parents) - starts)
    if tip is None:
        if len(ends) != 1:
            raise ModelError(f"urdf {path!r}: its links end at {', '.join(ends)}. Give one as tip.")
        tip = ends[0]
    if tip not in parents:
        raise ModelError(
            f"urdf {path!r}: no link {tip!r} behind a joint. There are: {', '.join(sorted(parents))}."
        )
    joints: list[Any] = []
    while tip in parents:
        joints.insert(0, parents[tip])
        tip = parents[tip].parent
    return joints


def _joint(joint: Any, number: int, path: str) -> Joint:
    if joint.type not in URDF_KINDS:
        raise ModelError(
            f"urdf {path!r}: joint {joint.name!r} is {joint.type}. A chain can have: {', '.join(URDF_KINDS)}."
        )
    place, turn = _origin(joint.origin)
    steps = (*translation_steps(f"joint_{number}", *place), *rotation_steps(f"joint_{number}", *turn))
    # The URDF's default axis is x.
    given = [float(v) for v in (joint.axis if joint.axis is not None else (1.0, 0.0, 0.0))]
    length = math.hypot(*given)
    if joint.type != "fixed" and length == 0.0:
        raise ModelError(f"urdf {path!r}: joint {joint.name!r} has the axis (0, 0, 0).")
    x, y, z = (v / length if length else v for v in given)
    limited = joint.limit is not None and joint.type in ("revolute", "prismatic")
    lower, upper = (float(joint.limit.lower), float(joint.limit.upper)) if limited else (-math.inf, math.inf)
    return Joint(joint.name, URDF_KINDS[joint.type], before=steps, axis=(x, y, z), lower=lower, upper=upper)


def _origin(origin: Any) -> tuple[list[float], list[float]]:
    if origin is None:
        return [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    return [float(v) for v in origin.xyz or (0, 0, 0)], [float(v) for v in origin.rpy or (0, 0, 0)]


def _body(link: Any, path: str) -> Body:
    inertial = link.inertial
    if inertial is None:
        return Body()
    (x, y, z), (roll, pitch, yaw) = _origin(inertial.origin)
    i = inertial.inertia
    tensor = sympy.Matrix([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
    turn = sympy.rot_ccw_axis3(yaw) * sympy.rot_ccw_axis2(pitch) * sympy.rot_ccw_axis1(roll)
    try:
        return Body(float(inertial.mass), (x, y, z), tensor_of(turn * tensor * turn.T))
    except ModelError as error:
        raise ModelError(f"urdf {path!r}: link {link.name!r}: {error}") from None
