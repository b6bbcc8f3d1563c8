"""Faults in linear questions: weights, strategies, free moments, forms, noisy variances."""

from __future__ import annotations

from tests.evidence.seeded.fault import Fault

_WEIGHTS = ("tests/theory/questions/test_weights.py",)
_GAUSSIAN = ("tests/theory/questions/test_gaussian_strategy.py",)
_LAPLACE = ("tests/theory/questions/test_laplace_strategy.py",)
_MOMENTS = ("tests/theory/questions/test_free_moments.py",)
_FORMS = ("tests/theory/questions/test_quadratic_forms.py",)
_WHOLE = ("tests/theory/questions/test_integer_strategy.py",)
_NOISY = ("tests/theory/questions/test_noisy_variance.py",)

FAULTS = (
    Fault(
        "second moments have a fifth less Laplace noise",
        "G-MOMENTS",
        "theory/questions/free_moments.py",
        "width * width * together * most / epsilon * _OUTWARD**4",
        "0.8 * width * width * together * most / epsilon * _OUTWARD**4",
        _MOMENTS,
    ),
    Fault(
        "second moments over the same units do not share the loss",
        "G-MOMENTS",
        "theory/questions/free_moments.py",
        "(weights / most[:, None]).sum(axis=0).max()",
        "(weights / most[:, None]).max()",
        _MOMENTS,
    ),
    Fault(
        "the Laplace scale of a second moment is rounded downwards",
        "G-MOMENTS",
        "theory/questions/free_moments.py",
        "most / epsilon * _OUTWARD**4",
        "most / epsilon * (2 - _OUTWARD) ** 4096",
        _MOMENTS,
    ),
    Fault(
        "Gaussian second moments take another power of the golden ratio",
        "G-MOMENTS",
        "theory/questions/free_moments.py",
        "/ 2) ** 2.5",
        "/ 2) ** 3",
        _MOMENTS,
    ),
    Fault(
        "the sum of a second moment is taken for its square in Gaussian noise",
        "G-MOMENTS",
        "theory/questions/free_moments.py",
        "((weights / most[:, None]) ** 2).sum(axis=0).max()",
        "((weights / most[:, None]) ** 2).max()",
        _MOMENTS,
    ),
    Fault(
        "an outcome moves a form by its own entry alone",
        "G-FORMS",
        "theory/questions/quadratic_forms.py",
        "moved = np.where(others >= diagonal, others, inner)",
        "moved = np.maximum(diagonal / 4, others)",
        _FORMS,
    ),
    Fault(
        "the entries of a form count without their signs' size",
        "G-FORMS",
        "theory/questions/quadratic_forms.py",
        'size = np.abs(exactly(form, np.float64, "form", shape))',
        'size = np.array(exactly(form, np.float64, "form", shape))',
        _FORMS,
    ),
    Fault(
        "the diagonal of a form is free at any scale",
        "G-FORMS",
        "theory/questions/quadratic_forms.py",
        "needed = max(float(others.max()) / share, float(diagonal.max()))",
        "needed = float(others.max()) / share",
        _FORMS,
    ),
    Fault(
        "a clipped row moves by the square of what it moves",
        "G-FORMS",
        "theory/questions/quadratic_forms.py",
        "each = moved * (2 * limits[:, None] - moved)",
        "each = moved * moved",
        _FORMS,
    ),
    Fault(
        "the Gaussian noise is scaled to the average unit",
        "G-STRATEGY",
        "theory/questions/gaussian_strategy.py",
        "found = basis @ (root * (total * most * _OUTWARD)) @ basis.T",
        "found = basis @ (root * total) @ basis.T",
        _GAUSSIAN,
    ),
    Fault(
        "the dual bound takes weights as they are, whatever their sum",
        "G-STRATEGY",
        "theory/questions/gaussian_strategy.py",
        "vectors * np.sqrt(weights / total)",
        "vectors * np.sqrt(weights)",
        _GAUSSIAN,
    ),
    Fault(
        "the best parts of the loss are not scaled to the unit that loses most",
        "G-STRATEGY",
        "theory/questions/laplace_strategy.py",
        "DiagonalStrategy(scales / (most * _OUTWARD), weights",
        "DiagonalStrategy(scales, weights",
        _LAPLACE,
    ),
    Fault(
        "sums of questions are scaled to the mean unit",
        "G-STRATEGY",
        "theory/questions/laplace_strategy.py",
        "best = best / (np.abs(best @ inside).sum(axis=0).max() * _OUTWARD)",
        "best = best / (np.abs(best @ inside).sum(axis=0).mean() * _OUTWARD)",
        _LAPLACE,
    ),
    Fault(
        "collinear regressors are asked about",
        "G-QUESTIONS",
        "theory/questions/weights.py",
        "_COLLINEAR = 1e-9",
        "_COLLINEAR = 0.0",
        _WEIGHTS,
    ),
    Fault(
        "a treated unit of another arm counts as control",
        "G-QUESTIONS",
        "theory/questions/weights.py",
        "np.where(arm == _CONTROL, control, 0.0)",
        "control",
        _WEIGHTS,
    ),
    Fault(
        "what a unit moves is rounded downwards to steps",
        "G-WHOLEQUESTIONS",
        "theory/questions/integer_strategy.py",
        "-((-np.abs(rows) * TICKS) // steps[:, None])",
        "(np.abs(rows) * TICKS) // steps[:, None]",
        _WHOLE,
    ),
    Fault(
        "the mean unit is charged",
        "G-WHOLEQUESTIONS",
        "theory/questions/integer_strategy.py",
        "Fraction(int(unit_steps(rows, steps).max()), 2**bits)",
        "Fraction(int(unit_steps(rows, steps).mean()), 2**bits)",
        _WHOLE,
    ),
    Fault(
        "outcomes count wherever they are",
        "G-WHOLEQUESTIONS",
        "theory/questions/integer_strategy.py",
        "ticks = np.clip(ticks, -TICKS // 2, TICKS // 2)",
        "ticks = ticks // 1",
        _WHOLE,
    ),
    Fault(
        "the lower halves of weights are dropped",
        "G-WHOLEQUESTIONS",
        "theory/questions/integer_strategy.py",
        "((high << _LIMB_BITS) + low) // step",
        "(high << _LIMB_BITS) // step",
        _WHOLE,
    ),
    Fault(
        "a noisy variance is taken as it is",
        "G-NOISYVARIANCE",
        "theory/questions/noisy_variance.py",
        "raised = np.maximum(variance, 0) + added_noise(confidence, ratio) * variance_scale",
        "raised = np.maximum(variance, 0)",
        _NOISY,
    ),
)
