"""The command line: one verb a file, one line for every error."""

import warnings
from collections.abc import Callable
from importlib.metadata import entry_points, version
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from shoal.cli import (
    compare,
    demo,
    ledger,
    plan,
    release,
    streams,
    trial,
    trial_questions,
    unbiased,
    verify,
)
from shoal.cli.options import show
from shoal.cli.pairs import misspelt
from shoal.errors import MissingPartError, ShoalError, ShoalWarning, one_line

FAILED = 2
# What Typer makes of Ctrl-C.
_INTERRUPTED = 130
# Typer repeats whatever was typed.
_LONGEST = 2000
# Verbs of a distribution of their own in the same repository.
_ELSEWHERE = dict.fromkeys(("bench", "study"), "shoal-studies")
_HELP = {"-h", "--help"}
_QUOTES = " Several files are one pattern, in quotes, such as 'trips/*.csv'."

app = typer.Typer(
    name="shoal",
    help="User-level differentially private statistics: see the error before you spend.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": sorted(_HELP)},
)


def _show_version(value: bool) -> None:
    if value:
        show(f"shoal {version('shoal')}")
        raise typer.Exit


@app.callback()
def _shoal(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """User-level differentially private statistics: see the error before you spend."""


app.command("demo")(demo.demo)
app.command("plan")(plan.plan)
app.command("compare")(compare.compare)
app.command("release")(release.release)
app.command("verify")(verify.verify)
app.add_typer(ledger.app, name="ledger")
trial.app.command("ask")(trial_questions.ask)
trial.app.command("answer")(trial_questions.answer)
trial.app.command("regress")(trial_questions.regress)
app.add_typer(trial.app, name="trial")
app.add_typer(unbiased.app, name="unbiased")


def extend(arguments: list[str]) -> None:
    """Add the verbs of other distributions, by the entry points of the group `shoal.verbs`.

    They are looked for only if none of this one's is asked for: that takes its time.

    Raises:
        MissingPartError: A verb of the repository's other distribution, which is not installed.
    """
    asked = arguments[0] if arguments else ""
    groups = {each.name for each in app.registered_groups}
    if asked in groups or asked in {each.name for each in app.registered_commands}:
        return
    for each in entry_points(group="shoal.verbs"):
        if each.name not in groups:
            app.add_typer(each.load(), name=each.name)
            groups.add(each.name)
    if asked in _ELSEWHERE and asked not in groups:
        raise MissingPartError(
            f"shoal {asked}, which is not installed",
            f"verbs of the distribution {_ELSEWHERE[asked]}",
            "run pip install ./studies in a clone of the repository",
        )


def main(arguments: list[str]) -> int:
    """Run the command line and return its status."""
    asked: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", ShoalWarning)
        warnings.showwarning = _asking(warnings.showwarning, asked)
        status = _run(arguments)
    # What fails says one line: why.
    for each in asked if status == 0 else ():
        streams.complain(each)
    return status


def _run(arguments: list[str]) -> int:
    try:
        extend(arguments)
        status = app(arguments, standalone_mode=False)
    except TyperException as error:
        if told := misspelt(typer.main.get_command(app), arguments):
            return _fail(told)
        text = error.format_message() if hasattr(error, "format_message") else str(error)
        context = getattr(error, "ctx", None)
        if context is not None and text == context.get_help():
            # Nothing was asked for: the help, as it is laid out.
            show(text)
            return FAILED
        told = one_line(text, _LONGEST) + (_QUOTES if _is_expanded(text, arguments) else "")
        return _fail(f"{told} Try `{_verb(error)} --help`." if text else "")
    except ShoalError as error:
        return _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        status = _INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Typer leaves like this when the reader has gone; verbs print what ends in nothing then.
        streams.mute()
        return 0 if _HELP & {*arguments} else FAILED
    except OSError as error:
        return _fail(f"{error.strerror or type(error).__name__}; free space or check the path.")
    except Exception as error:
        # The text of an unforeseen error could hold a private value: only its kind is shown.
        what = f"unexpected {type(error).__name__}; please report it"
        return _fail(f"{what}; ask again: what a ledger recorded costs nothing.")
    if status == _INTERRUPTED:
        return _fail("interrupted; ask again: what a ledger recorded costs nothing.")
    return status if isinstance(status, int) else 0


def _is_expanded(text: str, arguments: list[str]) -> bool:
    """Whether a message is about files too many, as where the shell has replaced a pattern."""
    _, extra, names = text.partition("unexpected extra argument")
    if not extra:
        return False
    from shoal.data.sources import ENDINGS  # it loads NumPy, and most command lines are sound

    found = (each for each in arguments if each.casefold().endswith(ENDINGS))
    return any(each in names for each in found)


def _asking(show_other: Callable[..., None], asked: list[str]) -> Callable[..., None]:
    """What keeps a question of shoal's as one line, as errors are, and shows others as they were.

    Args:
        show_other: How others are shown.
        asked: Where the lines are kept.
    """

    def ask(message: Warning | str, *given: Any, **named: Any) -> None:
        if isinstance(message, ShoalWarning):
            asked.append(one_line(str(message), _LONGEST))
        else:
            show_other(message, *given, **named)

    return ask


def _verb(error: TyperException) -> str:
    """The command that a message is about, however the program itself was called."""
    context, names = getattr(error, "ctx", None), []
    while context is not None and context.parent is not None:
        names.append(str(context.info_name))
        context = context.parent
    return " ".join(["shoal", *reversed(names)])


def _fail(text: str) -> int:
    if text:
        streams.complain(text)
    return FAILED
