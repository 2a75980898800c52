"""Options and fixtures shared by all tests."""

import os
from pathlib import Path

import pytest

# Tests run one process a core; threads of linear algebra beside them only get in each other's way.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

REFERENCE = Path(__file__).parent / "reference"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shared", type=Path, default=None, help="folder that holds data/ with the measured data sets"
    )


@pytest.fixture(scope="session")
def shared(request: pytest.FixtureRequest) -> Path:
    """Return the folder given as --shared, or skip the test with a reason."""
    folder = request.config.getoption("--shared")
    if folder is None:
        pytest.skip("needs the measured data: pytest --shared PATH")
    if not (folder / "data").is_dir():
        pytest.fail(f"--shared {folder}: there is no folder data in it")
    return folder.resolve()


@pytest.fixture(scope="session")
def reference() -> Path:
    """Return the folder of reference values that belong to the project."""
    return REFERENCE
