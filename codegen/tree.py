"""Generated folders: what belongs in them, writing it whole, and finding what is stale."""

import difflib
import importlib.metadata
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mechsmith.codegen.discretise import Discretisation, discretise
from mechsmith.codegen.emit_c import Scalar, emit_c
from mechsmith.codegen.emit_python import emit_python
from mechsmith.codegen.emit_test import emit_test
from mechsmith.codegen.files import write_text
from mechsmith.codegen.functions import FunctionSet, metadata
from mechsmith.codegen.vectors import as_dictionary, make_vectors
from mechsmith.symbolic.names import identifier

VERSIONS = "versions.json"
KEPT = ("__init__.py", "py.typed")


@dataclass(frozen=True)
class Difference:
    """One file of a generated folder that is not as it should be: missing, stale or an orphan."""

    file: str
    kind: str
    diff: str


def default_discretisation(functions: FunctionSet) -> Discretisation | None:
    """Return how a model is integrated when nothing else is asked for, or None when there is nothing to integrate."""
    return discretise(functions) if functions.states and not functions.unknowns else None


def python_files(functions: FunctionSet) -> dict[str, str]:
    """Return the generated Python module."""
    return {f"{identifier(functions.name)}.py": emit_python(functions)}


def c_files(
    functions: FunctionSet, *, discretisation: Discretisation | None = None, scalar: Scalar = "double"
) -> dict[str, str]:
    """Return the header, the source, the test program and the description with test vectors."""
    prefix = identifier(functions.name)
    vectors = make_vectors(functions, discretisation)
    return {
        **emit_c(functions, discretisation=discretisation, scalar=scalar),
        f"{prefix}_test.c": emit_test(functions, vectors, discretisation=discretisation, scalar=scalar),
        f"{prefix}.json": _json(
            {**metadata(functions), "vectors": [as_dictionary(vector) for vector in vectors]}
        ),
    }


def catalogue_files(sets: Sequence[FunctionSet]) -> dict[str, str]:
    """Return everything that belongs in ``generated/`` for some models, and the versions it was made with."""
    files: dict[str, str] = {}
    for functions in sets:
        files |= python_files(functions)
        emitted = c_files(functions, discretisation=default_discretisation(functions))
        files |= {name: text for name, text in emitted.items() if not name.endswith("_test.c")}
    versions = {name: importlib.metadata.version(name) for name in ("casadi", "sympy")}
    files[VERSIONS] = _json(versions)
    return files


def _json(data: Any) -> str:
    return json.dumps(_finite(data), indent=1, ensure_ascii=True) + "\n"


def _finite(value: Any) -> Any:
    """Replace infinities, which JSON lacks, by null: a bound that is not there."""
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files, each whole or not at all; the folder is made when it is not there."""
    for name, text in files.items():
        write_text(folder / name, text)


def differences(folder: Path, files: Mapping[str, str]) -> tuple[Difference, ...]:
    """Return how a generated folder differs from what belongs in it: stale and missing files, and orphans."""
    found = []
    for name, text in files.items():
        path = folder / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if not path.exists():
            found.append(Difference(name, "missing", ""))
        elif old != text:
            lines = difflib.unified_diff(
                old.splitlines(),
                text.splitlines(),
                f"{name} as it is",
                f"{name} as generated",
                lineterm="",
                n=1,
            )
            found.append(Difference(name, "stale", "\n".join(list(lines)[:40])))
    if folder.is_dir():
        present = sorted(path.name for path in folder.iterdir() if path.is_file() and path.name not in KEPT)
        found += [Difference(name, "orphan", "") for name in present if name not in files]
    return tuple(found)


def remove_orphans(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    """Remove what is in a generated folder and belongs to no model; returns the names."""
    orphans = tuple(d.file for d in differences(folder, files) if d.kind == "orphan")
    for name in orphans:
        (folder / name).unlink()
    return orphans
