"""``tvmc micro``: a project of a Model Library Format archive, built and flashed."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from slipway.driver.tvmc.model import TVMCException, TVMCPackage
from slipway.micro.project import GeneratedProject, TemplateProject


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands create, build and flash, which classic's later releases name longer."""
    commands = parser.add_subparsers(dest="micro_command", required=True)
    create = commands.add_parser(
        "create", aliases=["create-project"], help="make a project of an archive"
    )
    create.add_argument("project_dir", help="the folder to make")
    create.add_argument("MLF", help="what tvmc compile -f mlf wrote")
    create.add_argument("platform", help="crt, zephyr, arduino, baremetal, or template")
    create.add_argument("--template-dir", help="the folder of a template of one's own")
    build = commands.add_parser("build", help="compile a project's firmware")
    flash = commands.add_parser("flash", help="program the board with it")
    for command in (build, flash):
        command.add_argument("project_dir")
        command.add_argument("platform", nargs="?", help="what the project was made for")
    for command in (create, build, flash):
        command.add_argument(
            "--project-option", "--create-options", nargs="+", action="extend", default=[],
            metavar="NAME=VALUE", help="an option of the template, or list_options",
        )  # fmt: skip
        command.add_argument("-f", "--force", action="store_true", help="without effect")


def run(options: argparse.Namespace) -> None:
    """Run one of the commands."""
    if options.micro_command.startswith("create"):
        _create(options)
        return
    project = GeneratedProject.from_directory(
        options.project_dir, options_of(options.project_option)
    )
    if options.micro_command == "build":
        project.build()
    else:
        project.flash()


def _create(options: argparse.Namespace) -> None:
    own = options.platform == "template"
    if own != (options.template_dir is not None):
        raise TVMCException("--template-dir is of the platform template, which needs it")
    template = TemplateProject.from_directory(options.template_dir if own else options.platform)
    if options.project_option == ["list_options"]:
        for option in template.info()["project_options"]:
            print(f"{option['name']}: {option.get('help') or ''}")
        return
    template.generate_project_from_mlf(
        options.MLF, options.project_dir, options_of(options.project_option)
    )
    print(f"wrote {options.project_dir}")


def package_of(project_dir: str) -> TVMCPackage:
    """Return the archive that a project was made of, with the project."""
    if not Path(project_dir).is_dir():
        raise TVMCException(f"--device micro takes the folder of a project; {project_dir} is none")
    project = GeneratedProject.from_directory(project_dir)
    try:
        archive = Path(project_dir) / project.info()["model_library_format_path"]
    finally:
        project.close()
    return TVMCPackage(str(archive), project_dir)


def options_of(texts: list[str]) -> dict[str, Any]:
    """Return the options of texts ``name=value``."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise TVMCException(f"--project-option has {text!r}, which is not name=value")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found
