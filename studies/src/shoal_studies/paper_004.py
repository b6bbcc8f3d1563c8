"""Paper 004, bias, variance and privacy: certificates, errors of estimators, and lower bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np

from shoal.theory.clipping import Moment, Moments
from shoal.theory.trilemma import Trilemma, trilemma
from shoal_studies.chart import Chart, Row
from shoal_studies.paper_004_estimators import (
    CLIPPED,
    COMBINED,
    FEWEST,
    NORMAL,
    SAMPLED,
    SYMMETRIC,
    WORDS,
    Asked,
    Combined,
    Distribution,
    Drawn,
    Exact,
    Job,
    Part,
    Sampled,
    amount,
    exact,
    mirrored,
    simulate,
    worst,
)
from shoal_studies.regimes import regime
from shoal_studies.registry import Finding, Study, column, listed, short, spans, study
from shoal_studies.simulate import Effort

_SCALE = 10.0
# Figures: users, and deviations of a normal distribution that hardly any figure exceeds.
_USERS = (1000, 10_000, 100_000)
_FAR = 4.0
_ORDERS = (2.0, 4.0)
_FEW_BUDGETS = (1e-4, 0.003, 0.1)
_BUDGETS = tuple(float(each) for each in np.geomspace(1e-4, 0.1, 7))
# Of columns of the clipped mean's rows, in words.
_RATIOS = (
    ("certificate over lower bound", "certificate", "bound"),
    ("printed certificate over printed bound", "printed_certificate", "printed_bound"),
    ("certificate over the error on two points", "certificate", "worst_two_points"),
)
# The symmetric mean takes ten times the time of others; its points are so many deviations out.
_FEWER = 3
_OUT = 3.0
# Regimes: of users and delta, or of users and a bias.
BY_DELTA = "users and delta"
BY_BIAS = "users and bias"
_SMALL = 0.01
_FIXED = 1e-3
_GRID = 17
_METHODS = (CLIPPED, COMBINED, SAMPLED)
# Averages of releases: fewest averages behind a figure, and for a comparison with what is exact.
_RELEASES = tuple(10**k for k in range(6))
_GROUPS = 10
_MANY = 400
_MOST = 10**9
_WORST = "adversarial"
_NORMAL = "Gaussian"
# A Gaussian of deviation 1 has an eighth moment of 105.
_OF_DATA: dict[str, Moments] = {
    _WORST: (Moment(8, 1.0),), _NORMAL: (Moment(2, 1.0), Moment(8, 105**0.125)),
}  # fmt: skip
# Orders and sizes: E|X|^8 of the first three is 105, 8!/2^4 and 3^4/9, E|X|^3 of t4 is 2 sqrt(2);
# the lognormal distribution, which is skewed, has only its variance to say.
SKEWED = "lognormal"
_BIAS = 0.01
_OFTEN = 0.01
_CENTRES = (math.pi / 10, -1000 / 3)
KNOWN: dict[str, Moments] = {
    "Gaussian": (Moment(2, 1), Moment(8, 105**0.125)),
    "laplace": (Moment(2, 1), Moment(8, 2520**0.125)),
    "uniform": (Moment(2, 1), Moment(8, 9**0.125)),
    "t4": (Moment(2, 1), Moment(3, 2**0.5)),
    SKEWED: (Moment(2, 1),),
}


def printed_clipped(n: int, epsilon: float, order: float, bias: float) -> float:
    """Root of 1/n + bias^2 + 2 (1 + 2 bias^(-1/(order-1)))^2/(n epsilon)^2: Proposition 3.0.1."""
    margin = float(bias ** (-1 / (order - 1)))
    return math.sqrt(1 / n + bias**2 + 2 * ((1 + 2 * margin) / (n * epsilon)) ** 2)


def printed_combined(n: int, epsilon: float, delta: float, order: float) -> float:
    """Root of the bound of Proposition 3.0.3 with its own margin c."""
    kappa = 4 / order**2 * float((1 - 2 / order) ** (order - 2))
    margin = float((n * epsilon**2 * kappa * (order - 2) / (16 * delta)) ** (1 / order))
    tail = kappa * float(margin ** (2 - order)) if margin > 0 else kappa
    return math.sqrt(2 / n + (4 + 16 * margin**2) / (n * epsilon) ** 2 + 2 * tail / (n * delta))


def coarse_users(epsilon: float, delta: float) -> int:
    """Least n_1 of Proposition 4.1.3 with gamma = delta^2, a 1 in 10,000 too large at most."""
    gamma = 2 * math.log(1 / delta)
    # (n/2) e^(-n epsilon/16) falls where n is above 16/epsilon.
    found = max(16 / 5 * (2 + gamma / epsilon), 128 * (math.log(2) + gamma), 16 / epsilon)
    while found * epsilon / 16 - math.log(found) < gamma:
        found *= 1 + 1e-4
    return math.ceil(found)


def printed_symmetric(n: int, epsilon: float, delta: float, order: float) -> float:
    """Leading terms of Theorem 4.2.1's proof; infinite with too few users."""
    left = n - coarse_users(epsilon, delta)
    if left <= 0:
        return math.inf
    unit = float((left * epsilon) ** (1 / order))
    noise = 8 * ((_SCALE + unit) / (left * epsilon)) ** 2
    return math.sqrt(1 / left + noise + float(unit ** (2 - 2 * order)))


