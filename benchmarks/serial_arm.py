"""Inverse dynamics of a serial arm as one nested SymPy expression for each joint: a model that grows with the joints."""

import sympy
from sympy import Matrix


def inverse_dynamics(joints: int) -> tuple[list[sympy.Symbol], list[sympy.Expr]]:
    """Return the symbols and the joint torques of an arm by the recursive Newton-Euler method.

    Standard DH parameters with twists of +-90 degrees, symbolic lengths, masses and inertias about the link frames
    (Luh, Walker, Paul 1980, On-line computational scheme for mechanical manipulators, J. Dyn. Sys. Meas. Control 102).
    """
    q, dq, ddq = (sympy.symbols(f"{name}0:{joints}", real=True) for name in ("q", "dq", "ddq"))
    length, mass = (sympy.symbols(f"{name}0:{joints}", real=True) for name in ("a", "m"))
    inertia = [sympy.symbols(f"I{i}_0:3", real=True) for i in range(joints)]
    gravity = sympy.Symbol("gravity", real=True)
    axis = Matrix([0, 0, 1])
    rotations, arms = [], []
    for i in range(joints):
        c, s, sign = sympy.cos(q[i]), sympy.sin(q[i]), (-1) ** i
        rotations.append(Matrix([[c, 0, sign * s], [s, 0, -sign * c], [0, sign, 0]]))
        arms.append(Matrix([length[i], 0, 0]))
    omega, domega, acceleration = Matrix([0, 0, 0]), Matrix([0, 0, 0]), Matrix([0, 0, gravity])
    forces, moments = [], []
    for i in range(joints):
        back = rotations[i].T
        domega = back * (domega + axis * ddq[i] + omega.cross(axis * dq[i]))
        omega = back * (omega + axis * dq[i])
        acceleration = back * acceleration + domega.cross(arms[i]) + omega.cross(omega.cross(arms[i]))
        tensor = sympy.diag(*inertia[i])
        forces.append(mass[i] * acceleration)
        moments.append(tensor * domega + omega.cross(tensor * omega))
    torques: list[sympy.Expr] = []
    force, moment = Matrix([0, 0, 0]), Matrix([0, 0, 0])
    for i in reversed(range(joints)):
        forward = rotations[i + 1] if i + 1 < joints else sympy.eye(3)
        force = forward * force + forces[i]
        moment = forward * moment + arms[i].cross(force) + moments[i]
        torques.insert(0, (axis.T * rotations[i] * moment)[0])
    symbols = [*q, *dq, *ddq, *length, *mass, *(s for row in inertia for s in row), gravity]
    return symbols, torques
