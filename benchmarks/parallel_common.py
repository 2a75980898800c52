"""What the studies of parallel robots share: results that a stopped run goes on from."""

import json
from collections.abc import Callable
from pathlib import Path

from rich.progress import track


def kept(folder: Path, name: str, count: int, run: Callable[[int], dict]) -> list[dict]:
    """Return the results of seeds 0 to count - 1, those on disk as they are."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.json"
    results = json.loads(file.read_text()) if file.exists() else []
    for seed in track(range(len(results), count), description=name):
        results.append(run(seed))
        file.write_text(json.dumps(results))
    return results[:count]