@dataclass(frozen=True, eq=False)
class Case:
    """One estimator with a moment of size 1, and the distribution that it is simulated on."""

    asked: Asked
    part: Part
    distribution: Distribution
    bias: float = 0.0

    @property
    def order(self) -> float:
        """Of the moment."""
        return self.asked.moments[0].order

    @property
    def certified(self) -> float:
        """Our certificate."""
        return self.part.rmse_bound

    @cached_property
    def worst(self) -> float | None:
        """The largest exact error on two points; not of the symmetric mean."""
        part = self.part
        return worst(part)[1].rmse() if part.method != SYMMETRIC else None

    @cached_property
    def bound(self) -> Trilemma:
        """No private estimator with this bias has a smaller error over all distributions."""
        asked = self.asked
        clipped = self.part.method == CLIPPED
        delta = 0 if clipped else asked.delta
        return trilemma(asked.n, asked.epsilon, delta, self.bias, (self.order, 1.0))

    @property
    def printed(self) -> float:
        """The paper's certificate; of the symmetric mean, its leading terms."""
        n = self.asked.n
        epsilon = self.asked.epsilon
        delta = self.asked.delta
        return {
            CLIPPED: lambda: printed_clipped(n, epsilon, self.order, self.bias),
            SAMPLED: lambda: self.certified,
            COMBINED: lambda: printed_combined(n, epsilon, delta, self.order),
            SYMMETRIC: lambda: printed_symmetric(n, epsilon, delta, self.order),
        }[self.part.method]()

    @property
    def printed_bound(self) -> float:
        """The lower bound as printed: the largest of the paper's theorems and proposition."""
        return max(term.rmse for term in self.bound.terms if term.source.endswith("as printed"))

    @property
    def shows(self) -> bool:
        """Whether hardly any value of the distribution is ever published."""
        part = self.part
        points = self.distribution
        if isinstance(part, Combined) and not isinstance(points, Drawn):
            return part.margin > max(points.values)
        return not isinstance(part, Sampled)


def cases(order: float, n: int, budgets: Sequence[float]) -> list[Case]:
    """All estimators: the clipped mean with every budget, and the three unbiased ones."""
    moments = (Moment(order, 1.0),)
    asked = Asked(n, moments, 1.0, 1e-6)
    coin = mirrored(moments, 1.0)
    # Of variance 1 as well, as far out as the moment allows.
    far = mirrored(moments, _OUT) if order == _ORDERS[0] else coin
    parts = [(asked.clipped(bias), bias) for bias in budgets]
    return [
        *(Case(asked, part, worst(part)[0], bias) for part, bias in parts),
        Case(asked, asked.sampled(), coin),
        Case(asked, asked.combined(), coin),
        Case(asked, asked.symmetric(), far),
    ]


