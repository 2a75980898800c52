"""The package as a user gets it, and which way its parts look."""

import ast
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("symbolic", "codegen", "identification", "generated")
# The table of DESIGN.md: what each part may import, besides the standard library and itself.
ALLOWED = {
    "symbolic": {"sympy", "mpmath", "pint"},
    "codegen": {"sympy", "casadi", "numpy", "jinja2", "mechsmith.symbolic"},
    "generated": {"casadi"},
    "identification": {
        *("casadi", "numpy", "scipy", "pint", "matplotlib", "rich", "pyarrow"),
        *("mechsmith.codegen.functions", "mechsmith.codegen.build", "mechsmith.codegen.simulator"),
        *("mechsmith.codegen.files", "mechsmith.codegen.unknowns"),
        *("mechsmith.codegen.discretise", "mechsmith.codegen.integrators", "mechsmith.generated"),
    },
}


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            whole = module in {f"mechsmith.{part}" for part in PARTS}
            names |= {f"{module}.{alias.name}" for alias in node.names} if whole else {module}
            assert node.level == 0, f"{path}: a relative import"
    return names


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_parts_look_only_where_they_may(part: str) -> None:
    allowed = {*ALLOWED[part], f"mechsmith.{part}"}
    for path in (ROOT / part).rglob("*.py"):
        for name in imported(path):
            if name.split(".")[0] in sys.stdlib_module_names:
                continue
            assert any(name == a or name.startswith(a + ".") for a in allowed), f"{path}: imports {name}"


@pytest.mark.parametrize("module", ["mechsmith.identification", "mechsmith.generated.lugre", "mechsmith"])
def test_importing_leaves_sympy_out(module: str) -> None:
    code = f"import sys, {module}; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_wheel_holds_every_tracked_file(tmp_path: Path) -> None:
    try:
        done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
        tracked = done.stdout.split()
    except (OSError, subprocess.CalledProcessError):
        tracked = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    folders = {"api": "mechsmith", **{name: f"mechsmith/{name}" for name in PARTS}}
    expected = {
        f"{folders[name.split('/')[0]]}/{name.split('/', 1)[1]}"
        for name in tracked
        if "/" in name and name.split("/")[0] in folders and "__pycache__" not in name
    }
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            str(tmp_path),
            str(ROOT),
        ],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == expected


def test_packages_are_listed_once() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert set(setuptools["packages"]) == set(setuptools["package-dir"])
