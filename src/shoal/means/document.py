"""Plans of unbiased means as documents: everything public, and claims that are never trusted."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from shoal import documents
from shoal.errors import DocumentError, InputError
from shoal.means.estimators.base import Estimator
from shoal.means.estimators.clipped import Clipped
from shoal.means.estimators.coarse import Coarse
from shoal.means.estimators.grid import Grid
from shoal.means.estimators.middle import Middle
from shoal.means.estimators.noisy_sum import NoisySum
from shoal.means.estimators.normal import CERTIFIED, NORMAL
from shoal.means.estimators.residual import Residual
from shoal.means.estimators.sampled import Chance, Sampled
from shoal.means.estimators.squares import NoisySquares
from shoal.means.estimators.symmetric import Symmetric
from shoal.means.request import METHODS, Request
from shoal.privacy.budget import Budget, from_text
from shoal.release.manifest import CONFIDENCE
from shoal.theory.clipping import Moment, moments_of

SCHEMA = "shoal.unbiased-plan/1"
KIND = "mean"
_PARTS = {"schema", "method", "counts", "request", "parameters", "source", "claims"}
_CLOSE, _SPENT = 1e-9, Fraction(999, 1000)


def to_document(
    request: Request, estimator: Estimator, source: Mapping[str, Any] | None
) -> documents.Document:
    """A plan as a JSON object."""
    return {
        "schema": SCHEMA,
        "method": request.method,
        "counts": documents.pack_integers(request.counts),
        "request": {
            "moments": [[moment.order, moment.size] for moment in request.moments],
            "epsilon": str(request.budget.epsilon),
            "delta": str(request.budget.delta),
            "interval": None if request.interval is None else [float(x) for x in request.interval],
            "bias": _number(request.bias),
            "weights": request.weights,
            "cap": request.cap,
            "reuse": request.reuse,
            "farthest": _number(request.farthest),
            # Certified intervals are not mentioned: what was planned before there were others is
            # the same question.
            **({} if request.interval_by == CERTIFIED else {"interval_by": request.interval_by}),
        },
        "parameters": dict(estimator.parameters),
        "source": source,
        "claims": claims(request, estimator),
    }


def _number(asked: float | None) -> float | None:
    """As a float: the same question has the same bytes, whether it says 1 or 1.0."""
    return None if asked is None else float(asked)


def stated_loss(request: Request, estimator: Estimator) -> Budget:
    """The exact loss, rounded up to twelve digits or to what was asked for."""
    return Budget.stated(estimator.loss, request.budget.epsilon, request.budget.delta)


def claims(request: Request, estimator: Estimator) -> documents.Document:
    """What an estimator promises: losses as text, bounds in the value's unit."""
    loss = stated_loss(request, estimator)
    found = {
        "epsilon": str(loss.epsilon),
        "delta": str(loss.delta),
        "bias_bound": estimator.bias_bound,
        "standard_error": estimator.standard_error,
        "rmse_bound": estimator.rmse_bound,
        "noise_scale": estimator.noise_scale,
    }
    if estimator.squares is None:
        return found
    return {**found, "half_width": estimator.expected_half_interval(CONFIDENCE)}


def parts(document: documents.Document) -> dict[str, Any]:
    """Request, estimator and source of a plan, its claims computed anew and compared.

    Raises:
        DocumentError: A part is missing, damaged, or was changed by hand.
    """
    try:
        found = _parts(document)
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, DocumentError):
        found = None
    if found is None:
        raise DocumentError(
            "the plan is damaged or was changed by hand",
            "a document written by shoal whose claims follow from its contents",
            "make the plan again",
        )
    return found


def _parts(document: documents.Document) -> dict[str, Any] | None:
    request = _request(document)
    source = document["source"]
    estimator = _REBUILT[request.method](request, document["parameters"])
    sound = (
        document.keys() == _PARTS
        and (source is None or isinstance(source, dict))
        and dict(estimator.parameters) == document["parameters"]
        and estimator.loss.within(request.budget)
        # As its second opinion asks: one number with one noise spends what was asked for.
        and (
            not isinstance(estimator, Clipped)
            or estimator.loss.epsilon >= request.budget.epsilon * _SPENT
        )
        and (estimator.squares is not None) == (request.interval_by == NORMAL)
        and (request.bias is None or estimator.bias_bound <= request.bias * (1 + _CLOSE))
        and _agree(claims(request, estimator), document["claims"])
    )
    if not sound:
        return None
    return {"request": request, "estimator": estimator, "source": source}


