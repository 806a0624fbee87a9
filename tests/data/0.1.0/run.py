"""Runs the models of `models.json` with the engine of 0.1.0, which must be first on PYTHONPATH.

PYTHONPATH=engine.zip python run.py <place>

As a program it runs every model once, without Spark, and prints what each of them said.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.journal import no_step
from penstock.layout import Layout
from penstock.names import Name

import penstock
from penstock import changes, files
from penstock.files import FileSource, Listings, Model
from penstock.windows import DatedPath, FileSelect, Request, Target, Window, WindowRun, WindowSettings

WINDOWS = ("2026-04-08", "2026-04-10")
"""The days that a run as a program asks for."""


class Models:
    """The models of `models.json`, on the lake and the landing files below one folder."""

    def __init__(self, place: Path, session: Mapping[str, Any] | None = None) -> None:
        text = Path(__file__).with_name("models.json").read_text()
        self.kinds: dict[str, dict[str, Any]] = json.loads(text.replace("{place}", str(place)))
        self.lake = penstock.connect(str(place / "lake"), session=session)

    def ingest(self, name: str, *, full_refresh: bool = False, step: Callable[[str], None] = no_step) -> Any:
        model = self.kinds["files"][name]
        source = FileSource.from_mapping(model["source"])
        return files.ingest(self.lake, Name.parse(name), source, model["select"], full_refresh=full_refresh, step=step)

    def merge_changes(self, name: str, *, step: Callable[[str], None] = no_step) -> Any:
        model = self.kinds["changes"][name]
        source = changes.ChangeSource.from_mapping({"unique_key": model["unique_key"]})
        return changes.merge_changes(self.lake, Name.parse(name), source, model["select"], step=step)

    def run_windows(self, name: str, first: str, end: str, *, step: Callable[[str], None] = no_step) -> list[str]:
        """The windows from `first` up to `end`, as dbt runs them; returns their messages."""
        model = self.kinds["windows"][name]
        settings = WindowSettings.from_config(model["config"])
        target = Target(self.lake, Name.parse(name), settings, Layout(), self.lake.runner)
        path = DatedPath(settings.source_path or "")
        select = FileSelect(
            self.lake,
            self.lake.runner,
            Model.read(model["select"], name),
            FileSource.from_mapping({"source_roots": [path.root], "safety_buffer_seconds": 0}),
            path,
            settings,
            Listings(),
        )
        windows = tuple(Window.of(first, end).steps("day"))
        run = WindowRun(target, Request(windows), warn=print, step=step)
        return [run.run(window, target, select).message for window in windows]


def main(place: Path) -> None:
    models = Models(place)
    runs = {
        **{name: lambda name=name: models.ingest(name) for name in models.kinds["files"]},
        **{name: lambda name=name: models.merge_changes(name) for name in models.kinds["changes"]},
        **{name: lambda name=name: models.run_windows(name, *WINDOWS) for name in models.kinds["windows"]},
    }
    said = {}
    for name, run in runs.items():
        try:
            said[name] = ["done", str(run())]
        except Exception as error:
            said[name] = [type(error).__name__, str(error)]
    print(json.dumps({"engine": penstock.__file__, "spark": "pyspark" in sys.modules, "said": said}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
