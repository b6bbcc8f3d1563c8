"""Progress in Python: on a terminal alone, of long work alone, one line at a time."""

import io
import sys
import time

import pytest

from shoal import progress


class Terminal(io.StringIO):
    """What was shown on a terminal."""

    def isatty(self) -> bool:
        """A person looks at it."""
        return True


@pytest.mark.parametrize("seconds", [0.0, 0.25])
def test_a_terminal_shows_long_work(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """A bar by items, and a line of what has none but no second one below a line that is there."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_LONG", 0.05)
    monkeypatch.setattr(sys, "stderr", Terminal())
    for _ in progress.tracked([1, 2], "simulating", None):
        time.sleep(seconds)
    with progress.said("verifying"), progress.said("drawing"):
        time.sleep(seconds)
    shown = sys.stderr.getvalue()
    said = [each in shown for each in ("simulating", "verifying", "drawing")]
    assert said == [seconds > 0, seconds > 0, False]


def test_elsewhere_python_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts have what they printed before; a caller's own progress is used everywhere."""
    monkeypatch.setattr(progress, "_LONG", 0.01)
    with progress.said("verifying"):
        for _ in progress.tracked([1, 2], "simulating", None):
            time.sleep(0.05)
    assert capsys.readouterr() == ("", "")
    assert [*progress.tracked([1, 2], "", lambda items, total: [*items, total])] == [1, 2, 2]
