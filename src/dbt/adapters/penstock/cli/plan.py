"""`penstock plan`: what a run would do with each model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dbt.adapters.penstock.cli import screen
from dbt.adapters.penstock.cli.command import as_json, found_wrong
from dbt.adapters.penstock.cli.lake import ConfigError, Given, pass_given
from penstock.wording import count, size

if TYPE_CHECKING:
    from dbt.adapters.penstock.cli.project import PlannedModel
    from penstock.inspection.planned import PlannedChanges, PlannedFiles, PlannedWindows

_WORK = 2
_SHOWN = 3


@click.command()
@click.option("--select", "-s", multiple=True, metavar="SELECTION", help="Models, as for `dbt run --select`.")
@click.option("--full-refresh", "-f", is_flag=True, help="Plan a run with --full-refresh.")
@click.option(
    "--detailed-exitcode", is_flag=True, help="Exit with 2 if there is work, 0 if there is none, 1 on errors."
)
@as_json
@pass_given
def plan(given: Given, select: tuple[str, ...], full_refresh: bool, detailed_exitcode: bool, json: bool) -> None:
    """What `dbt run` would do now with models over files, cdf_merge and microbatch models. Nothing is run or written.

    It also says which configs are wrong. Exit code 1 if the run of a model would fail.
    """
    if given.root is not None:
        raise click.UsageError("`plan` reads the models of a dbt project, so it does not take --root.")
    try:
        models = _models(given, select, full_refresh)
    except ConfigError as error:
        if detailed_exitcode:
            raise click.ClickException(error.message) from error  # exit code 1, as 2 says that there is work
        raise
    totals = {
        "models": len(models),
        "work": sum(one.planned is not None and one.planned.has_work for one in models),
        "errors": sum(one.error is not None for one in models),
    }
    if json:
        screen.print_json("plan", totals=totals, models=[_document(one) for one in models])
    else:
        _show(models)
        screen.say(
            f"Plan: {totals['work']:,} of {totals['models']:,} models have work, {totals['errors']:,} with errors",
            "bold",
        )
    if totals["errors"]:
        found_wrong()
    if detailed_exitcode and totals["work"]:
        click.get_current_context().exit(_WORK)


def _models(given: Given, select: tuple[str, ...], full_refresh: bool) -> list[PlannedModel]:
    if not given.project:
        return []
    from dbt.adapters.penstock.cli.project import Project

    # As dbt takes it: one option with several selectors, or several options.
    selectors = [selector for text in select for selector in text.split()]
    return list(Project(given, full_refresh=full_refresh).plan(selectors))


def _document(one: PlannedModel) -> dict[str, Any]:
    found = {"model": one.model, "relation": one.relation, "kind": one.kind, "note": one.note, "error": one.error}
    planned = one.planned
    return {
        **found,
        "has_work": planned is not None and planned.has_work,
        "files": planned if type(planned).__name__ == "PlannedFiles" else None,
        "changes": planned if type(planned).__name__ == "PlannedChanges" else None,
        "windows": planned if type(planned).__name__ == "PlannedWindows" else None,
    }


def _show(models: list[PlannedModel]) -> None:
    rows = []
    for one in models:
        sign, style, lines = _told(one)
        rows.append(
            (
                screen.styled(sign, style),
                one.relation,
                one.kind,
                screen.styled("\n".join(lines), style if sign == "!" else ""),
            )
        )
    screen.print_table(("", "model", "kind", "would do"), rows)


def _told(one: PlannedModel) -> tuple[str, str, list[str]]:
    """The sign of a model, its colour, and the lines that say what would be done."""
    from penstock.inspection.planned import PlannedChanges, PlannedFiles

    if one.error is not None:
        return "!", "bold red", [one.error]
    if one.planned is None:
        return "?", "cyan", [one.note or ""]
    planned = one.planned
    lines = []
    if planned.unfinished is not None:
        lines.append(f"first, the plan {planned.unfinished} that an earlier run left, as it stands")
    if isinstance(planned, PlannedFiles):
        lines += _files(planned)
    elif isinstance(planned, PlannedChanges):
        lines += _changes(planned)
    else:
        lines += _windows(planned)
    if not planned.has_work:
        return ("?", "cyan", [one.note]) if one.note else ("", "", lines or ["nothing to do"])
    return ("+" if planned.creates else "~"), "green" if planned.creates else "yellow", lines


def _files(planned: PlannedFiles) -> list[str]:
    lines = []
    if planned.files:
        batches = f"{planned.batches:,} batch" if planned.batches == 1 else f"{planned.batches:,} batches"
        span = f"{screen.moment(planned.oldest)} … {screen.moment(planned.newest)}"
        lines.append(f"{count(planned.files, 'file')} in {batches}, {size(planned.bytes)}, written {span}")
    if planned.skipped:
        lines.append(f"{count(planned.skipped, 'file')} only recorded (empty, or before starting_timestamp)")
    if planned.young:
        lines.append(f"{count(planned.young, 'file')} wait: younger than safety_buffer_seconds")
    if planned.creates and planned.files:
        lines.append("creates the table")
    return [*lines, *planned.warnings]


def _changes(planned: PlannedChanges) -> list[str]:
    lines = []
    for versions in planned.ranges:
        if versions.first is None:
            lines.append(f"built from {versions.source} at version {versions.last}")
            continue
        rows = "" if versions.rows is None else f", {count(versions.rows, 'row')} by its commits"
        lines.append(f"{versions.source} {versions.first} to {versions.last}{rows}")
    if planned.more:
        lines.append("and later versions in further commits (`cdf_max_versions`)")
    if planned.ranges and not planned.creates:
        lines.append(f"way: {planned.way}" + (f", because {planned.why}" if planned.why else ""))
    return [*lines, *planned.warnings]


def _windows(planned: PlannedWindows) -> list[str]:
    lines = []
    if planned.windows:
        first = ", ".join(planned.windows[:_SHOWN])
        more = f" and {len(planned.windows) - _SHOWN:,} more" if len(planned.windows) > _SHOWN else ""
        lines.append(f"{count(len(planned.windows), 'window')} in {count(planned.jobs, 'job')}: {first}{more}")
    if planned.skipped:
        lines.append(f"{count(planned.skipped, 'window')} skipped, up to the high watermark")
    if planned.waiting:
        lines.append(f"{count(planned.waiting, 'window')} wait: not over, or still being written")
    return lines + [f"never built, and out of reach of `lookback`: {hole}" for hole in planned.holes[:_SHOWN]]
