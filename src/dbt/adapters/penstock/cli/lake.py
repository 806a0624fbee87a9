"""The lake of a command: the folder of `--root`, or the dbt profile and project of the current folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from penstock.api import Lake

F = TypeVar("F", bound=Callable[..., Any])


class ConfigError(click.ClickException):
    """An error in the profile or the project."""

    exit_code = 2


@dataclass
class Given:
    """The options of the command that say which lake is meant."""

    root: str | None = None
    project_dir: str | None = None
    profiles_dir: str | None = None
    profile: str | None = None
    target: str | None = None

    @cached_property
    def lake(self) -> Lake:
        """The lake; an error if its root can't be read."""
        self.unchecked.storage.check_root(writable=False)
        return self.unchecked

    @cached_property
    def unchecked(self) -> Lake:
        """The lake, whether it can be read or not. With `--root` nothing of dbt is imported."""
        from penstock.api import Lake

        if self.root is None:
            found: Lake = self.credentials.lake(self.project)
            return found
        # A relative root starts here, as in a shell.
        return Lake(self.root if "://" in self.root else os.path.abspath(os.path.expanduser(self.root)))

    @property
    def project(self) -> str:
        """The folder of the dbt project; an error if there is none."""
        folder = os.path.abspath(self.project_dir or os.environ.get("DBT_PROJECT_DIR") or os.getcwd())
        if not os.path.exists(os.path.join(folder, "dbt_project.yml")):
            raise ConfigError(f"There is no dbt project in {folder}. Name the lake with --root, or go to the project.")
        return folder

    @property
    def profiles(self) -> str:
        """The folder of profiles.yml, found as dbt finds it."""
        for folder in (self.profiles_dir, os.environ.get("DBT_PROFILES_DIR")):
            if folder:
                return os.path.abspath(folder)
        here = next((path for path in (os.getcwd(), self.project) if _has_profiles(path)), None)
        return here or os.path.expanduser("~/.dbt")

    @cached_property
    def credentials(self) -> Any:
        """The credentials in the profile, read by dbt; an error if they are of another adapter."""
        project = self.project
        from argparse import Namespace

        from dbt.config.runtime import load_profile
        from dbt.flags import set_from_args
        from dbt_common.context import set_invocation_context
        from dbt_common.exceptions import DbtBaseException

        set_invocation_context(os.environ)
        set_from_args(Namespace(profiles_dir=self.profiles, project_dir=project), None)
        try:
            found = load_profile(project, {}, self.profile, self.target).credentials
        except DbtBaseException as error:
            raise ConfigError(" ".join(str(error).split())) from error
        if found.type != "penstock":
            raise ConfigError(f"The profile has type {found.type}, not penstock. Choose another with --target.")
        return found

    def arguments(self) -> list[str]:
        """The options for dbt's own commands."""
        given = ["--project-dir", self.project, "--profiles-dir", self.profiles]
        for option, value in (("--profile", self.profile), ("--target", self.target)):
            given += [option, value] if value else []
        return given


def _has_profiles(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "profiles.yml"))


def _take(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    """Note an option of the lake, wherever it stands: before the command or after it."""
    if value is None:
        return
    given = ctx.ensure_object(Given)
    setattr(given, str(option.name), value)
    if given.root is not None and any((given.project_dir, given.profiles_dir, given.profile, given.target)):
        raise click.UsageError("--root names the lake, so no dbt project is read: leave out the other options.")


_OPTIONS = (
    (("--root",), "PATH", "The lake's folder or URI. Without it: the dbt profile of this folder."),
    (("--project-dir",), "PATH", "The folder of the dbt project, if it is not the current one."),
    (("--profiles-dir",), "PATH", "The folder of profiles.yml."),
    (("--profile",), "NAME", "The dbt profile."),
    (("--target", "-t"), "NAME", "The target in the profile."),
)


def lake_options(command: F) -> F:
    """The options that say which lake is meant."""
    for names, metavar, text in reversed(_OPTIONS):
        option = click.option(*names, metavar=metavar, help=text, expose_value=False, callback=_take)
        command = option(command)
    return command


def pass_given(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the lake as its first argument, and the options that name it."""
    return lake_options(click.make_pass_decorator(Given)(command))
