"""Every public callable with sound arguments: what the fuzzer spoils."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import shoal
from shoal import bounds, mean, trials, unbiased

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from tests.evidence.fuzz_kit import Kit

    Arguments = Callable[[Kit], dict[str, Any]]
    Find = Callable[[Kit], Callable[..., Any]]

MODULES: tuple[ModuleType, ...] = (shoal, bounds, mean, trials, unbiased)
# What the library makes and nobody else: their constructors are not for callers.
RESULTS = (
    "Effect",
    "Estimate",
    "Inference",
    "Plan",
    "PrivateAnswers",
    "PrivateTrial",
    "QuestionsPlan",
    "Recommendation",
    "Regime",
    "Release",
    "Setting",
    "Shuffled",
    "ShuffledBound",
    "Term",
    "TrialPlan",
    "Trilemma",
    "UnbiasedEstimate",
    "UnbiasedPlan",
    "VectorEstimate",
    "Ledger",
    "Occupancy",
)
# Arguments that hold values of people: nothing of them may stand in a message.
PRIVATE = ("values", "outcomes", "source", "records")


@dataclass(frozen=True)
class Target:
    """One public callable.

    Attributes:
        name: As it is called.
        find: The callable, from a kit.
        arguments: Sound arguments, from a kit.
        optional: Arguments that have a default, with a sound value of each.
        takes_ledger: Whether a ledger may be given.
    """

    name: str
    find: Callable[[Kit], Callable[..., Any]]
    arguments: Arguments = field(default=lambda _: {})
    optional: Arguments = field(default=lambda _: {})
    takes_ledger: bool = False


def _nothing(_: Kit) -> dict[str, Any]:
    return {}


def _with(arguments: Arguments, more: Mapping[str, Any]) -> Arguments:
    return lambda kit: arguments(kit) | dict(more)


def _named(module: ModuleType, name: str) -> Find:
    return lambda _: getattr(module, name)


def _planned_by(method: str) -> Arguments:
    return lambda kit: {
        "occupancy": kit.occupancy,
        "bounds": (0, 10),
        "epsilon": 4,
        "method": method,
        "settings": {},
    }


def _vectors(kit: Kit) -> dict[str, Any]:
    values = np.column_stack([kit.values, kit.values])
    return {"values": values, "users": kit.users, "bounds": (0, 10), "epsilon": 1}


def _unbiased_plan(kit: Kit) -> dict[str, Any]:
    return {"counts": [1, 2, 3] * 20, "moment": kit.moment}


def _mean_options(_: Kit) -> dict[str, Any]:
    return {"confidence": 0.9, "tick_bits": 16, "noise": None}


def _one_cell(kit: Kit) -> dict[str, Any]:
    return {"values": kit.values, "users": kit.users, "bounds": (0, 10), "epsilon": 1}


def _trial(kit: Kit) -> dict[str, Any]:
    return dict(kit.trial)


def _trial_options(_: Kit) -> dict[str, Any]:
    return {
        "unit": [f"unit {each}" for each in range(120)],
        "control": 0,
        "missing": "refuse",
        "single_arm": "drop",
        "clustering_epsilon": "0.5",
        "name": "first",
        "noise": None,
        "outcome_name": "bought",
        "again": False,
        "privacy_unit": "person",
    }


def _unbiased(kit: Kit) -> dict[str, Any]:
    return {"values": kit.values, "users": kit.users, "moment": kit.moment}


def _unbiased_options(_: Kit) -> dict[str, Any]:
    return {
        "weights": "counts",
        "cap": 3,
        "source": {"a": 1},
        "name": "first",
        "noise": None,
        "confidence": 0.9,
        "values_name": "height",
        "again": False,
        "privacy_unit": "person",
    }


def _plan_options(kit: Kit) -> dict[str, Any]:
    return {
        "statistics": ["mean"],
        "method": "balanced",
        "uninformative": "keep",
        "min_users": 1,
        "min_records": 1,
        "weights": {kit.occupancy.labels[0]: 2.0},
        "settings": {},
        "delta": 0,
        "tick_bits": 20,
        "source": {"a": 1},
    }


def _bound(_: Kit) -> dict[str, Any]:
    return {"n": 100, "epsilon": 1, "delta": "1e-6", "bias": 0.1, "moment": (2, 1.0)}


def _functions() -> Iterator[Target]:
    cell = "timeslot(time,1h)"
    yield Target(
        "shoal.plan",
        lambda _: shoal.plan,
        lambda kit: {"occupancy": kit.occupancy, "bounds": (0, 10), "epsilon": 4},
        _plan_options,
    )
    for method in (
        "optimal",
        "clip_user",
        "user_clipped",
        "levy",
        "quantile",
        "array_averaging",
        "akmv",
    ):
        yield Target(
            f"shoal.plan/{method}",
            lambda _: shoal.plan,
            _planned_by(method),
            lambda _: {"uninformative": "keep", "statistics": ["mean"]},
        )
    yield Target(
        "shoal.compare",
        lambda _: shoal.compare,
        lambda kit: {
            "occupancy": kit.occupancy,
            "bounds": (0, 10),
            "repetitions": 2,
            "methods": ["baseline", "levy"],
        },
        lambda _: {"assumed": shoal.Normal(5, 1), "epsilon": 1, "seed": 0, "progress": iter},
    )
    yield Target(
        "shoal.simulate",
        lambda _: shoal.simulate,
        lambda kit: {
            "occupancy": kit.occupancy,
            "distribution": shoal.Normal(5, 1),
            "bounds": (0, 10),
            "repetitions": 2,
            "methods": [("levy", {"gamma": 0.1})],
        },
        lambda _: {"epsilon": [1, 2], "seed": 0, "tick_bits": 20, "progress": iter},
    )
    yield Target(
        "shoal.picture",
        lambda _: shoal.picture,
        lambda kit: {"subject": kit.occupancy, "path": kit.folder / "p.png"},
    )
    yield Target(
        "shoal.hexagon",
        lambda _: shoal.hexagon,
        lambda _: {"lat": "lat", "lon": "lon", "resolution": 3},
    )
    yield Target(
        "shoal.timeslot", lambda _: shoal.timeslot, lambda _: {"column": "time", "width": "1h"}
    )
    in_zone = {"column": "time", "tz": "America/New_York"}
    yield Target("shoal.hour_of_day", lambda _: shoal.hour_of_day, lambda _: dict(in_zone))
    yield Target("shoal.weekday", lambda _: shoal.weekday, lambda _: dict(in_zone))
    yield Target("shoal.date", lambda _: shoal.date, lambda _: dict(in_zone))
    yield Target("shoal.month", lambda _: shoal.month, lambda _: dict(in_zone))
    yield Target(
        "shoal.bins", lambda _: shoal.bins, lambda _: {"column": "far", "width": 10, "start": 5}
    )
    yield Target("shoal.verify", lambda _: shoal.verify, lambda kit: {"manifest": _manifest(kit)})
    yield Target(
        "Records.occupancy()",
        lambda _: lambda **all_of: shoal.Records(**all_of).occupancy(),
        lambda kit: {
            "source": kit.table,
            "user": "user",
            "value": "value",
            "bounds": (0, 10),
            "cell": ["cell", cell],
        },
        lambda _: {"missing": "public", "tick_bits": 12},
    )
    yield Target(
        "Records.aggregate()",
        lambda _: lambda **all_of: shoal.Records(**all_of).aggregate(),
        lambda kit: {
            "source": kit.table,
            "user": "user",
            "value": "value",
            "bounds": (0, 10),
            "cell": "cell",
        },
        lambda _: {"missing": "public", "tick_bits": 12},
    )
    yield Target(
        "Occupancy.from_counts",
        lambda _: shoal.Occupancy.from_counts,
        lambda _: {"users": ["a", "b", "a"], "cells": [1, 1, 2], "counts": [3, 4, 5]},
    )
    yield from _of_one_cell()
    yield from _of_trials()
    yield from _of_questions()
    yield from _without_bias()
    yield from _of_bounds()


def _manifest(kit: Kit) -> Any:  # noqa: ANN401
    path = kit.folder / "manifest.json"
    if not path.exists():
        kit.release.write_manifest(path)
    return path


def _of_one_cell() -> Iterator[Target]:
    own: dict[str, dict[str, Any]] = {
        "array_averaging": {"cap": "median", "grouping": "best_fit"},
        "opt_array_averaging": {"grouping": "wrap_around"},
        "levy": {"cap": 7, "gamma": 0.3},
        "quantile": {"quantiles": "optimised", "cap": 5},
        "auto": {"objective": "typical"},
    }
    for name in (
        "baseline",
        "array_averaging",
        "opt_array_averaging",
        "worst_case_optimal",
        "levy",
        "quantile",
        "akmv",
        "adaptive",
        "user_clipped",
        "auto",
    ):
        more = own.get(name, {})
        yield Target(
            f"mean.{name}",
            _named(mean, name),
            _one_cell,
            _with(_mean_options, more),
        )
    for domain in ("ball", "box"):
        yield Target(
            f"mean.vector/{domain}",
            lambda _: mean.vector,
            _with(_vectors, {"domain": domain}),
            _mean_options,
        )


def _of_trials() -> Iterator[Target]:
    makers: dict[str, Callable[[], Any]] = {
        "ClusterDP": lambda: trials.ClusterDP(2),
        "ClusterFree": lambda: trials.ClusterFree(2),
        "ClusterDP/delta": lambda: trials.ClusterDP(2, "0.01", floor=0.5, histogram_scale=2.0),
        "UniformPrior": lambda: trials.UniformPrior(2),
        "BestTable": lambda: trials.BestTable(2),
        "NoisyHistogram": lambda: trials.NoisyHistogram(2),
        "NoisyHorvitzThompson": lambda: trials.NoisyHorvitzThompson(2),
    }
    for name, make in makers.items():
        yield Target(
            f"{name}.privatize",
            _privatize(make),
            _trial,
            _trial_options,
            takes_ledger=True,
        )
    priors = {"floor": 0.5, "histogram_scale": 2.0, "levels": 2}
    kinds: dict[str, dict[str, Any]] = {
        "ClusterDP": {"delta": 0, **priors},
        "ClusterFree": {"delta": 0, **priors},
        "UniformPrior": {"delta": 0, "levels": "all"},
        "BestTable": {"levels": "all", "expected": trials.Expected(0.4, 0.5)},
        "NoisyHistogram": {},
        "NoisyHorvitzThompson": {"spread_share": 0.3},
    }
    for name, options in kinds.items():
        known = {"expected": trials.Expected(0.4, 0.5)} if "delta" in options else {}
        yield Target(
            f"trials.{name}",
            _named(trials, name),
            lambda _: {"epsilon": 1},
            _with(_nothing, options | known),
        )
        # Whatever a constructor lets through must not fail later either.
        yield Target(
            f"trials.{name}()",
            _made_and_used(name),
            lambda _: {"epsilon": 4},
            _with(_nothing, options | known),
        )
    yield Target(
        "trials.plan",
        lambda _: trials.plan,
        lambda _: {"sizes": 120, "space": trials.Space.binary(), "epsilon": 1},
        lambda _: {
            "delta": "1e-6",
            "clusters": 3,
            "shares": [0.5, 0.5],
            "effect": 0.1,
            "power": 0.8,
            "expected": trials.Expected.binary(0.3),
            "confidence": 0.9,
        },
    )
    yield Target(
        "trials.plan/table",
        lambda _: trials.plan,
        lambda _: {"sizes": [[10, 12], [8, 9]], "space": trials.Space.counts(0, 5), "epsilon": 1},
        lambda _: {"delta": "1e-6", "expected": trials.Expected(2, 1, 0.1), "effect": -1},
    )
    yield Target(
        "trials.Expected",
        lambda _: trials.Expected,
        lambda _: {"mean": 0.5, "sd": 0.1},
        lambda _: {"between": 0.1, "shape": "normal"},
    )
    yield Target(
        "Expected.binary",
        lambda _: trials.Expected.binary,
        lambda _: {"rate": 0.5},
        lambda _: {"between": 0.1},
    )
    yield Target(
        "Expected.kinds",
        lambda _: trials.Expected(0.5, 0.1, 0.2).kinds,
        lambda _: {"space": trials.Space.counts(0, 3)},
    )
    yield Target(
        "trials.Space",
        lambda _: trials.Space,
        lambda _: {"levels": (0, 1, 2)},
        lambda _: {"rounding": "random", "labels": ("a", "b", "c")},
    )
    yield Target("Space.counts", lambda _: trials.Space.counts, lambda _: {"least": 0, "most": 3})
    yield Target(
        "Space.bins",
        lambda _: trials.Space.bins,
        lambda _: {"lo": 0, "hi": 3},
        lambda _: {"number": 4, "rounding": "nearest"},
    )
    yield Target(
        "Space.ordinal",
        lambda _: trials.Space.ordinal,
        lambda _: {"labels": ["a", "b"]},
        lambda _: {"scores": [1, 2]},
    )
    yield Target(
        "Space.coarse", lambda _: trials.Space.counts(0, 9).coarse, lambda _: {"number": 3}
    )
    yield Target(
        "Space.numbers", lambda _: trials.Space.counts(0, 9).numbers, lambda _: {"outcomes": [1, 2]}
    )
    yield Target(
        "trials.power",
        lambda _: trials.power,
        lambda _: {"effect": 1.0, "standard_error": 0.5},
        lambda _: {"confidence": 0.9, "degrees_of_freedom": 5.0},
    )
    yield Target(
        "trials.detectable",
        lambda _: trials.detectable,
        lambda _: {"standard_error": 0.5},
        lambda _: {"power": 0.7, "confidence": 0.9, "degrees_of_freedom": 5.0},
    )
    yield Target(
        "TrialPlan.against",
        lambda kit: kit.trial_plan.against,
        lambda _: {},
        lambda _: {"n": [60, 120], "epsilon": [1, 2], "clusters": [2, 3]},
    )
    yield Target(
        "TrialPlan.detectable",
        lambda kit: kit.trial_plan.detectable,
        lambda _: {"mechanism": "cluster_dp"},
    )
    yield Target(
        "TrialPlan.power_of",
        lambda kit: kit.trial_plan.power_of,
        lambda _: {"mechanism": "cluster_dp"},
    )
    yield Target(
        "TrialPlan[]", lambda kit: kit.trial_plan.__getitem__, lambda _: {"mechanism": "cluster_dp"}
    )
    yield Target(
        "PrivateTrial.estimate",
        lambda kit: kit.private_trial.estimate,
        lambda _: {},
        lambda _: {"arm": 1, "confidence": 0.9},
    )
    yield Target(
        "PrivateTrial.effects",
        lambda kit: kit.private_trial.effects,
        lambda _: {},
        lambda _: {"confidence": 0.9},
    )
    yield Target(
        "PrivateTrial.write",
        lambda kit: kit.private_trial.write,
        lambda kit: {"path": kit.folder / "t.csv"},
    )
    yield Target(
        "PrivateTrial.write_manifest",
        lambda kit: kit.private_trial.write_manifest,
        lambda kit: {"path": kit.folder / "t.json"},
    )
    yield Target(
        "PrivateTrial.load",
        lambda _: trials.PrivateTrial.load,
        lambda kit: {"path": kit.folder / "t.json"},
    )


def _made_and_used(name: str) -> Find:
    def find(kit: Kit) -> Callable[..., Any]:
        def call(**arguments: Any) -> Any:  # noqa: ANN401
            made = getattr(trials, name)(**arguments)
            return made.privatize(**kit.trial, noise=shoal.Simulated(1))

        return call

    return find


def _privatize(make: Callable[[], Any]) -> Find:
    return lambda _: make().privatize


def _of_questions() -> Iterator[Target]:
    yield Target(
        "trials.Questions",
        lambda _: trials.Questions,
        lambda kit: {"arm": kit.columns["arm"]},
        lambda kit: {**kit.columns, "control": 1},
    )
    yield Target(
        "Questions.effect",
        lambda kit: kit.questions.effect,
        lambda _: {},
        lambda _: {"by": "sex", "weights": "units"},
    )
    yield Target(
        "Questions.regression",
        lambda kit: kit.questions.regression,
        lambda _: {"columns": ["arm", "age", "sex"]},
    )
    yield Target(
        "Questions.plan",
        lambda kit: kit.questions.effect().means().plan,
        lambda _: {"space": trials.Space.binary(), "epsilon": 1},
        lambda _: {"spread": 0.4},
    )
    yield Target(
        "QuestionsPlan.release",
        lambda kit: kit.questions_plan.release,
        lambda kit: {"outcomes": kit.trial["outcomes"], **kit.columns},
        lambda _: {
            "name": "first",
            "noise": None,
            "outcome_name": "bought",
            "again": False,
            "privacy_unit": "person",
        },
        takes_ledger=True,
    )
    yield Target(
        "QuestionsPlan.save",
        lambda kit: kit.questions_plan.save,
        lambda kit: {"path": kit.folder / "questions.json"},
    )
    yield Target(
        "QuestionsPlan.load",
        lambda _: trials.QuestionsPlan.load,
        lambda kit: {"path": kit.folder / "questions.json"},
    )
    yield Target(
        "PrivateAnswers.estimate",
        lambda kit: kit.answers.estimate,
        lambda _: {},
        lambda _: {"confidence": 0.9},
    )
    yield Target(
        "PrivateAnswers.regression",
        lambda kit: kit.answers.regression,
        lambda _: {"columns": ["arm", "sex"]},
        lambda _: {"confidence": 0.9},
    )
    yield Target(
        "PrivateAnswers.write",
        lambda kit: kit.answers.write,
        lambda kit: {"path": kit.folder / "answers.csv"},
    )
    yield Target(
        "PrivateAnswers.write_manifest",
        lambda kit: kit.answers.write_manifest,
        lambda kit: {"path": kit.folder / "answers.json"},
    )
    yield Target(
        "PrivateAnswers.load",
        lambda _: trials.PrivateAnswers.load,
        lambda kit: {"path": kit.folder / "answers.json"},
    )


def _without_bias() -> Iterator[Target]:
    own: dict[str, dict[str, Any]] = {
        "clipped_mean": {"interval": (0, 10), "bias": 0.5, "epsilon": 1},
        "sampled_mean": {"interval": (0, 10), "delta": "1/4", "publish_values": True},
        "clipped_plus_residual": {
            "interval": (0, 10),
            "epsilon": 1,
            "delta": "1/4",
            "publish_values": True,
        },
        "symmetric_mean": {"epsilon": 1, "delta": "1/4"},
    }
    for name, needs in own.items():
        more = {"reuse": True, "farthest": 100.0} if name == "symmetric_mean" else {}
        yield Target(
            f"unbiased.{name}",
            _named(unbiased, name),
            _with(_unbiased, needs),
            _with(_unbiased_options, more),
            takes_ledger=True,
        )
        yield Target(
            f"unbiased.plan/{name}",
            lambda _: unbiased.plan,
            _with(_unbiased_plan, {"method": name} | needs),
            _with(_nothing, {"weights": "counts", "cap": 2, "source": {"a": 1}} | more),
        )
    yield Target(
        "unbiased.recommend",
        lambda _: unbiased.recommend,
        lambda kit: {"n": 100, "epsilon": 1, "moment": kit.moment},
        lambda _: {
            "delta": "1e-6",
            "interval": (0, 10),
            "bias": 0.1,
            "releases": 3,
            "publish_values": True,
        },
    )
    yield Target("unbiased.Moment", lambda _: unbiased.Moment, lambda _: {"order": 2, "size": 1})
    yield Target(
        "Recommendation[]",
        lambda kit: kit.recommendation.__getitem__,
        lambda _: {"method": "sampled_mean"},
    )
    yield Target(
        "UnbiasedPlan.release",
        lambda kit: kit.unbiased_plan.release,
        lambda kit: {"values": kit.values, "users": kit.users},
        lambda _: {
            "name": "first",
            "noise": None,
            "confidence": 0.9,
            "values_name": "height",
            "again": True,
            "privacy_unit": "person",
        },
        takes_ledger=True,
    )
    yield Target(
        "UnbiasedPlan.save",
        lambda kit: kit.unbiased_plan.save,
        lambda kit: {"path": kit.folder / "u.json"},
    )
    yield Target(
        "UnbiasedPlan.load",
        lambda _: unbiased.UnbiasedPlan.load,
        lambda kit: {"path": kit.folder / "u.json"},
    )
    yield Target(
        "UnbiasedPlan.from_document",
        lambda _: unbiased.UnbiasedPlan.from_document,
        lambda kit: {"document": kit.unbiased_plan.to_document()},
    )
    yield Target(
        "UnbiasedEstimate.write_manifest",
        lambda kit: kit.estimate.write_manifest,
        lambda kit: {"path": kit.folder / "e.json"},
    )


def _of_bounds() -> Iterator[Target]:
    yield Target("bounds.trilemma", lambda _: bounds.trilemma, _bound, lambda _: {"width": 2.0})
    yield Target(
        "bounds.regime", lambda _: bounds.regime, _bound, lambda _: {"width": 2.0, "releases": 3}
    )
    yield Target(
        "bounds.shuffled_trilemma",
        lambda _: bounds.shuffled_trilemma,
        _bound,
        lambda _: {"width": 2.0},
    )
    yield Target(
        "bounds.shuffled",
        lambda _: bounds.shuffled,
        lambda _: {"blocks": 10_000, "epsilon": 1, "delta": 0, "added": 1e-8},
    )
    yield Target(
        "bounds.distance_to_bound",
        lambda _: bounds.distance_to_bound,
        lambda kit: {"rmse": 1.0, "bound": kit.bound},
    )
    yield Target("Setting.of", lambda _: bounds.Setting.of, _bound, lambda _: {"width": 2.0})
    yield Target("shoal.Bounds", lambda _: shoal.Bounds, lambda _: {"lo": 0, "hi": 1})
    yield Target("Bounds.of", lambda _: shoal.Bounds.of, lambda _: {"bounds": (0, 1)})
    yield Target("shoal.Simulated", lambda _: shoal.Simulated, lambda _: {"seed": 1})
    yield Target(
        "shoal.Normal",
        lambda _: shoal.Normal,
        lambda _: {"mean": 5, "deviation": 1},
        lambda _: {"between": 0.5, "cells": 1.0},
    )


def _methods() -> Iterator[Target]:
    yield Target(
        "Plan.release",
        lambda kit: kit.plan.release,
        lambda kit: {"records": kit.records, "ledger": kit.ledger},
        lambda _: {"name": "first", "noise": None, "again": True, "privacy_unit": "person"},
        takes_ledger=True,
    )
    yield Target(
        "Plan.compare",
        lambda kit: kit.plan.compare,
        lambda _: {"repetitions": 2},
        lambda _: {"methods": ["balanced"], "assumed": shoal.Normal(5, 1), "repetitions": 2},
    )
    yield Target(
        "Plan.typical_error",
        lambda kit: kit.plan.typical_error,
        lambda _: {},
        lambda _: {"spread": 2.0},
    )
    yield Target(
        "Plan.frontier",
        lambda kit: kit.plan.frontier,
        lambda _: {},
        lambda _: {
            "methods": ["balanced", ("optimal", {"targets": "balanced"})],
            "epsilons": [1, 2],
            "progress": None,
        },
    )
    yield Target(
        "Plan.save", lambda kit: kit.plan.save, lambda kit: {"path": kit.folder / "plan.json"}
    )
    yield Target(
        "Plan.load", lambda _: shoal.Plan.load, lambda kit: {"path": kit.folder / "plan.json"}
    )
    yield Target(
        "Occupancy.save",
        lambda kit: kit.occupancy.save,
        lambda kit: {"path": kit.folder / "o.json"},
    )
    yield Target(
        "Occupancy.load",
        lambda _: shoal.Occupancy.load,
        lambda kit: {"path": kit.folder / "o.json"},
    )
    yield Target(
        "Occupancy.from_document",
        lambda _: shoal.Occupancy.from_document,
        lambda kit: {"document": kit.occupancy.to_document()},
    )
    yield Target(
        "Release.table", lambda kit: kit.release.table, lambda _: {}, lambda _: {"confidence": 0.9}
    )
    yield Target(
        "Release.to_pandas",
        lambda kit: kit.release.to_pandas,
        lambda _: {},
        lambda _: {"confidence": 0.9},
    )
    yield Target(
        "Release.to_polars",
        lambda kit: kit.release.to_polars,
        lambda _: {},
        lambda _: {"confidence": 0.9},
    )
    yield Target(
        "Release.write",
        lambda kit: kit.release.write,
        lambda kit: {"path": kit.folder / "r.csv"},
        lambda _: {"confidence": 0.9},
    )
    yield Target(
        "Release.write_manifest",
        lambda kit: kit.release.write_manifest,
        lambda kit: {"path": kit.folder / "m.json"},
    )
    yield Target(
        "Frontier.plan",
        lambda kit: kit.frontier.plan,
        lambda _: {"method": "balanced", "epsilon": 2},
    )
    yield Target("Frontier.of", lambda kit: kit.frontier.of, lambda _: {"method": "balanced"})


TARGETS: tuple[Target, ...] = (*_functions(), *_methods())


def touch(found: object) -> None:
    """Look at a result as people do: print it, read its properties, tabulate it."""
    if not type(found).__module__.startswith("shoal."):
        return
    str(found)
    repr(found)
    for name in dir(type(found)):
        if name.startswith("_"):
            continue
        part = inspect.getattr_static(type(found), name)
        if isinstance(part, property) or type(part).__name__ == "cached_property":
            getattr(found, name)
    for name in ("table", "to_document", "summary", "describe"):
        part = getattr(found, name, None)
        if callable(part):
            part()


def missing() -> list[str]:
    """Public functions and classes that no target calls."""
    named = {target.name.split("/")[0].split(".")[-1].rstrip("()") for target in TARGETS}
    named |= {target.name.split(".")[0] for target in TARGETS}
    lacking = []
    for module in MODULES:
        for name in module.__all__:
            public: Mapping[str, Any] | Any = getattr(module, name)
            known = name in named or name in RESULTS or inspect.ismodule(public)
            if not known and name != "ShoalError":
                lacking.append(f"{module.__name__}.{name}")
    return lacking
