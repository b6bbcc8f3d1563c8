"""What shoal answers to a golden request, as plain data: all that knows shoal's names is in here.

A redesign changes this module and nothing else of the net. Numbers are told by what they mean:
noise scales as parts of a statistic's range, losses as exact fractions, sums in whole ticks.
"""

import hashlib
import json
import warnings
from fractions import Fraction
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from shoal import trials, unbiased
from shoal.cells.estimates.numbers import Estimates
from shoal.cells.mechanisms.private_sums import Interval
from shoal.cells.shown.arrow_tables import make_table, rows_of
from shoal.distributions import expected, shown
from shoal.errors import ShoalError
from shoal.means.request import MeanDrawn
from shoal.trials.histogram import HistogramDrawn
from shoal.trials.questions.numbers import Choice, QuestionsDrawn
from shoal.trials.questions.plan import QuestionsPlan
from shoal.trials.unit_table import PriorPlan, TableDrawn

Plain = dict[str, Any]


def answer(kind: str, request: Plain) -> Plain:
    """The result of a request of some kind, or that it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _ANSWERS[kind](request)
        except ShoalError:
            return {"refused": True}
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {error}"}


def _short(values: Any) -> list[float | None]:
    """Numbers of twelve places; what is not finite is None."""
    every = np.asarray(values, dtype=float).ravel().tolist()
    return [float(f"{x:.12g}") if np.isfinite(x) else None for x in every]


def _plain(values: Any) -> list[float]:
    """Numbers with all their places."""
    return [float(x) for x in np.asarray(values).ravel()]


def _columns(table: pa.Table, **names: str) -> Plain:
    """Columns of a table by other names; texts as they are."""
    return {
        ours: table[theirs].to_pylist()
        if pa.types.is_string(table[theirs].type)
        else _short(table[theirs].to_numpy())
        for ours, theirs in names.items()
    }


def _digest(values: Any) -> str:
    """A few characters that stand for exact values."""
    return hashlib.sha256(json.dumps(values, default=str).encode()).hexdigest()[:16]


def _places(cell: np.ndarray, keys: int) -> Plain:
    """One key of text, or a text and a number."""
    if keys == 1:
        return {"place": [f"p{n:02}" for n in cell]}
    return {"place": [f"q{n // 3:02}" for n in cell], "hour": (cell % 3).tolist()}


def _cells_plan(request: Plain, step: int = 1) -> shoal.Plan:
    """A plan from rows in their order, or from last to first."""
    user, cell, count = (np.array(request[name])[::step] for name in ("user", "cell", "count"))
    places, options = _places(cell, request["keys"]), dict(request["plan"])
    counts = shoal.Counts.from_counts([f"u{n:05}" for n in user], places, count)
    if "weights" in options:
        heavy = options["weights"].items()
        options["weights"] = {counts.labels[int(at)]: each for at, each in heavy}
    return shoal.plan(counts, bounds=tuple(options.pop("bounds")), **options)


def plan_cells(request: Plain) -> Plain:
    """The decision of a plan of cells: status, scales, whole numbers, exact losses, errors."""
    found = _decision(_cells_plan(request))
    if request["reverse"]:
        found["rows_matter"] = _decision(_cells_plan(request, -1)) != found
    return found


def plan_distributions(request: Plain) -> Plain:
    """Units, rounds and bins of a plan of the bundled flights, and the decision of each mean."""
    place = files("shoal") / "datasets/flights_2013.parquet"
    known: Any = {"missing": "public", "counts": "public", **request["records"]}
    plan: Any = shoal.plan(shoal.Records(place, **known), **request["plan"])
    units = plan.units
    return {
        "statistics": [*plan.request.statistics],
        "loss": {"exact": str(plan.exact_loss.epsilon)},
        "thresholds": plan.request.thresholds,
        "vote": [units.vote, units.rounds, units.fullest, units.bins],
        "scale": _short(units.noise),
        "moved": _short(units.moved),
        "typical": [_short(shown.typical(plan, each)) for each in plan.request.kinds],
        "reliable": [*expected.forecast(units).values()] if expected.has_ranks(plan) else [],
        "parts": {name: _decision(each) for name, each in plan.planned.items()},
    }


def plan_presence(request: Plain) -> Plain:
    """A plan of private counts of the bundled flights, and one with its release as the guide."""
    place = files("shoal") / "datasets/flights_2013.parquet"
    records: Any = shoal.Records(place, **request["records"])
    first: Any = shoal.plan(records, **request["plan"])
    before = first.release(records, noise=shoal.Simulated(1))
    guided: Any = shoal.plan(records, like=before, **request["guided"])
    return {"first": _presence(first), "guided": _presence(guided)}


def _presence(plan: Any) -> Plain:
    found, guide = plan.selection, plan.request.guide
    levels = {} if found is None else found._asdict()
    said = {} if guide is None else guide.model_dump()
    return {
        "loss": float(plan.exact_loss.epsilon),
        "delta": str(plan.exact_loss.delta),
        "scale": {
            name: {block: each.scale(block) for block in each.blocks}
            for name, each in plan.rounds.items()
        },
        "cells": _digest(plan.request.keys.to_pydict()),
        # In noise scales.
        "levels": {name: each / 2.0 ** levels["bits"] for name, each in levels.items()},
        "guide": {
            **{name: said.get(name) for name in ("users", "caps", "range")},
            "priority": _short(said.get("priority", [])),
        },
    }


def _decision(plan: Any) -> Plain:
    chosen, weights, names = plan.decision, plan.weights, plan.request.statistics
    cell, whole = weights.cell, weights.total[weights.cell]
    share, pairs = weights.weight / whole, zip(weights.weight.tolist(), whole.tolist(), strict=True)

    def rows(numbers: Any, form: Any = _short) -> Plain:
        return dict(zip(names, map(form, numbers.reshape(len(names), -1)), strict=True))

    return {
        "method": plan.method,
        "settings": dict(chosen.method.settings),
        "noise": "gaussian" if plan.gaussian else "laplace",
        "joint": chosen.joint,
        "status": ["released" if each == "planned" else each for each in plan.status],
        "lattice_bits": chosen.bits,
        # Of each released cell: a part of the range, or of the range that is selected.
        "scale": rows(chosen.scale, _plain),
        "selection_scale": _plain(chosen.selection_scale),
        "whole": {name: each.tolist() for name, each in sorted(plan.parameters.items())},
        "weight": {
            "kept": _short(np.bincount(cell, share, weights.n_cells)),
            "squares": _short(np.bincount(cell, share**2, weights.n_cells)),
            "of_each": _digest([str(Fraction(*each)) for each in pairs]),
            "averaged_together": _digest(_arrays(weights.groups)),
        },
        "loss": _losses(plan),
        "epsilon": plan.epsilon,
        "delta": str(plan.exact_loss.delta),
        "bias": rows(plan.bias_bound),
        "worst_case": rows(plan.worst_case_error),
        "lower_bound": rows(plan.lower_bound),
        "gap": None if plan.gap is None else float(plan.gap),
    }


def _losses(plan: shoal.Plan) -> Plain:
    """What each user loses, exactly, from the steps that a user moves numbers by.

    With Laplace noise epsilon in parts of 2^bits; with Gaussian noise rho of the numbers in parts
    of 2^(2 bits + 1), and the epsilon of a selection for all cells beside it.
    """
    bits, who = plan.decision.bits, plan.weights.user.tolist()
    if not plan.gaussian:
        lost = [Fraction(each) * 2**bits for each in plan.user_losses.tolist()]
        assert all(each.denominator == 1 for each in lost)
        return {"bits": bits, "users": [int(each) for each in lost], "selection": "0"}
    users = [0] * plan.counts.n_users
    balls = [plan.parameters[name] for name in ("ball", "first_ball") if name in plan.parameters]
    for user in who if balls else ():
        users[user] = sum((2 * int(ball[0])) ** 2 for ball in balls)
    for steps in () if balls else plan.numbers.member_steps(plan.decision.scale, bits):
        for user, each in zip(who, steps.tolist(), strict=True):
            users[user] += each**2
    return {"bits": 2 * bits + 1, "users": users, "selection": str(plan.cost.selecting)}


def _arrays(groups: Any) -> list[Any]:
    """Which records are averaged together: of each array its members and their records."""
    found: dict[int, list[list[int]]] = {}
    columns = () if groups is None else (groups.group, groups.member, groups.records)
    for group, *piece in zip(*(each.tolist() for each in columns), strict=True):
        found.setdefault(group, []).append(piece)
    return sorted(sorted(each) for each in found.values())


def _read_cells(request: Plain, drawn: Plain, confidence: float) -> Plain:
    ends = drawn["ends"]
    chosen = ends and Interval(*(np.array(each, dtype=np.int64) for each in ends))
    plan = _cells_plan(request)
    numbers = Estimates.of(plan, drawn["steps"], chosen, drawn.get("excess"))
    table = make_table(numbers, rows_of(plan), confidence, all=True)
    names = ("statistic", "status", "value", "low", "high", "noise_scale")
    found = _columns(table, plain="noisy_value", **dict(zip(names, names, strict=True)))
    return {**found, "status": [_STATUS.get(each, each) for each in found["status"]]}


# What the golden files call the status of a cell in a release.
_STATUS = {
    "reliable": "released",
    "few users dominate": "heavy users",
    "outlying users": "far users",
}


def _plan(request: Plain) -> trials.Plan:
    """The plan of a table, a histogram, or questions."""
    covariates = {"age": request["age"], "sex": request["sex"]}
    arm, cluster = np.array(request["arm"]), np.array(request["cluster"])
    domain, epsilon = trials.Domain(tuple(request["levels"])), request["epsilon"]
    control = arm.min()
    if "questions" in request:
        asked = trials.Experiment(arm, cluster, covariates, control=control).ask()
        for kind, options in request["questions"]:
            asked = getattr(asked, kind)(**options)
        return asked.plan(domain, epsilon, sd=request.get("spread"))
    unit = [f"n{at:04}" for at in range(len(arm))] if request["named"] else None
    study = trials.Experiment(arm, cluster, unit=unit, control=control)
    options = dict(request["options"])
    name = request["mechanism"]
    if name == "noisy_histogram":
        return study.histogram(domain, epsilon)
    mechanism: Any = name
    if name in ("cluster_dp", "cluster_free"):
        noise = options.pop("histogram_scale")
        pooled = name == "cluster_free"
        mechanism = trials.ClusterPrior(options.pop("floor"), noise, pooled)
    return study.table(domain, epsilon, mechanism=mechanism, **options)


def plan_trial(request: Plain) -> Plain:
    """Exact loss, whole numbers and predictions of questions, of a forecast, or of a mechanism."""
    if "forecast" in request:
        return _forecast(request)
    plan: Any = _plan(request)
    if "questions" in request:
        return _questions(plan)
    found = {"loss": {"exact": str(plan.exact_epsilon)}, "delta": str(plan.loss.delta)}
    own = plan.chosen
    if request["mechanism"] == "noisy_histogram":
        parts = plan.mean_variance
        whole = {"weight": own.counts.per_unit, "lattice_bits": own.counts.bits}
        noise = parts[:, 1:] + parts[:, :1]
        return {**found, "whole": whole, "scale": {"noise_variance": _short(noise)}}
    whole = {"levels": plan.chosen.kept.tolist()}
    if request["mechanism"] == "best_table":
        return {**found, "whole": whole, "variance": [plan.variance], "bound": plan.bound}
    if request["mechanism"] == "uniform_prior":
        return {**found, "whole": whole, "variance": _short(plan.response_table.variances)}
    scale = {name: getattr(own, name) / 2.0**31 for name in ("floor", "replaced")}
    return {**found, "whole": {**whole, "weight": own.counts.per_unit}, "scale": scale}


def _questions(plan: Any) -> Plain:
    told = plan.predictions()
    names = {"question": "question", "standard_error": "standard_error", "half_width": "half_width"}
    rows = np.concatenate([each.rows for each in plan.blocks])
    return {
        "loss": {"exact": str(plan.exact_epsilon)},
        "whole": {"second_moments_by": list(plan.chosen.by)},
        "scale": {
            "noise": _plain(np.sqrt(plan.numbers.noise_parts(rows, plan.domain.width)[0])),
            "noise_of_second_moments": plan.numbers.moment_value(plan.domain.width) * 2.0**32,
        },
        **_columns(told, **names, without_noise="plain_half_width"),
        "ratio_to_bound": plan.lower_bound_ratio,
    }


def _forecast(request: Plain) -> Plain:
    pairs = np.array([request["cluster"], request["arm"]])
    sizes = np.zeros(pairs.max(axis=1) + 1, dtype=np.int64)
    np.add.at(sizes, tuple(pairs), 1)
    domain, effect = trials.Domain(tuple(request["levels"])), request["effect"]
    found = trials.forecast(sizes, domain, request["epsilon"], effect=effect)
    named = ("no_privacy", "uniform_prior", "best_table", "noisy_histogram", "questions")
    names = {each: found[each.removeprefix("noisy_")] for each in named}
    rows = {name: [*row.standard_error, *row.cluster_error] for name, row in names.items()}
    return {
        "sizes": sizes.tolist(),
        "standard_error": {name: _short(each) for name, each in rows.items()},
        "detectable": {name: row.detectable for name, row in names.items()},
        "power": {name: row.power for name, row in names.items()},
    }


class _OfPrior(PriorPlan):
    """With priors as they were drawn, in parts of 2^-32."""

    given: Any

    def priors(self, noisy: tuple[int, ...]) -> Any:
        return self.given // 2


def _read_trial(request: Plain, drawn: Plain, confidence: float) -> Plain:
    plan: Any = _plan(request)
    if "questions" in request:
        # What was released has the weights it was drawn with: another processor finds others.
        first = np.unique(plan.design.kind_of_unit, return_index=True)[1]
        rows, steps = np.array(drawn["rows"])[:, first] + 2**40, np.array(drawn["steps"])
        facts = {"moment_step": drawn["moment_step"], "by": tuple(drawn["by"])}
        choice = Choice(rows=rows.ravel(), sums=None, steps=steps, **facts)
        parts = {name: tuple(drawn[name]) for name in ("numbers", "moments")}
        own = QuestionsPlan(plan.request, plan.design, choice)
        table = own.read(QuestionsDrawn(**parts), confidence).table()
        return _columns(table, **{name: name for name in table.column_names if "pred" not in name})
    if request["mechanism"] == "noisy_histogram":
        told: Any = HistogramDrawn(steps=tuple(drawn["numbers"]))
    else:
        counts, named = np.array(drawn["counts"]).ravel(), drawn["responses"]
        told = TableDrawn(counts=counts, responses=None if named is None else np.array(named))
    if isinstance(plan, PriorPlan):
        plan = _OfPrior(plan.request, plan.design, plan.chosen)
        given = np.array(drawn["prior"])
        object.__setattr__(plan, "given", given.reshape(-1, given.shape[-1]))
    table = plan.table(told, 0.95)
    value = table["share" if "share" in table.column_names else "debiased"].to_numpy()
    effects = [_effect(each) for each in plan.read(told, confidence)]
    return {"debiased": _short(np.unique(value)), "sum": float(value.sum()), "effects": effects}


def _effect(effect: trials.Effect) -> Plain:
    found: Plain = {"arm": str(effect.arm), "value": effect.value}
    for name in ("finite_population", "super_population"):
        told = getattr(effect, name)
        found[name] = _short([told.standard_error, *told.interval, told.degrees_of_freedom])
    return {**found, "clusters": _short([effect.clusters.value, effect.clusters.standard_error])}


def _mean_plan(request: Plain) -> Any:
    # Of the first golden files: users are always split, and certificates hold for every mean.
    gone = "method", "counts", "tolerance", "reuse", "farthest"
    options = {k: v for k, v in request.items() if k not in gone}
    options["moment"] = [unbiased.Moment(*each) for each in request["moment"]]
    if "interval" in options:
        options["interval"] = tuple(options["interval"])
    return unbiased.plan(request["method"], request["counts"], **options)


def plan_mean(request: Plain) -> Plain:
    """Exact loss, whole numbers and certificates of an unbiased mean."""
    plan = _mean_plan(request)
    return {
        "loss": {"exact": str(plan.exact_loss.epsilon)},
        "delta": str(plan.exact_loss.delta),
        "whole": _whole_of_mean(plan.choice.model_dump()),
        "scale": {"noise": plan.noise_scale},
        "bias": plan.bias_bound,
        "standard_error": plan.standard_error,
        "root_mean_square": plan.rmse_bound,
        "half_width": plan.half_width,
        "interval_by": plan.interval_by,
    }


def _whole_of_mean(choice: Plain) -> Plain:
    """Whole numbers of a mean, each with the name of its part before its own."""
    squares, step = choice["squares"] or {}, choice.get("last", choice)
    last = step["noise"]
    beside = {f"square_{name}": each for name, each in squares.items()}
    own = {"per_unit": last["per_unit"], "lattice_bits": last["bits"], **beside}
    if "grid" in choice:
        grid = choice["grid"]
        return {"tick_exponent": grid["exponent"], "low": grid["low"], "high": grid["high"], **own}
    middle = choice["middle"] or {"shift": 0, "half": 0, "noise": {"per_unit": 0, "bits": 0}}
    return {
        **{f"coarse_{name}": each for name, each in choice["coarse"].items()},
        **{f"middle_{name}": middle[name] for name in ("shift", "half")},
        **{f"middle_{name}": each for name, each in middle["noise"].items()},
        **{"shift": step["shift"], "half": step["half"]},
        **own,
    }


def _read_mean(request: Plain, drawn: Plain, confidence: float) -> Plain:
    plan, guess = _mean_plan(request), drawn["guess"]
    found = MeanDrawn(drawn["steps"], drawn["squares"], guess and (guess[0], guess[1]))
    interval = plan.interval(found, confidence)
    certified = plan.interval(found, confidence, certified=True)
    assert interval is not None
    assert certified is not None
    return {"value": float(plan.value(found)), "interval": [*interval], "certified": [*certified]}


def read_release(request: Plain) -> Plain:
    """Values and intervals that follow from a plan and the whole numbers that were drawn."""
    read, asked, drawn = _READERS[request["kind"]], request["asked"], request["drawn"]
    return {f"{each:.0%}": read(asked, drawn, each) for each in (0.95, 0.8)}


_ANSWERS = {
    "cells": plan_cells,
    "distributions": plan_distributions,
    "presence": plan_presence,
    "trials": plan_trial,
    "means": plan_mean,
    "releases": read_release,
}
_READERS = {"cells": _read_cells, "trials": _read_trial, "means": _read_mean}
