"""Several joints from one run: one record for each, with parameters of its own."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from mechsmith.identification.problem import Problem, ProblemError
from mechsmith.identification.record import Record

T = TypeVar("T")
_OF_A_RECORD = re.compile(r"(.*)\[(\d+)\]")


def joint_records(record: Record, joints: Mapping[str, Mapping[str, str]]) -> tuple[Record, ...]:
    """Return one record for each joint of a run.

    Parameters
    ----------
    record : Record
        With the columns of all joints.
    joints : mapping of joint to (mapping of name to column)
        What a friction model calls a quantity, and the column that holds it for this joint:
        ``{"joint 1": {"velocity": "dq1", "position": "q1", "force": "tau1"}}``.

    Raises
    ------
    RecordError
        If there is no such column.
    """
    return tuple(
        Record(
            record.time,
            {name: record[column] for name, column in columns.items()},
            {name: record.units[column] for name, column in columns.items()},
            f"{record.source}: {joint}",
            record.provenance,
        )
        for joint, columns in joints.items()
    )


def split_by_record(problem: Problem) -> tuple[Problem, ...]:
    """Return one problem for each record, where no parameter is shared: joints do not disturb each other.

    Each has its own noise then, found from its own residual, and the cost grows with the number of joints only.

    Parameters
    ----------
    problem : Problem
        Every free parameter in ``per_record``, no constraints between parameters.

    Raises
    ------
    ProblemError
        If a free parameter is shared, or there are constraints.
    """
    if len(problem.records) == 1:
        return (problem,)
    shared = sorted(slot.name for slot in problem.slots if slot.record is None)
    if shared or problem.constraints:
        raise ProblemError(
            f"split_by_record: {', '.join(shared) or 'constraints'} tie the records together. Name every free parameter in "
            "per_record, without constraints; or identify the problem as it is."
        )
    return tuple(_of_record(problem, k) for k in range(len(problem.records)))


def _of_record(problem: Problem, k: int) -> Problem:
    mine = [slot for slot in problem.slots if slot.record == k]
    return replace(
        problem,
        records=(problem.records[k],),
        free=tuple(slot.base for slot in mine),
        per_record=(),
        fixed=_own(problem.fixed, k),
        bounds={slot.base: (slot.lower, slot.upper) for slot in mine},
        transforms=_own(problem.transforms, k),
        measured=tuple(_own(dict.fromkeys(problem.measured, True), k)),
        priors=_own(problem.priors, k),
    )


def _own(values: Mapping[str, T], k: int) -> dict[str, T]:
    """Return the entries of record k without its number; a special entry overrides a general one."""
    general, special = {}, {}
    for name, value in values.items():
        numbered = _OF_A_RECORD.fullmatch(name)
        if numbered is None:
            general[name] = value
        elif int(numbered[2]) == k:
            special[numbered[1]] = value
    return {**general, **special}