@study(
    "004-trade-off",
    "Bias against error, certificates and lower bounds",
    "theorems 1.2.1, 1.2.2 and 2.1.1, section 3",
)
def trade_off(effort: Effort) -> Study:
    """Epsilon 1, delta 1e-6; so few values are ever sampled that a simulation would show none."""
    step, budgets, orders = (
        (1, _BUDGETS, _ORDERS) if effort.full else (2, _FEW_BUDGETS, _ORDERS[1:])
    )
    every = [case for order in orders for n in _USERS[::step] for case in cases(order, n, budgets)]
    shown = [case for case in every if case.shows]
    jobs = [Job(case.part, case.distribution, 1.0, _runs(case, effort)) for case in shown]
    found = dict(zip(map(id, shown), simulate(jobs, effort), strict=True))
    pairs = [(case, found.get(id(case))) for case in every]
    rows: list[Row] = [
        {
            "order": case.order,
            "users": case.asked.n,
            "estimator": WORDS[case.part.method],
            "bias_budget": case.bias,
            "certificate": short(case.certified),
            "worst_two_points": "" if case.worst is None else short(case.worst),
            "simulated": "" if got is None else short(got.rmse),
            "simulated_error": "" if got is None else short(got.rmse_error),
            "simulated_distribution": "" if got is None else case.distribution.name,
            "printed_certificate": short(case.printed),
            "bound": short(case.bound.rmse),
            "printed_bound": short(case.printed_bound),
        }
        for case, got in pairs
    ]
    findings = []
    for order, (claim, one, other) in product(orders, _RATIOS):
        ratio = np.divide(
            *(column(rows, x, estimator=WORDS[CLIPPED], order=order) for x in (one, other))
        )
        claim = f"clipped mean, order {order:g}: {claim}"
        findings.append(spans(claim, ratio, "at least 1", ratio >= 1))
    level = [
        f"{row['estimator']} {float(row['certificate']) * _USERS[-1] ** 0.5:.3g}" for row in rows
        if not row["bias_budget"] and (row["order"], row["users"]) == (4.0, _USERS[-1])
    ]  # fmt: skip
    kept = [row for row in rows if row["simulated"] != ""]
    error, spread, certificate = (
        column(kept, name) for name in ("simulated", "simulated_error", "certificate")
    )
    findings += [
        Finding(f"certificates of unbiased means in units of 1/sqrt(n), order 4, {_USERS[-1]:,} "
                "users", "-", ", ".join(level)),
        Finding("largest simulated error over the certificate, within 4 standard errors of 1",
                "at most 1", f"{(error / certificate).max():.3f}",
                bool((error - 4 * spread <= certificate).all())),
    ]  # fmt: skip
    return Study(rows, [_lines(rows)], findings)