def _request(document: documents.Document) -> Request:
    asked = dict(document["request"])
    moments = moments_of(tuple(Moment(*pair) for pair in asked.pop("moments")))
    budget = Budget(from_text(asked.pop("epsilon")), from_text(asked.pop("delta")))
    interval = asked.pop("interval")
    by = asked.pop("interval_by", None)
    if by not in (None, NORMAL):
        raise ValueError
    counts = documents.unpack_integers(document["counts"], "counts")
    if document["method"] not in METHODS or not bool((np.diff(counts) >= 0).all()):
        raise ValueError
    request = Request(
        document["method"],
        counts,
        moments,
        budget,
        interval=None if interval is None else (interval[0], interval[1]),
        interval_by=by or CERTIFIED,
        **asked,
    )
    request.check()
    return request


def _agree(truth: documents.Document, stated: documents.Document) -> bool:
    """Losses to the letter; bounds up to the last places of another machine's logarithm."""
    if not isinstance(stated, dict):
        return False
    return truth.keys() == stated.keys() and all(
        math.isclose(value, stated[name], rel_tol=_CLOSE)
        if isinstance(value, float)
        else value == stated[name]
        for name, value in truth.items()
    )


def _clipped(request: Request, found: Mapping[str, Any]) -> Clipped:
    grid = Grid(found["tick_exponent"], found["low"], found["high"])
    weights = request.weighed()
    noise = NoisySum(
        weights.largest * grid.ticks,
        weights.total * (grid.ticks // 2 + 1),
        found["per_unit"],
        found["lattice_bits"],
    )
    return Clipped(
        weights, request.moments, _interval(request), grid, noise, squares=_squares(found)
    )


def _sampled(request: Request, found: Mapping[str, Any]) -> Sampled:
    return Sampled(request.weighed(), request.moments, _interval(request), _chance(found))


def _residual(request: Request, found: Mapping[str, Any]) -> Residual:
    part = _clipped(request, found)
    return Residual(
        part.weights, part.moments, part.interval, part.grid, part.noise, _chance(found)
    )


def _symmetric(request: Request, found: Mapping[str, Any]) -> Symmetric:
    names = ("users", "exponent", "per_user", "bits", "threshold", "windows")
    coarse = Coarse(**{name: found[f"coarse_{name}"] for name in names})
    weights, reuse, half = request.weighed(), found["reuse"] == 1, found["half"]
    if request.reuse not in (None, reuse):
        raise InputError("a plan that is not what was wished for", "its own", "plan anew")
    final = weights if reuse else weights.after(coarse.users)
    noise = NoisySum(
        2 * half * final.largest, half * final.total, found["per_unit"], found["lattice_bits"]
    )
    return Symmetric(
        weights,
        request.moments,
        coarse=coarse,
        reuse=reuse,
        shift=found["shift"],
        half=half,
        noise=noise,
        chance=_chance(found),
        coarse_delta=from_text(found["coarse_delta"]),
        farthest=request.farthest_mean(),
        middle=_middle(coarse.users, found),
        squares=_squares(found),
    )


def _squares(found: Mapping[str, Any]) -> NoisySquares | None:
    if "square_step" not in found:
        return None
    return NoisySquares(found["square_step"], found["square_bits"])


def _middle(users: int, found: Mapping[str, Any]) -> Middle | None:
    half = found["middle_half"]
    if half == 0:
        return None
    noise = NoisySum(2 * half, half * users, found["middle_per_unit"], found["middle_bits"])
    return Middle(users, found["middle_shift"], half, noise)


_REBUILT = {
    Clipped.name: _clipped,
    Sampled.name: _sampled,
    Residual.name: _residual,
    Symmetric.name: _symmetric,
}


def _chance(found: Mapping[str, Any]) -> Chance:
    return Chance(int(found["sampling_words"]))


def _interval(request: Request) -> tuple[float, float]:
    if request.interval is None:
        raise InputError("no interval", "one", "give it")
    return request.interval
