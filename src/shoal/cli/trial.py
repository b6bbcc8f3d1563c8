"""`shoal trial`: forecasts of experiments with private outcomes, and plans of their releases."""

from typing import TYPE_CHECKING, Any

from shoal.cli import options as o
from shoal.cli.output import check_places, finish, nothing_left, settings_of, taken
from shoal.errors import InputError
from shoal.progress import working

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.release.plan import Source
    from shoal.trials import Domain, Experiment, Plan, Questions

_SETTINGS = ("levels", "floor", "noise", "pooled", "rounding", "clustering_epsilon")
_MECHANISMS = ("best_table", "uniform_prior", "cluster_prior", "histogram")
_EACH_ROW = (
    "each row is one unit, and the charge protects each row; if the ledger counts users, give "
    "their column as --user and, if they have several rows, --per-user"
)


def plan(
    data: o.PublicData = None,
    arm: o.Arm = "",
    cluster: o.Cluster = None,
    user: o.UserOfRows = None,
    per_user: o.PerUser = None,
    unit: o.Unit = None,
    outcome: o.Outcome = "",
    control: o.Control = None,
    units: o.Units = None,
    clusters: o.Clusters = None,
    domain: o.Domain = "binary",
    epsilon: o.Epsilons = None,
    effect: o.EffectSize = None,
    mechanism: o.Mechanism = None,
    output: o.Output = None,
    delta: o.Delta = "0",
    share: o.Share = None,
    mean: o.Mean = None,
    sd: o.Deviation = None,
    between: o.Between = 0.0,
    caps: o.Caps = None,
    power: o.Power = 0.8,
    confidence: o.Confidence = 0.95,
    against_units: o.OtherUnits = None,
    against_clusters: o.OtherClusters = None,
    single_arm: o.SingleArm = "refuse",
    missing: o.Missing = "refuse",
    setting: o.Setting = None,
    picture: o.Picture = None,
    privacy_unit: o.PrivacyUnit = "",
    force: o.Force = False,
    as_json: o.Json = False,
) -> None:
    """Forecast errors and power of every mechanism, or plan a release by one.

    Example: shoal trial plan --units 6000 --clusters 30 --domain binary --epsilon 1 --effect 0.05

    With --mechanism, the command makes a plan for `shoal release`; it needs a file, --arm and
    --outcome.

    Settings: levels=all or a number, rounding=nearest, clustering_epsilon=0.5 (privacy loss of
    clusters that were made privately); of cluster_prior floor=0.1, noise=10, and pooled=yes for
    one histogram an arm.
    """
    from shoal import trials
    from shoal.trials.columns_of_a_file import read_trial
    from shoal.trials.domain import domain_of

    check_places({"DATA": data}, force=force, output=output, picture=picture)
    losses = epsilon or ["1"]
    settings = settings_of(setting)
    outcomes = domain_of(domain, **taken(settings, "rounding"))
    source = _source(
        outcome,
        missing=missing,
        single_arm=single_arm,
        arm=arm,
        cluster=cluster,
        user=user,
        per_user=per_user,
        unit=unit,
        privacy_unit=privacy_unit,
    )
    if mechanism is not None:
        if data is None or not arm or not outcome or len(losses) != 1 or picture is not None:
            raise InputError(
                "--mechanism needs DATA, --arm, --outcome and one --epsilon, and no --picture",
                "give these four without --picture, or leave --mechanism out for a forecast",
            )
        clustering = taken(settings, "clustering_epsilon")
        with working("reading public columns, planning"):
            study, _ = read_trial(data, source, [outcomes], control=control, **clustering)
            made = _table(study, outcomes, mechanism, losses[0], delta, settings)
        _finish(made, source, output=output, force=force, as_json=as_json)
        return
    nothing_left(settings, *_SETTINGS)
    if output is not None:
        raise InputError("a forecast cannot be saved", "leave --output out, or give --mechanism")
    sizes = _sizes(data, units, source, outcomes, control)
    if caps is not None:
        part, median, middle = caps
        tried = trials.caps(sizes, share=part, median=median, mean=middle, epsilon=losses[0])
        rows = tried.table().to_pylist()
        finish(tried, document=lambda: {"caps": rows}, force=force, as_json=as_json)
        return
    with working("forecasting"):
        found = trials.forecast(
            sizes,
            outcomes,
            losses[0],
            delta=delta,
            clusters=clusters,
            shares=share,
            expected=_expected(mean, sd, between),
            effect=effect,
            confidence=confidence,
            power=power,
        )
        text = str(found)
        more = {}
        if len(losses) > 1 or against_units or against_clusters:
            from shoal.files.text_table import first_rows

            grid = found.against(n=against_units, epsilon=losses, clusters=against_clusters)
            more = {"against": grid.to_pylist()}
            text += f"\n{first_rows('', grid.drop_columns(['releases']), rows=grid.num_rows)}"
    finish(
        found,
        text,
        lambda: found.to_document() | more,
        picture=picture,
        force=force,
        as_json=as_json,
    )


