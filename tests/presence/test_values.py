"""Values of cells from noisy parts: exact without noise, and intervals that cover with it."""

import numpy as np
import pytest

from shoal.presence.values import Values

KNOTS = np.linspace(10.0, 50.0, 9)


def values(parts: np.ndarray, scale: float, moved: float = 0.0) -> Values:
    """Parts of cells with noise of a scale, in a range of 10 to 50 of 0 to 60."""
    return Values(parts, scale, KNOTS, (0.0, 60.0), moved)


def ramps(numbers: np.ndarray) -> np.ndarray:
    """Parts of a cell of users with these values, each with the weight 1, by the definition."""
    width = KNOTS[1] - KNOTS[0]
    shares = np.clip((numbers[:, None] - KNOTS[:-1]) / width, 0.0, 1.0)
    above = np.concatenate(
        [np.ones((len(numbers), 1)), shares, np.zeros((len(numbers), 1))], axis=1
    )
    return np.asarray(-np.diff(above, axis=1).sum(axis=0))


def test_without_noise_a_mean_is_that_of_the_clipped_values() -> None:
    """Knots weighed by parts give it exactly; quantiles are within a piece."""
    rng = np.random.default_rng(0)
    people = [rng.uniform(0, 60, 400), rng.normal(30, 3, 300), np.full(200, 24.0)]
    found = values(np.stack([ramps(each) for each in people]), 1e-9)
    clipped = [np.clip(each, 10, 50) for each in people]
    assert found.weight == pytest.approx([400, 300, 200])
    assert found.mean == pytest.approx([each.mean() for each in clipped])
    for level in (0.1, 0.5, 0.9):
        near = np.array([np.quantile(each, level) for each in clipped])
        assert np.abs(found.quantile(level) - near).max() < KNOTS[1] - KNOTS[0]
        low, high = found.quantile_interval(level, 0.95)
        outside = (near < 10.1) | (near > 49.9)
        assert ((low <= near) & (near <= high) | outside).all()


@pytest.mark.parametrize("scale", [0.01, 3.0, 60.0, 1000.0])
def test_intervals_cover_with_noise_alone(scale: float) -> None:
    """Of 4,000 cells of one kind each, also where the weight is lost in noise.

    They are no longer than noise asks for, also where it is far less than a step of any grid.
    """
    rng = np.random.default_rng(1)
    people = rng.normal(28, 6, 300)
    exact = ramps(people)
    many = 4000
    noisy = exact + rng.laplace(0, scale, (many, len(exact)))
    found = values(noisy, scale)
    low, high = found.mean_interval(0.95)
    truth = np.clip(people, 10, 50).mean()
    covered = ((low <= truth) & (truth <= high)).mean()
    assert covered >= 0.94
    if scale < 10:
        assert covered <= 0.96
    width = np.median(high - low)
    assert width <= 60
    low, high = found.quantile_interval(0.5, 0.95)
    middle = np.median(people)
    assert ((low <= middle) & (middle <= high)).mean() >= 0.94
    # Cells that are all alike do not differ by more than noise.
    assert found.above_noise.mean() < 0.5


def test_tails_move_all_means_by_little() -> None:
    """A tail that stands out of its noise does, by at most a tenth of the range."""
    parts = np.stack([ramps(np.full(500, 30.0))] * 3)
    tails = np.array([0.0, 700.0, 700.0, 0.0, 0.0, 100.0])
    found = Values(parts, 1.0, KNOTS, (0.0, 60.0), 0.0, tails, 1.0)
    assert found.mean == pytest.approx([30 + 10 * 100 / 1500] * 3)
    unclear = Values(parts, 1.0, KNOTS, (0.0, 60.0), 0.0, tails, 50.0)
    assert unclear.mean == pytest.approx([30.0] * 3)
    far = Values(parts, 1.0, KNOTS, (0.0, 1e6), 0.0, tails, 1.0)
    assert far.mean == pytest.approx([34.0] * 3)


def test_intervals_reach_what_lies_beyond_the_range() -> None:
    """Values above it raise a mean, more so in cells with more of their weight at its end."""
    rng = np.random.default_rng(3)
    people = [rng.normal(30, 5, 800), rng.normal(45, 12, 800), rng.normal(28, 5, 800)]
    people = [np.clip(each, 0, 60) for each in people]
    beyond = sum(float(np.clip(each - 50, 0, 10).sum() / 10) for each in people)
    parts = np.stack([ramps(each) for each in people])
    tails = np.array([0.0, parts.sum() - beyond, 0.0, 0.0, 0.0, beyond])
    found = Values(parts, 3.0, KNOTS, (0.0, 60.0), 0.0, tails, 1e-9)
    low, high = found.mean_interval(0.95)
    truth = np.array([each.mean() for each in people])
    assert ((low <= truth) & (truth <= high)).all()
    assert (high - low < 8).all()
    assert high[1] - low[1] > 1.5 * (high[0] - low[0])
    assert not found.is_range_wrong
    tails = np.array([0.0, 100.0, 0.0, 0.0, 0.0, 300.0])
    most = Values(parts[:, :2], 1e-9, KNOTS[:2], (0.0, 60.0), 0.0, tails, 1.0)
    assert most.is_range_wrong


def test_a_mean_makes_up_for_what_a_cap_takes_from_users_unlike_the_others() -> None:
    """Of users of two kinds it is that of their records, if all cells have them alike."""
    light, heavy = 600, 100
    of_light, of_heavy = ramps(np.array([20.0])), ramps(np.array([40.0]))
    # Users above the cap have five times the records, and twice the weight.
    parts = np.stack([light * of_light + 2 * heavy * of_heavy] * 3)
    moved = 5 * heavy / (light + 5 * heavy) - 2 * heavy / (light + 2 * heavy)
    truth = (20 * light + 40 * 5 * heavy) / (light + 5 * heavy)
    tails = np.array([0.0, 0.75 * light, 0.25 * light, 0.5 * heavy, 1.5 * heavy, 0.0])
    priority = np.array([1.0, 2.0, 4.0])
    found = Values(parts, 1.0, KNOTS, (0.0, 60.0), moved, tails, 1.0, priority=priority)
    assert found.mean == pytest.approx([truth] * 3)
    low, high = found.mean_interval(0.95)
    assert ((low < truth) & (truth < high)).all()
    # What noise may make changes no mean.
    noisy = Values(parts, 1.0, KNOTS, (0.0, 60.0), moved, tails, 30.0)
    assert noisy.mean == pytest.approx([25.0] * 3)


def test_users_above_the_cap_who_are_in_cells_of_their_own_move_no_mean() -> None:
    """Users with a record each: those of small cells have high priorities, and others values."""
    users = np.array([1000, 250, 100])
    values_of_cells = [20.0, 20.0, 40.0]
    parts = np.stack(
        [n * ramps(np.array([at])) for n, at in zip(users, values_of_cells, strict=True)]
    )
    tails = np.array([0.0, 0.75 * 1250, 0.25 * 1250, 25.0, 75.0, 0.0])
    bounds = (0.0, 60.0)
    found = Values(parts, 1.0, KNOTS, bounds, 0.3, tails, 1.0, priority=1350 / users)
    assert found.mean == pytest.approx(values_of_cells)
    # Priorities that are nearly alike explain little of it.
    alike = Values(parts, 1.0, KNOTS, bounds, 0.3, tails, 1.0, priority=np.array([1, 1, 1.01]))
    assert alike.mean == pytest.approx(np.array(values_of_cells) + 0.3 * 20, abs=0.1)