def _runs(case: Case, effort: Effort) -> int:
    runs = amount(effort, case.asked.n)
    return max(FEWEST, runs // _FEWER) if case.part.method == SYMMETRIC else runs


def _lines(rows: Sequence[Row]) -> Chart:
    """Certificates and bounds against the bias budget, with what was simulated."""
    names = {"clipped: as printed": "printed_certificate", "lower bound": "bound",
             "lower bound as printed": "printed_bound"}  # fmt: skip
    shown: list[Row] = []
    for row in rows:
        panel = f"order {row['order']:g}, {row['users']:,} users"
        at: Row = {"bias": row["bias_budget"] or _BUDGETS[0], "panel": panel}
        bar = row["simulated_error"] and 2 * float(row["simulated_error"])
        own: Row = {"line": f"{row['estimator']}: certificate", "rmse": row["certificate"],
                    "simulated": row["simulated"], "bar": bar}  # fmt: skip
        shown += [{**at, **own}] if row["estimator"] != WORDS[SAMPLED] else []
        if row["estimator"] == WORDS[CLIPPED]:
            shown += [{**at, "line": line, "rmse": row[name]} for line, name in names.items()]
    return Chart(shown, "bias", "rmse", "line", "panel", ("bias budget", "RMSE"), "xy",
                 marks="simulated", error="bar")  # fmt: skip


def place(name: str, n: int, delta: float, bias: float) -> Row:
    """A setting, and who has the smallest error there, at epsilon 0.01 and order 4.

    The clipped mean takes the best of some budgets up to the bias.
    """
    moment = Moment(4.0, 1.0)
    asked = Asked(n, (moment,), _SMALL, delta)
    problem = (n, _SMALL, delta, bias, moment)
    found = regime(*problem)
    parts: dict[str, Part] = {COMBINED: asked.combined(), SAMPLED: asked.sampled()}
    if bias > 0:
        budgets = [bias * 10.0 ** (-k / 4) for k in range(_GRID)]
        budgets += [min(found.clip_bias, bias)] if found.clip_bias > 0 else []
        every = [asked.clipped(each) for each in budgets]
        parts[CLIPPED] = min(every, key=lambda each: each.rmse_bound)
    ours = {name: parts[name].rmse_bound if name in parts else math.inf for name in _METHODS}
    best, theory = (min(each, key=lambda key: each[key]) for each in (ours, found.errors))
    return {
        "map": name,
        "users": n,
        "delta": delta,
        "bias": bias,
        "best": WORDS[best],
        "best_by_theory": WORDS[theory],
        **{f"{WORDS[name]}_certificate": short(ours[name]) for name in _METHODS},
        **{f"{WORDS[name]}_by_theory": short(found.errors[name]) for name in _METHODS},
        "worst_two_points": short(worst(parts[best])[1].rmse()),
        "bound": short(trilemma(*problem).rmse),
    }


@study("004-regimes", "Which estimator has the smallest error: three regimes", "theorem 1.2.2")
def regimes(effort: Effort) -> Study:
    """Errors on two points are exact; nothing is simulated."""
    step = 1 if effort.full else 2
    users = [10**k for k in range(2, 7)][::step]
    deltas, biases = ([10.0**k for k in range(low, high)] for low, high in ((-8, 0), (-6, 0)))
    wanted = [(BY_DELTA, n, delta, _FIXED) for delta in deltas[::step] for n in users]
    wanted += [(BY_BIAS, n, _FIXED, bias) for bias in [0.0, *biases][::step] for n in users]
    rows = [place(*each) for each in effort.progress(wanted, len(wanted))]
    ours, theory = (
        np.min([column(rows, f"{WORDS[name]}_{kind}") for name in _METHODS], axis=0)
        for kind in ("certificate", "by_theory")
    )
    over = ours / column(rows, "bound")
    reached = column(rows, "worst_two_points") / ours
    clipped = np.array([row["best"] == WORDS[CLIPPED] for row in rows])
    counts = {WORDS[each]: sum(row["best"] == WORDS[each] for row in rows) for each in _METHODS}
    same = sum(row["best"] == row["best_by_theory"] for row in rows)
    findings = [
        Finding("settings in which an estimator certifies the least error", "each in some",
                ", ".join(f"{word} {each}" for word, each in counts.items()),
                min(counts.values()) > 0),
        Finding("settings in which the paper's formulas name the same one", "all",
                f"{same} of {len(rows)}", same == len(rows)),
        spans("certificate of the theory over the planned estimator's", theory / ours),
        spans("least certificate over the lower bound, of the clipped mean", over[clipped]),
        spans("least certificate over the lower bound, of others: up to sqrt(n)", over[~clipped]),
        spans("error on two points over the certificate", reached, "at most 1", reached <= 1),
    ]  # fmt: skip
    shown: list[Row] = [
        {**row, "panel": f"{row['map']}; figures: error over lower bound", "over": f"{each:.2g}",
         "level": math.log10(float(row["delta" if row["map"] == BY_DELTA else "bias"]) or 1e-7)}
        for row, each in zip(rows, over, strict=True)
    ]  # fmt: skip
    labels = ("users", "log10 of delta, or of the bias (lowest: none)")
    chart = Chart(shown, "users", "level", "best", "panel", labels, "x", text="over")
    return Study(rows, [chart], findings)


Curve: TypeAlias = tuple[str, str, Part, Distribution, Exact | None]


def _asked(data: str) -> Asked:
    return Asked(4000, _OF_DATA[data], 1.0, 1e-5)


def curves(data: str) -> Iterator[Curve]:
    """Estimators, each on its own worst two points, or all on Gaussian values; what is exact."""
    asked = _asked(data)
    adverse = data == _WORST
    parts: dict[str, Part] = {
        f"clipped, bias {each:g}": asked.clipped(each) for each in (0.1, 0.03, 0.01, 0.001)
    }
    for name, part in {**parts, "combined": asked.combined()}.items():
        on = worst(part, _RELEASES[-1]) if adverse else (NORMAL, exact(part, NORMAL, 1.0))
        yield data, name, part, *on
    last = mirrored(asked.moments, 1.0) if adverse else NORMAL
    yield data, "symmetric", asked.symmetric(), last, None


@study("004-releases", "The error of averages of many releases", "chapter 1: why bias matters")
def releases(effort: Effort) -> Study:
    """Adversarial values are two points that are worst after all releases (+-1: symmetric mean).

    Errors are exact but for the symmetric mean's, which has no bias: its variance is simulated.
    """
    every = [curve for data in _OF_DATA for curve in curves(data)]
    runs = max(FEWEST, effort.repetitions // 2)
    off = 0.0
    jobs = [Job(part, distribution, 1.0, runs) for _, _, part, distribution, _ in every]
    errors: dict[str, dict[str, Exact]] = {data: {} for data in _OF_DATA}
    rows: list[Row] = []
    for (data, name, _, _, known), got in zip(every, simulate(jobs, effort), strict=True):
        error = errors[data][name] = known or Exact(0.0, got.rmse**2)
        for each in _RELEASES:
            groups = len(got.error) // each
            seen = groups >= _GROUPS or each == 1
            average = got.average(each) if seen else 0.0
            if groups >= _MANY:
                off = max(off, abs(average / error.rmse(each) - 1))
            rows.append(
                {"data": data, "estimator": name, "releases": each,
                 "rmse": short(error.rmse(each)), "simulated": short(average) if seen else "",
                 "averages": groups if seen else ""}
            )  # fmt: skip
    shown: list[Row] = [{**row, "panel": f"{row['data']} values"} for row in rows]
    shown += [
        {"panel": f"{data} values", "estimator": "clipped, budget for so many: certificate",
         "releases": each, "rmse": chosen(_asked(data), each)}
        for data in _OF_DATA for each in _RELEASES
    ]  # fmt: skip
    chart = Chart(shown, "releases", "rmse", "estimator", "panel",
                  ("releases", "RMSE of the average"), "xy", marks="simulated")  # fmt: skip
    last = Finding("simulated averages off the exact errors, where there are many", "-",
                   f"at most {off:.1%}")  # fmt: skip
    findings = [each for pair in errors.items() for each in _release_findings(*pair)]
    return Study(rows, [chart], [*findings, last])


def chosen(asked: Asked, releases: int) -> float:
    """Certificate of the average of clipped means whose budget is chosen for their number."""
    parts = [asked.clipped(float(each)) for each in np.geomspace(1e-9, 0.1, 33)]
    return min(math.sqrt(each.bias_bound**2 + each.standard_error**2 / releases) for each in parts)


def _release_findings(data: str, errors: dict[str, Exact]) -> list[Finding]:
    last = _RELEASES[-1]
    asked = _asked(data)
    combined = errors["combined"]
    clipped = {name: each for name, each in errors.items() if name.startswith("clipped")}
    ahead = "; ".join(f"{name}: {_crossing(each, combined)}" for name, each in clipped.items())
    over = [each.rmse(last) / combined.rmse(last) for each in clipped.values()]
    one = "; ".join(f"{name} {each.rmse() * asked.n**0.5:.3g}" for name, each in errors.items())
    share = chosen(asked, last) / asked.combined().rmse_bound * last**0.5
    return [
        Finding(f"{data} values: errors of one release in units of 1/sqrt(n)", "-", one),
        Finding(f"{data} values: averages of the combined mean err less from so many releases",
                "-", ahead),
        Finding(f"{data} values: clipped over combined mean after {last:,} releases",
                "above 1: bias stays", listed(over), min(over) > 1),
        Finding(f"{data} values: the same of certificates, with a budget for {last:,}", "-",
                f"{share:.2f}"),
    ]  # fmt: skip


def _crossing(biased: Exact, other: Exact) -> str:
    """From how many releases on the other one has a smaller error."""
    gain = other.variance - biased.variance
    square = biased.bias**2
    return "no number of" if gain > square * _MOST else f"{max(1, math.ceil(gain / square)):,}"


def parts(moments: Moments, centre: float) -> list[Part]:
    """All four estimators for values of a centre, in an interval of width 1 around it."""
    asked, often = (
        Asked(1000, moments, 1.0, delta, (centre - 0.6, centre + 0.4)) for delta in (1e-4, _OFTEN)
    )
    return [asked.clipped(_BIAS), often.sampled(), often.combined(), asked.symmetric()]


@study("004-distributions", "Bias and error on five distributions", "sections 3 and 4")
def distributions(effort: Effort) -> Study:
    """The sampled and the combined mean have delta 0.01, so that some users are sampled."""
    names, centres = (list(KNOWN), _CENTRES) if effort.full else ([*KNOWN][::2], _CENTRES[:1])
    runs = amount(effort, 1000)
    jobs = [
        Job(part, Drawn(name), at, max(FEWEST, runs // (4 if part.method == SYMMETRIC else 2)))
        for name in names
        for at in centres
        for part in parts(KNOWN[name], at)
    ]
    rows: list[Row] = []
    shown: list[Row] = []
    for (part, distribution, centre, _), found in zip(jobs, simulate(jobs, effort), strict=True):
        skewed = part.method == SYMMETRIC and distribution.name == SKEWED
        rows.append(
            {
                "distribution": distribution.name,
                "centre": centre,
                "estimator": WORDS[part.method],
                "delta": short(float(part.loss.delta), 3),
                "bias": short(found.bias, 4),
                "bias_error": short(found.bias_error, 4),
                "bias_bound": part.bias_bound,
                "rmse": short(found.rmse),
                "rmse_error": short(found.rmse_error, 4),
                "certificate": short(part.rmse_bound),
                "promised": int(not skewed),
                "failed": found.failed,
                "runs": len(found.error),
            }
        )
        off = found.bias / found.bias_error
        over = found.rmse / part.rmse_bound
        shown.append({**rows[-1], "off": off, "over": over})
    charts = [
        Chart(shown, "distribution", name, "estimator", labels=("distribution", label))
        for name, label in (
            ("off", "simulated bias, in its standard errors"),
            ("over", "simulated RMSE over the certificate"),
        )
    ]  # fmt: skip
    broken = max((row for row in shown if not row["promised"]), key=lambda x: abs(float(x["off"])))
    clipped = np.abs(column(rows, "bias", estimator=WORDS[CLIPPED])).max()
    findings = [
        Finding(f"largest simulated bias of the {word} mean, in standard errors",
                f"0 (here: within {_FAR:g})", f"{off:.1f}", bool(off <= _FAR))
        for word in (WORDS[SAMPLED], WORDS[COMBINED], WORDS[SYMMETRIC])
        for off in [np.abs(column(shown, "off", estimator=word, promised=1)).max()]
    ]  # fmt: skip
    findings += [
        Finding(f"largest bias of the clipped mean with a budget of {_BIAS:g}", "-",
                f"{clipped:.2g}"),
        Finding("bias of the symmetric mean on lognormal values, in standard errors",
                "not promised to be 0", f"{broken['bias']:.2g}, {abs(float(broken['off'])):.0f}"),
        Finding("largest error over the certificate, where it holds", "-",
                f"{column(shown, 'over', promised=1).max():.3f}"),
    ]  # fmt: skip
    return Study(rows, charts, findings)