def _sizes(
    data: "Path | None", units: int | None, source: "Source", outcomes: "Domain", control: Any
) -> Any:
    """Return the units of each cell of a file, or how many units there are without a file."""
    from shoal.trials.columns_of_a_file import read_trial

    both_or_neither = (data is None) == (units is None)
    arm_fits = bool(source.arm) == (data is not None)
    if both_or_neither or not arm_fits:
        raise InputError(
            "it is not clear how many units there are",
            "give DATA with --arm; or, without both, for example --units 6000 --clusters 30",
        )
    if data is None:
        return units
    study, _ = read_trial(data, source, [outcomes], control=control)
    return study.design.sizes


def _expected(mean: float | None, sd: float | None, between: float) -> Any:
    """Return what is expected of outcomes, or None if no option says anything of them."""
    from shoal.trials import Expected

    if mean is None and sd is None and not between:
        return None
    given: Any = mean
    return Expected(given, sd, between)


def ask(
    data: o.Data,
    arm: o.Arm,
    epsilon: o.Epsilon,
    domain: o.Domains,
    outcome: o.Outcome = "",
    ratio: o.Ratio = None,
    expected: o.Expected = None,
    lift: o.Lift = False,
    cluster: o.Cluster = None,
    user: o.UserOfRows = None,
    per_user: o.PerUser = None,
    assigned: o.Assigned = None,
    control: o.Control = None,
    missing: o.Missing = "refuse",
    missing_value: o.MissingValue = None,
    effect: o.Effect = False,
    precision: o.Precision = False,
    effect_by: o.EffectBy = None,
    means: o.Means = False,
    ols: o.Ols = None,
    output: o.Output = None,
    sd: o.Sd = None,
    single_arm: o.SingleArm = "refuse",
    picture: o.Picture = None,
    privacy_unit: o.PrivacyUnit = "",
    force: o.Force = False,
    as_json: o.Json = False,
) -> None:
    """Plan answers to questions of an experiment, with their errors.

    No outcome is read. Arms, clusters and all columns that you name are public, and are published
    with the answers. To save a plan for `shoal release` give --outcome. If whole classes or
    villages were assigned to an arm, give their column as --assigned.

    Example: shoal trial ask visits.csv --arm arm --cluster city --outcome bought --epsilon 1
    --domain binary --effect --effect-by sex --ols "arm + age + sex" --output asked.json
    """
    from shoal.trials.columns_of_a_file import (
        check_names,
        column_name,
        domains_of,
        formula,
        read_trial,
    )

    check_places({"DATA": data}, force=force, output=output, picture=picture)
    domains = domains_of(domain)
    if not (effect or precision or effect_by or means or ols):
        raise InputError("no question is asked", "give --effect, --effect-by, --means or --ols")
    if output is not None and not (outcome or ratio):
        raise InputError("--output needs --outcome", "give for example --outcome bought")
    if outcome and ratio:
        raise InputError("--outcome and --ratio are two questions", "give one of them")
    source = _source(
        ratio or outcome,
        missing_value=missing_value,
        single_arm=single_arm,
        arm=arm,
        cluster=cluster,
        user=user,
        per_user=per_user,
        assigned=assigned,
        missing=missing,
        privacy_unit=privacy_unit,
    )
    formulas = [formula(source, text) for text in ols or []]
    subgroups = [column_name(source, each) for each in effect_by or []]
    names = list(subgroups)
    for columns in formulas:
        for name in columns:
            # A product of columns has colons between their names.
            names += name.split(":")
    check_names(data, [*(ols or []), *(effect_by or [])])
    with working("reading public columns, sharing the noise"):
        study, _ = read_trial(data, source, domains, names, control=control)
        asked = _asked(study, subgroups, formulas, effect=effect, precision=precision, means=means)
        more: dict[str, Any] = {"sd": sd, "expected": expected, "lift": lift, "missing": missing}
        made = asked.plan(domains, epsilon, **more)
    _finish(made, source, output=output, picture=picture, force=force, as_json=as_json)


