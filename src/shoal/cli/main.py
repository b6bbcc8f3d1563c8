"""The command line: every verb, and one line for every error."""

import sys
import warnings
from collections import defaultdict
from importlib.metadata import entry_points, version
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from shoal.cli import (
    compare,
    demo,
    dossier,
    ledger,
    mean,
    plan,
    publish,
    release,
    report,
    trial,
    verify,
)
from shoal.cli import show as show_verb
from shoal.cli.options import first
from shoal.cli.output import show
from shoal.errors import InputError, MissingPartError, ShoalError, ShoalWarning, one_line

FAILED = 2
# The status that Typer returns after Ctrl-C.
_INTERRUPTED = 130
# The most characters of an error of Typer, which repeats whatever was typed.
_LONGEST = 2000
# Verbs of a distribution of their own in the same repository.
_ELSEWHERE = dict.fromkeys(("bench", "study"), "shoal-studies")
_AGAIN = "repeat the command: a release that a ledger has recorded costs nothing"
_QUOTES = "Give several files as one pattern in quotes, such as 'trips/*.csv'."
_GROUPS = {
    "ledger": "Create, show or verify a ledger, or withdraw a release.",
    "trial": "Plan releases of an experiment with private outcomes.",
    "mean": "Plan means of values that have no known bounds.",
}
# All verbs, in the order of the help.
VERBS: dict[str, Any] = {
    "plan": plan.plan,
    "compare": compare.compare,
    "release": release.release,
    "show": show_verb.show_release,
    "publish": publish.publish,
    "verify": verify.verify,
    "ledger": {
        "create": ledger.create,
        "show": ledger.show_ledger,
        "withdraw": ledger.withdraw,
        "verify": ledger.verify,
    },
    "trial": {"plan": trial.plan, "ask": trial.ask},
    "mean": {"plan": mean.plan, "bound": mean.bound},
    "report": report.report,
    "dossier": dossier.dossier,
    "demo": demo.demo,
}


class Verb(TyperCommand):
    """A verb whose help has the options of most use first, and others below them."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options under their headings."""
        parts = defaultdict(list)
        for each in self.get_params(ctx):
            usual = "Options" if each.param_type_name == "option" else "Arguments"
            if record := each.get_help_record(ctx):
                more = " It can be given several times." if getattr(each, "multiple", False) else ""
                title = getattr(each, "rich_help_panel", None) or usual
                parts[title].append((record[0], record[1] + more))
        for title in sorted(parts, key=["Arguments", "Options", "More options"].index):
            with formatter.section(title):
                formatter.write_dl(parts[title])


class Group(TyperGroup):
    """Verbs in the order in which they are used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the verbs."""
        return sorted(self.commands, key=[*VERBS, *self.commands].index)


def _built(verbs: dict[str, Any], **about: Any) -> typer.Typer:
    """Returns the commands of a group of verbs, and of the groups inside it."""
    built = typer.Typer(
        cls=Group,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        **about,
    )
    for name, verb in verbs.items():
        if isinstance(verb, dict):
            built.add_typer(_built(verb, help=_GROUPS[name]), name=name)
        else:
            built.command(name, cls=Verb)(verb)
    return built


app = _built(VERBS, name="shoal")


def _show_version(value: bool) -> None:
    """Show the version and leave."""
    if value:
        show(f"shoal {version('shoal')}")
        raise typer.Exit


_Version = Annotated[
    bool, first("Show the version and exit.", "--version", callback=_show_version, is_eager=True)
]


@app.callback()
def _shoal(_version: _Version = False) -> None:
    """User-level differentially private statistics: see the error before you spend."""


def extend(arguments: list[str]) -> None:
    """Add the verbs of other distributions, by the entry points of the group `shoal.verbs`.

    They are looked for only if no verb of this distribution is asked for, as that takes time.
    """
    asked = arguments[0] if arguments else "--help"
    if asked.startswith("-") or asked in VERBS:
        return
    known = {each.name for each in app.registered_groups}
    for each in entry_points(group="shoal.verbs"):
        if each.name not in known:
            app.add_typer(each.load(), name=each.name)
            known.add(each.name)
    if asked in _ELSEWHERE and asked not in known:
        raise MissingPartError(
            f"shoal {asked} is not installed: it belongs to the distribution {_ELSEWHERE[asked]}",
            "run pip install ./studies in a clone of the repository",
        )


def run() -> None:
    """Run the command line and leave with its status; characters no terminal shows are escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Run one command: status 1 says that a claim does not hold, 2 that something went wrong."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ShoalWarning)
        status, lines = _run(arguments)
    said = [str(each.message) for each in caught if issubclass(each.category, ShoalWarning)]
    if status == 0:
        # Each warning is shown once. A command that fails shows only why.
        lines += dict.fromkeys(said)
    for each in lines:
        print(f"shoal: {one_line(each, 2 * _LONGEST)}", file=sys.stderr)
    return status


def _run(arguments: list[str]) -> tuple[int, list[str]]:
    """Run one command, and return its status and lines that say what went wrong."""
    try:
        extend(arguments)
        status = app(arguments, prog_name="shoal", standalone_mode=False)
        if status == _INTERRUPTED:
            raise KeyboardInterrupt
    except TyperException as error:
        return FAILED, _misused(error)
    except ShoalError as error:
        return FAILED, [str(error)]
    except (KeyboardInterrupt, typer.Abort):
        return FAILED, [f"interrupted; {_AGAIN}."]
    except OSError as error:
        return FAILED, [f"{error.strerror or type(error).__name__}; free space or check the path."]
    except Exception as error:
        # The text of an unforeseen error could hold a private value: only its kind is shown.
        return FAILED, [f"unexpected {type(error).__name__}; please report it; {_AGAIN}."]
    return status if isinstance(status, int) else 0, []


def _misused(error: TyperException) -> list[str]:
    """Return what is wrong with what was typed; if nothing was typed, show the help instead."""
    text = error.format_message()
    context = getattr(error, "ctx", None)
    if context is not None and text == context.get_help():
        show(text)
        return []
    if pair := next((each for each in ("--bounds", "--interval") if f"'{each}'" in text), None):
        ends = f"give the lower and the upper end with a space between: {pair} 0 700"
        return [str(InputError(f"{pair} needs two numbers", ends))]
    more = f" {_QUOTES}" if "unexpected extra argument" in text else ""
    path = "shoal" if context is None else context.command_path
    return [f"{one_line(text, _LONGEST)}{more} Try `{path} --help`."]
