"""Plans of questions: what they release and cost, and how exact each answer will be."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from shoal import checks
from shoal.arrays import Floats, Ints
from shoal.documents.model import Model
from shoal.errors import InputError, printable
from shoal.files.text_table import TextTable, counted
from shoal.intervals import check_level, student
from shoal.privacy.accounting import Step
from shoal.privacy.noise import Noise
from shoal.trials.assigned_groups import CORRELATION, assigned_by, cr2, few_groups
from shoal.trials.design import ARM
from shoal.trials.effect_estimation import FEWEST, Spread
from shoal.trials.plan import Plan, Request
from shoal.trials.questions import noise as noises
from shoal.trials.questions.numbers import BITS, TICKS, Choice, Numbers, QuestionsDrawn, ticks_of
from shoal.trials.questions.numbers import noise as noise_of
from shoal.trials.questions.variances import FEWEST_UNITS, MEANS_SHARE, Fit, fit_of
from shoal.trials.questions.weights import (
    EFFECT,
    MEANS,
    REGRESSION,
    Block,
    QuestionEntry,
    blocks_of,
    lengths,
    regressor_names,
    regressors_of,
)
from shoal.trials.results import Answer, Answers

# The confidence of intervals in plans.
_USUAL = 0.95
# A question warns if its largest weight is this many times the root mean square, ...
_HEAVY = 4.0
# ... and its interval this many times as wide as without noise.
_WIDER = 1.25
# A question about effects or means warns if a group of units has this many times the units that
# its weights count for: (sum of squares)^2 divided by the sum of fourth powers.
_UNEVEN = 2.6
# The same for coefficients of regressions, whose weights are never equal.
_UNEVEN_COLUMN = 5.0
# Only groups with at least this part of the sum of squared weights are looked at.
_CARRIES = 0.2
# The lower bound is computed for this many questions at most.
_MOST_BOUND = 256
# Levels of a binary outcome.
_LEVELS = 2
_BETWEEN = (
    "; a regression uses the means of groups, weighted by their units: coefficients of columns "
    "that vary within groups show how groups differ, not units (for units use a table)"
)


class QuestionsRequest(Request):
    """Questions as they were asked, and the stated standard deviation of outcomes within arms."""

    entries: tuple[QuestionEntry, ...]
    sd: float


class Predicted(NamedTuple):
    """The errors of one answer that a plan predicts before any outcome is read, in its unit.

    `noise` is the standard deviation of the noise. `standard_error` is the one by sampling and
    noise for the stated `sd`, and `plain_error` the one by sampling alone. Half of the 95% interval
    is `half_width`; it would be `alone` if this were the only question, and `plain_half_width`
    without noise. `max_weight_ratio` is the largest weight divided by the root mean square; 1 is
    best.
    """

    question: str
    noise: float
    max_weight_ratio: float
    standard_error: float
    plain_error: float
    half_width: float
    alone: float
    plain_half_width: float

    @property
    def widening(self) -> float:
        """How much wider the interval is than without noise, as a factor."""
        return self.half_width / self.plain_half_width


class _Widths(NamedTuple):
    """The variance of an answer without noise, and half of three intervals, as in `Predicted`."""

    plain_variance: float
    half_width: float
    alone: float
    plain_half_width: float


class _Prediction(NamedTuple):
    """A fit of residuals, the coefficients of its prediction, and the covariance of their noise.

    `recovered` says of which sums of released numbers the coefficients consist. `noise` is in the
    outcome's squared unit.
    """

    fit: Fit
    recovered: Floats
    noise: Floats


class _GroupDesign(NamedTuple):
    """Regressors, units, weights and sums of the assigned groups that a question is about."""

    regressors: Floats
    sizes: Floats
    weights: Floats
    sums: Floats


@dataclass(frozen=True, eq=False, repr=False)
class QuestionsPlan(Plan):
    """A plan of questions: see `trials.Questions.plan`."""

    request: QuestionsRequest
    chosen: Choice

    kind: ClassVar[str] = "questions"
    request_model: ClassVar[type[Request]] = QuestionsRequest
    chosen_model: ClassVar[type[Model]] = Choice
    drawn_model: ClassVar[type[Model]] = QuestionsDrawn

    @cached_property
    def numbers(self) -> Numbers:
        """The whole numbers that are released."""
        return Numbers(self.design.many, self.chosen)

    @cached_property
    def own_steps(self) -> Sequence[Step]:
        """One noisy vector, from whose numbers all questions must follow."""
        self.numbers.check()
        if not all(self.numbers.answer(each.rows) for each in self.blocks):
            raise LookupError
        return [self.numbers.step]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The questions, entry by entry."""
        ratio = self.domain.width / self.request.sd / float(self.request.epsilon)
        return blocks_of(self.design, self.request.entries, ratio)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the questions."""
        return tuple(name for each in self.blocks for name in each.names)

    @cached_property
    def groups(self) -> Ints:
        """The group of each kind of units, from 0; second moments are released by group."""
        return self.design.codes([ARM, *self.chosen.by])

    def respond(self, outcomes: Floats, noise: Noise) -> QuestionsDrawn:
        """Draws all numbers with their noise.

        Formal guarantee: label differential privacy with `exact_epsilon`, whatever the outcomes.
        """
        ticks = ticks_of(outcomes, self.domain)
        return self.numbers.draw(ticks, self.design.kind_of_unit, self.groups, noise)

    def check_drawn(self, drawn: QuestionsDrawn) -> None:
        """Refuse drawn numbers that are not as many as planned."""
        moments = int(self.groups.max()) + 1 if self.chosen.moment_step else 0
        if (len(drawn.numbers), len(drawn.moments)) != (len(self.chosen.steps), moments):
            raise ValueError

    def read(self, drawn: QuestionsDrawn, confidence: float, **_: Any) -> Answers:
        """Returns the answers to all questions."""
        return self.answers(drawn, self.blocks, confidence)

    @property
    def effective_units(self) -> Floats:
        """How many units of equal weight each question rests on.

        It is the sum of squared weights, divided by the largest one.
        """
        many = self.design.many
        rows = np.concatenate([each.rows for each in self.blocks])
        return np.asarray((rows**2) @ many / (rows**2).max(axis=1))

    def regression(
        self, drawn: QuestionsDrawn, columns: Sequence[str], confidence: float
    ) -> Answers:
        """See `trials.Release.regression`."""
        names = regressor_names(self.design, columns)
        entry = QuestionEntry.of(kind=REGRESSION, columns=names)
        block = blocks_of(self.design, [entry], 1.0)[0]
        if not self.numbers.answer(block.rows):
            raise InputError(
                f"the regression on {checks.shown(' + '.join(names))} does not follow from what "
                "was released",
                "choose columns of one regression of the plan: others need a second release and "
                "charge",
            )
        return self.answers(drawn, [block], confidence)

    def answers(self, drawn: QuestionsDrawn, blocks: Sequence[Block], confidence: float) -> Answers:
        """Returns answers to questions that follow from the released numbers."""
        wanted = check_level(confidence)
        found = list[Answer]()
        notes = [*self._few_groups()]
        for block in blocks:
            found += self._answers(drawn, block, wanted)
            notes += [*self._few_units(block), *self._rare(drawn, block)]
            if self.design.group is not None and block.of_regression:
                notes.append(_BETWEEN.removeprefix("; "))
        return Answers(tuple(found), self.answers_head(len(found)), tuple(notes))

    def _answers(self, drawn: QuestionsDrawn, block: Block, confidence: float) -> Iterator[Answer]:
        """Yields the answers to the questions of a block."""
        middle = self.domain.levels[0] + self.domain.width / 2
        # Weights add up to 1 for means and constants, and to 0 for all other questions.
        offset = middle * np.rint(block.rows @ self.design.many)
        values = self._values(drawn, self.numbers.recover(block.rows)) + offset
        spreads = self._spreads(drawn, block)
        every = zip(block.labels, self._predicted(block), values.tolist(), spreads, strict=True)
        for label, predicted, value, spread in every:
            half = spread.half_width(confidence)
            yield Answer(
                **label._asdict(),
                value=value,
                standard_error=spread.half_width(_USUAL) / student(math.inf, _USUAL),
                predicted=predicted.standard_error,
                interval=(value - half, value + half),
                confidence=confidence,
            )

    def _values(self, drawn: QuestionsDrawn, recovered: Floats) -> Floats:
        """Returns sums of released numbers; outcomes count from the middle of the range."""
        ticks = recovered @ np.array(drawn.numbers, dtype=float)
        return np.asarray(ticks * self.domain.width / TICKS)

    def _fit(self, block: Block) -> _Prediction:
        """Returns the prediction whose residuals are what the variances of a block rest on."""
        if block.entry not in self._fits:
            fit, weights = fit_of(self.design, block, self.chosen.by)
            recovered = self.numbers.recover(weights)
            noise = noise_of(recovered, self.domain.width)
            self._fits[block.entry] = _Prediction(fit, recovered, noise)
        return self._fits[block.entry]

    @cached_property
    def _fits(self) -> dict[QuestionEntry, _Prediction]:
        return {}

    def _spreads(self, drawn: QuestionsDrawn, block: Block) -> Iterator[Spread]:
        """Yields each answer's variance, the noise of the answer, and the noise of the variance."""
        width = self.domain.width
        if self.design.group is not None:
            # All units of a sum weigh 2^40.
            sums = np.array(drawn.numbers, dtype=float) * self.chosen.steps / 2.0**40
            yield from self._group_spreads(block, sums * width / TICKS)
            return
        fit, recovered, noise = self._fit(block)
        coefficients = self._values(drawn, recovered)
        squares = np.array(drawn.moments, dtype=float) * self.numbers.moment_value(width)
        variance = fit.variances(self._coarser(fit.codes, squares), coefficients, noise)
        variance_noise = self._variance_noise(fit, coefficients, noise)
        yield from self._with_noise(block.rows, variance, variance_noise, fit.fewest)

    def _with_noise(
        self, rows: Floats, variance: Floats, variance_noise: Floats, degrees: Floats
    ) -> Iterator[Spread]:
        """Yields spreads of given variances, adding the noise of the answers."""
        total, terms = self.numbers.noise_parts(rows, self.domain.width)
        every = (each.tolist() for each in (variance, degrees, total, terms, variance_noise))
        return map(Spread, *every)

    def _coarser(self, codes: Ints, moments: Floats) -> Floats:
        """Adds up values of the groups of second moments within the coarser groups `codes`."""
        coarse_group = np.zeros(len(moments), dtype=np.int64)
        coarse_group[self.groups] = codes
        return np.asarray(np.bincount(coarse_group, moments), dtype=np.float64)

    def _variance_noise(self, fit: Fit, coefficients: Floats, noise: Floats) -> Floats:
        """The scale of the noise of each variance, in the answer's squared unit."""
        scale = self.numbers.moment_value(self.domain.width) * 2.0**BITS
        scales = np.sqrt(self._coarser(fit.codes, np.full(int(self.groups.max()) + 1, scale**2)))
        return fit.noise_scale(scales, coefficients, noise)

    def _group_spreads(self, block: Block, sums: Floats | float = 0.0) -> Iterator[Spread]:
        """Yields the CR2 variance of each question, from sums of assigned groups and subgroups."""
        for at in range(len(block.names)):
            found = cr2(*self._group_design(block, at, sums))
            if math.isnan(found.variance):
                raise InputError(
                    f"a part of the question {printable(block.names[at])!r} has only one assigned "
                    "group, which does not show how groups differ",
                    "ask without these clusters, subgroups or columns, so that every part has two "
                    "groups or more",
                )
            yield found

    def _group_design(self, block: Block, at: int, sums: Floats | float = 0.0) -> _GroupDesign:
        """Returns the assigned groups that the question at this place of a block is about."""
        design = self.design
        entry = block.entry
        # The kinds of units that the question is about.
        inside = np.ones(len(design.many), dtype=bool)
        if entry.kind == EFFECT and entry.by:
            # Questions go through the values of the column, arm by arm.
            values = design.covariate(entry.by).codes
            inside = values == at % (int(values.max()) + 1)
        groups = np.asarray(design.group)[inside]
        first, group = np.unique(groups, return_index=True, return_inverse=True)[1:]
        units = design.many[inside]
        sizes = np.bincount(group, units).astype(np.float64)
        # Sums are released by group and subgroup: those of this question are added up by group.
        group_of_sum = np.full(len(self.chosen.steps), -1)
        group_of_sum[self.numbers.sums[inside]] = group
        is_asked = group_of_sum >= 0
        group_sums = np.zeros(len(sizes))
        asked_sums = np.broadcast_to(sums, group_of_sum.shape)[is_asked]
        np.add.at(group_sums, group_of_sum[is_asked], asked_sums)
        weights = np.bincount(group, block.rows[at][inside] * units) / sizes
        if entry.kind == REGRESSION:
            columns = regressors_of(design, entry.columns)[1]
            summed = np.zeros((len(sizes), columns.shape[1]))
            np.add.at(summed, group, columns * units[:, None])
            return _GroupDesign(summed / sizes[:, None], sizes, weights, group_sums)
        arm = design.arm[inside][first]
        cluster = design.cluster[inside][first]
        dummies = [arm[:, None] == np.arange(len(design.arms))]
        if entry.kind != MEANS:
            dummies.append(cluster[:, None] == np.arange(len(design.clusters)))
        return _GroupDesign(np.hstack(dummies).astype(float), sizes, weights, group_sums)

    @cached_property
    def predicted(self) -> tuple[Predicted, ...]:
        """The predicted errors of each answer, for the stated standard deviation."""
        return tuple(one for each in self.blocks for one in self._predicted(each))

    def _predicted(self, block: Block) -> Iterator[Predicted]:
        """Yields the predicted errors of the questions of a block."""
        design = self.design
        rows = block.rows
        noise, _ = self.numbers.noise_parts(rows, self.domain.width)
        length = lengths(rows, design.many)
        # The root mean square of a question's weights is its length divided by the root of n.
        ratios = np.abs(rows).max(axis=1) / length * math.sqrt(design.n)
        widths = self._widths(block, length) if design.group is None else self._group_widths(block)
        every = zip(block.names, noise.tolist(), ratios.tolist(), widths, strict=True)
        for name, noise_variance, ratio, of_question in every:
            yield Predicted(
                question=name,
                noise=math.sqrt(noise_variance),
                max_weight_ratio=ratio,
                standard_error=math.sqrt(of_question.plain_variance + noise_variance),
                plain_error=math.sqrt(of_question.plain_variance),
                half_width=of_question.half_width,
                alone=of_question.alone,
                plain_half_width=of_question.plain_half_width,
            )

    def _widths(self, block: Block, length: Floats) -> Iterator[_Widths]:
        """Yields the widths of each question, whose weights have this length."""
        fit, _, noise = self._fit(block)
        sd = self.request.sd
        rows = block.rows
        width = self.domain.width
        # With this standard deviation, a mean is no further from the middle of the range.
        furthest = fit.flat * math.sqrt(max(width**2 / 4 - sd**2, 0.0))
        variance_noise = self._variance_noise(fit, furthest, noise)
        # A plan of one effect or mean would spend this share of epsilon on means of groups.
        means_share = 0.0 if block.of_regression else MEANS_SHARE
        scales = np.abs(rows).max(axis=1) * width / float(self.exact_epsilon) / (1 - means_share)
        spreads = self._with_noise(rows, (sd * length) ** 2, variance_noise, fit.fewest)
        for spread, squares, scale in zip(spreads, fit.squares.T, scales.tolist(), strict=True):
            # These are Satterthwaite's degrees of freedom, for groups with equal variances.
            degrees = float(squares.sum() ** 2 / (squares**2 / fit.degrees).sum())
            half = spread.half_width(_USUAL)
            alone = spread._replace(noise=2 * scale**2, terms=1.0).half_width(_USUAL)
            plain = student(degrees, _USUAL) * math.sqrt(spread.variance)
            yield _Widths(spread.variance, half, min(half, alone), plain)

    def _group_widths(self, block: Block) -> Iterator[_Widths]:
        """Yields what `_widths` does, where groups were assigned whole."""
        noise, _ = self.numbers.noise_parts(block.rows, self.domain.width)
        sum_of_kind = self.numbers.sums
        many = self.design.many
        units = np.bincount(sum_of_kind, many)
        for at, (row, noise_variance) in enumerate(zip(block.rows, noise.tolist(), strict=True)):
            regressors, sizes, weights, _ = self._group_design(block, at)
            # Degrees of freedom do not depend on the sums of outcomes.
            degrees = cr2(regressors, sizes, weights, sizes).degrees
            of_units = float(sizes @ weights**2)
            of_groups = float(((sizes * weights) ** 2).sum())
            plain = self.request.sd**2 * ((1 - CORRELATION) * of_units + CORRELATION * of_groups)
            quantile = student(degrees, _USUAL) if degrees > 0 else math.nan
            # Asked alone, a question needs one sum for all units of a group with equal weights:
            # then its noise has this part of the variance.
            of_sums = np.bincount(sum_of_kind, row * many) / units
            largest = np.abs(of_sums).max()
            _, alone_weights = np.unique([self.design.group, np.round(row / largest, 9)], axis=1)
            squares_alone = float((alone_weights**2).sum())
            part = min(squares_alone / ((of_sums / largest) ** 2).sum(), 1.0)
            half = quantile * math.sqrt(plain + noise_variance)
            alone = quantile * math.sqrt(plain + noise_variance * part)
            yield _Widths(plain, half, alone, quantile * math.sqrt(plain))

    @cached_property
    def lower_bound_ratio(self) -> float:
        """The total noise variance, divided by a lower bound for all Laplace noise.

        Variances are in units of each question's squared length, so that all intervals count alike.
        The bound is that of Gaussian noise and need not be attained. The ratio is NaN for very many
        questions.
        """
        rows = np.concatenate([each.rows for each in self.blocks])
        if len(rows) > _MOST_BOUND:
            return math.nan
        size = lengths(rows, self.design.many)
        vectors = rows * (self.domain.width / size)[:, None]
        total = self.numbers.noise_parts(rows, self.domain.width)[0] / size**2
        # A bound for some kinds of units is a bound for all.
        bound = noises.gaussian_noise(vectors[:, noises.extremes(vectors)]).lower_bound
        return float(total.sum()) / (2 * bound / float(self.request.epsilon) ** 2)

    def table(self, drawn: QuestionsDrawn, confidence: float) -> pa.Table:
        """The answers with their intervals."""
        return self.read(drawn, confidence).table()

    def predictions(self) -> pa.Table:
        """The predicted errors of each answer.

        Returns:
            One row a question, with the columns of `Predicted` and `widening`.
        """
        rows = [each._asdict() | {"widening": each.widening} for each in self.predicted]
        return pa.Table.from_pylist(rows)

    def _text(self) -> TextTable:
        """The plan with a row for each question, and the meaning of the columns."""
        rows = []
        for each in self.predicted:
            errors = f"{each.standard_error:.3g}", f"{each.plain_error:.3g}"
            widths = f"±{each.half_width:.3g}", f"±{each.alone:.3g}", f"{each.widening:.3g}"
            ratio = f"{each.max_weight_ratio:.3g}"
            rows.append([printable(each.question), *errors, *widths, ratio])
        columns = [
            "question",
            "predicted SE",
            "without noise",
            "95% interval",
            "if asked alone",
            "times",
            "max weight ratio",
        ]
        head = self._head(counted(len(rows), "question"))
        return TextTable(head, columns, rows, self._meanings())

    def _meanings(self) -> list[str]:
        """Returns the sentences below the table: what was assumed, and what columns mean."""
        has_regression = any(each.of_regression for each in self.blocks)
        if self.design.group is None:
            groups = printable(" x ".join([ARM, *self.chosen.by]))
            assumed = (
                f"assumed: equal variances within {groups}, and units assigned one by one; if "
                "whole classes or villages were assigned, intervals without assigned= are far too "
                "short"
            )
            if has_regression:
                assumed += "; errors of a regression do not grow with a column"
        else:
            many = int(self.design.group.max()) + 1
            assumed = (
                f"one noisy sum for each of {many} groups assigned whole, from which later "
                "regressions on the columns named here are free; predicted for a correlation of "
                f"{CORRELATION} within groups"
            )
            if has_regression:
                assumed += _BETWEEN
        low = self.domain.levels[0]
        high = self.domain.levels[-1]
        rounded = [printable(each.name) for each in self.design.covariates if each.rounded]
        steps = [f"rounded to 1,000 steps of their range: {', '.join(rounded)}"] if rounded else []
        return [
            f"outcomes are from {low:g} to {high:g}; others are moved to the nearer end",
            (
                f"SE: standard error for outcomes of standard deviation {self.request.sd:.4g} "
                "(sd); only predictions depend on it"
            ),
            "an effect of 2.8 standard errors is found with a probability of 80%",
            f"times: how many times as wide as without noise; {assumed}",
            "max weight ratio: largest weight over the root mean square; 1 if weights are equal",
            "arms, clusters and covariates are public and are published with the release",
            *steps,
        ]

    def warnings(self, *, one_by_one: bool = False) -> list[str]:
        """Sentences on few units, few groups, and columns within whose values arms never vary."""
        found = [*self._heavy(), *self._uneven(), *self._few_groups()]
        found += [each for block in self.blocks for each in self._few_units(block)]
        suspects = [] if one_by_one else assigned_by(self.design)
        if suspects:
            found.append(
                f"all units of one value of the covariate {printable(suspects[0])!r} have the same "
                "arm: if arms were assigned by this covariate and not unit by unit, the intervals "
                "are too short (such intervals have covered 31% to 63% instead of 95%), so give it "
                'as assigned=; if not, give assigned="units" (docs/experiments.md)'
            )
        return found

    def _rare(self, drawn: QuestionsDrawn, block: Block) -> Iterator[str]:
        """Warns of a binary outcome with a rare level: its kurtosis is near 1/(p (1 - p))."""
        if self.design.group is not None or block.of_regression or self.domain.size != _LEVELS:
            return
        fit, recovered, _ = self._fit(block)
        # Means count from the middle of the range, so that p (1 - p) is 1/4 less their square.
        means = self._values(drawn, recovered) / self.domain.width
        units = np.bincount(fit.codes, self.design.many) * np.maximum(1 / 4 - means**2, 0)
        # Where noise is larger than sampling errors, intervals are those of noise.
        is_sampling = any(each.variance > each.noise for each in self._spreads(drawn, block))
        if units.min() < FEWEST and is_sampling:
            yield (
                f"an outcome is so rare that a group counts as {units.min():.2g} units (units "
                f"times p (1 - p)): with fewer than {FEWEST:g} intervals may cover far less than "
                "stated"
            )

    def _few_units(self, block: Block) -> Iterator[str]:
        """Warns of subgroups that have too few units for a variance of their own."""
        by = block.entry.by
        if by and self.design.group is None and by not in self.chosen.by:
            codes = self.design.codes([ARM, *self.chosen.by, by])
            fewest = int(np.bincount(codes, self.design.many).min())
            yield (
                f"effects by {printable(by)} share one variance, as an arm of a subgroup has only "
                f"{fewest} units (with {FEWEST_UNITS} each arm has its own variance): if some "
                "subgroups vary more than others, such intervals have covered 77% to 88% instead "
                "of 95%; merge small subgroups"
            )

    def _few_groups(self) -> Iterator[str]:
        """Warns of few assigned groups, or few degrees of freedom."""
        if self.design.group is None:
            return
        spreads = [each for block in self.blocks for each in self._group_spreads(block)]
        degrees = [each.degrees for each in spreads]
        first = np.unique(self.design.group, return_index=True)[1]
        many = np.bincount(self.design.arm[first]).tolist()
        of = f" for the question {printable(self.names[int(np.argmin(degrees))])!r}"
        few = few_groups(many, self.design.arm_names, min(degrees), of)
        if few:
            yield few

    def _uneven(self) -> Iterator[str]:
        """Warns of questions whose variance rests on few of the units with equal variances."""
        found = list[tuple[float, str]]()
        if self.design.group is not None:
            return
        units_of_kind = self.design.many
        for block in self.blocks:
            codes = self._fit(block).fit.codes
            units = np.bincount(codes, units_of_kind)
            limit = _UNEVEN_COLUMN if block.of_regression else _UNEVEN
            for name, row in zip(block.names, block.rows, strict=True):
                squares = np.bincount(codes, row**2 * units_of_kind)
                fourths = np.bincount(codes, row**4 * units_of_kind)
                is_heavy = squares >= _CARRIES * squares.sum()
                # As many units of equal weight would tell as much of the variance of a group.
                effective = squares[is_heavy] ** 2 / fourths[is_heavy]
                part = float((effective / units[is_heavy]).min(initial=1.0))
                if part * limit < 1:
                    found.append((part, name))
        if found:
            # The worst question is named.
            part, name = min(found)
            yield (
                f"{_rests(name, len(found))} on few of the units that are assumed to have equal "
                f"variances, mostly on {100 * part:.2g}% of them: if outcomes of these few vary "
                "more than those of the others, intervals are too short; merge small clusters, "
                'cap covariates, or ask for the effect with weights="precision"'
            )

    def _heavy(self) -> Iterator[str]:
        """Warns of questions whose noise is large because few units have large weights."""
        heavy = [
            each
            for each in self.predicted
            if each.max_weight_ratio > _HEAVY and each.widening > _WIDER
        ]
        if heavy:
            worst = max(heavy, key=lambda each: each.widening)
            equal = int(np.rint(self.design.n / worst.max_weight_ratio**2))
            yield (
                f"{_rests(worst.question, len(heavy))} on few units: its noise is as for {equal} "
                f"units of equal weight, and its interval is {worst.widening:.3g} times as wide as "
                "without noise; merge small cells, cap covariates, or ask for the effect with "
                'weights="precision"'
            )


def _rests(question: str, many: int) -> str:
    """Returns the beginning of a sentence about the worst of some questions."""
    verb = " depends" if many == 1 else f" and {many - 1} more depend"
    return f"the question {printable(question)!r}{verb}"