def _asked(
    study: "Experiment",
    subgroups: list[str],
    formulas: list[list[str]],
    *,
    effect: bool,
    precision: bool,
    means: bool,
) -> "Questions":
    """Return the questions that options ask, in the order of the help."""
    asked = study.ask()
    if effect:
        asked = asked.effect()
    if precision:
        asked = asked.effect(weights="precision")
    for each in subgroups:
        asked = asked.effect(by=each)
    if means:
        asked = asked.means()
    for columns in formulas:
        asked = asked.regression(columns)
    return asked


def _finish(made: "Plan", source: "Source", **places: Any) -> None:
    """Save, draw and show a plan, which says for which columns it is."""
    # Only plans of questions predict errors; of others the whole plan is shown as JSON.
    predictions: Any = getattr(made, "predictions", None)

    def document() -> dict[str, Any]:
        return {"epsilon": made.epsilon, "questions": predictions().to_pylist()}

    planned = made.with_source(source)
    text = planned if source.protects else f"{planned}\n{_EACH_ROW}"
    finish(planned, text, predictions and document, **places)


def _source(outcome: str | tuple[str, str], **columns: Any) -> "Source":
    """Return the columns of a trial, and what happens to missing values."""
    from shoal.trials.columns_of_a_file import source_of

    if columns.get("missing") == "public" and not outcome:
        raise InputError("--missing public needs --outcome", "give for example --outcome bought")
    given = {name: None if each == "" else each for name, each in columns.items()}
    return source_of(outcome, **given)


def _table(
    study: "Experiment", domain: "Domain", kind: str, epsilon: str, delta: str, settings: Any
) -> "Plan":
    """Plan a table of units, or histograms, by the name of the mechanism."""
    from shoal.checks import choice
    from shoal.trials import ClusterPrior

    choice(kind, _MECHANISMS, "mechanism")
    prior = taken(settings, "floor", "noise", "pooled")
    chosen = taken(settings, "levels")
    nothing_left(settings, *_SETTINGS)
    mechanism: Any = kind
    if kind == "cluster_prior":
        if not {"floor", "noise"} <= prior.keys():
            raise InputError(
                "cluster_prior lacks its floor or noise",
                "give both, for example --setting floor=0.1 --setting noise=10",
            )
        pooled = choice(prior.get("pooled", "no"), ("yes", "no"), "pooled") == "yes"
        mechanism = ClusterPrior(prior["floor"], prior["noise"], pooled)
    elif prior:
        raise InputError(
            f"the mechanism {kind} takes no {next(iter(prior))}",
            "leave floor, noise and pooled out, or give --mechanism cluster_prior",
        )
    if kind != "histogram":
        return study.table(domain, epsilon, delta=delta, mechanism=mechanism, **chosen)
    if chosen or delta != "0":
        raise InputError("the mechanism histogram takes no levels and no delta", "leave them out")
    return study.histogram(domain, epsilon)
