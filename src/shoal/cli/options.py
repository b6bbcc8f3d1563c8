"""Every argument and option of the command line, once: its type, its name and its help."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option


def first(text: str, *names: str, **more: Any) -> Any:
    """An option that most people need, which the help lists first."""
    return Option(*names, help=text, **more)


def later(text: str, *names: str, **more: Any) -> Any:
    """An option that the help lists below the others."""
    return Option(*names, help=text, rich_help_panel="More options", **more)


def read(text: str, name: str) -> Any:
    """An argument: a file that is read."""
    return Argument(help=text, metavar=name)


OptionalText = str | None
Texts = list[str] | None
HERE = Path()
FILES = (
    "a Parquet or CSV file (also .csv.gz, .csv.zst), a pattern of files in quotes, or a folder of "
    "Parquet files"
)

# What is read.
Data = Annotated[Path, read(f"Records: {FILES}.", "DATA")]
PublicData = Annotated[Path | None, read(f"Records: {FILES}; no value is read.", "DATA")]
PlanFile = Annotated[Path, read("A plan, saved with --output.", "PLAN")]
Manifest = Annotated[
    Path, read("A manifest, as `shoal release --manifest` writes it, or a record.", "MANIFEST")
]
Manifests = Annotated[list[Path], read("Manifests of one ledger.", "MANIFEST...")]
OptionalManifest = Annotated[Path | None, read("A manifest of `shoal release`.", "MANIFEST")]
LedgerFile = Annotated[Path, read("The ledger's file; its name ends in .ledger.", "LEDGER")]
Ledger = Annotated[Path, first("The ledger of the data set, such as flights.ledger.")]
KnownLedger = Annotated[Path | None, first("The ledger that recorded the release.", "--ledger")]
Groups = Annotated[Path | None, first("A file with the public groups of the units.")]
Like = Annotated[Path, first("The manifest of the last release, or its plan.")]

# Columns of records.
User = Annotated[str, first("Column that says whose record it is, such as tailnum.")]
Value = Annotated[str, first("Column of the private values, such as speed.")]
OptionalValue = Annotated[
    OptionalText, first("Column of the private values, such as speed; users alone need none.")
]
By = Annotated[
    Texts,
    first(
        "Column whose values are the cells, or timeslot(column,1h), hour_of_day(column), "
        "weekday(column), date(column), week(column), month(column), quarter(column), "
        "year(column), each with a time zone if wanted, bins(column,10), or hexagon(lat,lon,7). "
        "Without it all records are one cell."
    ),
]
Period = Annotated[
    OptionalText,
    later(
        "Protect a user's values in one period, of a ledger with a budget in each: such as "
        "'month(at)' or 'date(at,Asia/Kolkata)', or a column with a few public values."
    ),
]
Bounds = Annotated[
    tuple[float, float], first("Public range of the value, such as 0 700.", metavar="LO HI")
]
OptionalBounds = Annotated[
    tuple[float, float] | None,
    first("Public range of the value, such as 0 700.", metavar="LO HI"),
]
Keys = Annotated[
    Texts,
    first(
        "The cells of private counts: the keys of a cell rule, such as branch=North,South, or "
        "'date(at)=2026-03-01..2026-03-31', or 'hexagon(lat,lon,7)=48.0,11.3..48.3,11.8' (two "
        "corners). All combinations of all rules are cells.",
        metavar="RULE=KEYS",
    ),
]
KeysFile = Annotated[
    Path | None,
    first("A table of the cells of private counts, with a column for each rule.", "--keys-file"),
]
Periods = Annotated[
    OptionalText,
    later("The periods that are answered and charged: 2026-05, or 2026-01..2026-12.", "--periods"),
]
Times = Annotated[
    OptionalText,
    later("How a CSV file writes the times of periods: 'with a zone', 'without a zone', or dates."),
]
AboutUsers = Annotated[
    int | None,
    first("About how many users there are: known beforehand, not from the file.", "--users"),
]
Guide = Annotated[
    str | None,
    later(
        "Private counts: the manifest of an earlier release as a guide, in place of looks and a "
        "range; or last, with which `shoal publish` takes the last release.",
        "--like",
    ),
]
RecordsPerUser = Annotated[
    int | None, first("Each user counts for at most so many records.", "--records-per-user")
]
Missing = Annotated[
    str,
    later(
        "Missing values: refuse, or public (drop rows if all know them); of questions of a trial "
        "also worst (intervals hold whatever missing outcomes are)."
    ),
]

# What is asked for.
Epsilon = Annotated[str, first("Total privacy loss of a user or unit, such as 1.")]
Epsilons = Annotated[Texts, first("Privacy loss; several are compared. [default: 1]", "--epsilon")]
Delta = Annotated[str, later("The delta of (epsilon, delta)-DP, such as 1e-9.")]
Objective = Annotated[
    OptionalText, first("Which error to make small: typical (default) or worst_case.")
]
MaxError = Annotated[
    OptionalText, first("Leave out cells with a larger error: 5 (value's unit) or 5% (of range).")
]
Statistic = Annotated[
    Texts,
    first(
        "Private counts: users, records, sum, mean, median, 'quantile(0.9)', 'share_above(60)', "
        "histogram. Public counts: these but users and records, and std, variance, cdf."
    ),
]
Method = Annotated[
    OptionalText, later("Method to use, such as balanced, instead of the one that shoal chooses.")
]
Methods = Annotated[Texts, first("A method to compare, such as balanced.", "--method")]
MinUsers = Annotated[
    int | None,
    later(
        "Public counts: leave out cells with fewer users, such as 10. [default: 3] Private counts: "
        "mark cells with a smaller noisy number of users."
    ),
]
Setting = Annotated[
    Texts,
    later("A setting of the method, as listed above.", metavar="NAME=VALUE"),
]
Advice = Annotated[bool, later("Show which changes would make more cells reliable.", "--advice")]

# What is written and shown.
Output = Annotated[Path | None, first("File for the result, such as plan.json or table.csv.")]
Stem = Annotated[Path, first("Folder for the files, or the beginning of their names.", "--output")]
ManifestOutput = Annotated[
    Path | None, first("Write the manifest here, such as 2013-05.json.", "--manifest")
]
RecordOutput = Annotated[
    Path | None,
    first("Write the record here: not for everybody.", "--record"),
]
KnownRecord = Annotated[Path | None, first("The record of the manifest.", "--record")]
Report = Annotated[Path, first("Write the report here, such as report.html.", "--output")]
Papers = Annotated[Path, first("A folder for the papers, which is made.", "--output")]
Facts = Annotated[
    Path | None, first("What only a person knows. [default: facts.yaml in the folder]")
]
Title = Annotated[str, first("Title of the page, such as 'Time in the library'.")]
Label = Annotated[str, first("Word for the values on axes and in tables, such as minutes.")]
Picture = Annotated[Path | None, later("File for a picture; its name ends in .png, .svg or .pdf.")]
Confidence = Annotated[float, later("Confidence of the intervals, such as 0.9.")]
TwoCells = Annotated[
    tuple[str, str] | None,
    later(
        "The mean of one cell minus that of another, with an interval; several keys of a cell have "
        "commas between them.",
        metavar="A B",
    ),
]
Force = Annotated[
    bool, later("Replace files that exist; inputs and ledgers are never replaced.", "--force")
]
Anyway = Annotated[bool, later("Release a plan that likely makes no cell reliable.", "--anyway")]
Json = Annotated[bool, later("Print sorted JSON instead of text.", "--json")]
Folder = Annotated[Path, first("A new folder for plans, tables, pictures and the ledger.")]

# Releases and ledgers.
Name = Annotated[
    str,
    first(
        "Name of the release, such as 2013-05. A new name is charged again, and so is another "
        "request under this name."
    ),
]
Entry = Annotated[int | None, first("Number of the entry, if its name is not unique.")]
PrivacyUnit = Annotated[
    str,
    later(
        "The ledger's word for a user or unit, such as person, if their column has another name "
        "or there is no such column; 'each row' if each row is a unit."
    ),
]
Replan = Annotated[bool, first("Plan again and compare the plans (cells only).", "--replan")]
LedgerUnit = Annotated[
    str, first("Whose privacy loss is counted: the user column, or 'each row'.", "--privacy-unit")
]
Counts = Annotated[
    str,
    first("Who has how many records in which cell is private, or public: everybody may know it."),
]
LedgerPeriod = Annotated[
    OptionalText,
    first(
        "The budget holds in each period: day, week, month, quarter, year, or a column.", "--period"
    ),
]
Total = Annotated[
    OptionalText, later("With --period: most epsilon that a user may lose over all periods.")
]
Reason = Annotated[str, first("Why, in a few words that everybody may read, such as 'wrong file'.")]
Withdrawn = Annotated[
    bool, later("Show the release also if the ledger says that it was withdrawn.", "--withdrawn")
]
Head = Annotated[str, first("A head of this ledger that you noted earlier, to be found again.")]

# Trials.
Outcome = Annotated[str, first("Column of the private outcome, such as bought.")]
Arm = Annotated[str, first("Column of the treatment, such as arm. Public.")]
# docs/experiments.md#groups-that-were-assigned-whole
Cluster = Annotated[
    OptionalText,
    first(
        "Cluster column, such as city, if units or groups were assigned within each cluster. For "
        "groups whose units all have the same arm use --assigned. Public."
    ),
]
Assigned = Annotated[
    OptionalText,
    first(
        "Column of the groups (classes, villages) that were assigned to arms as a whole, or "
        "'units' if units were assigned one by one. Public."
    ),
]
UserOfRows = Annotated[
    OptionalText,
    first(
        "Column that says whose each row is, such as person; names are not published. 'each row' "
        "declares that each row is another --privacy-unit.",
        "--user",
    ),
]
PerUser = Annotated[
    OptionalText,
    first("The outcome of a user with several rows: mean, sum, any, or last:COLUMN.", "--per-user"),
]
Unit = Annotated[OptionalText, first("Column with a name for each unit, such as person. Public.")]
Control = Annotated[OptionalText, first("The arm that others are compared with, such as old.")]
SingleArm = Annotated[str, later("Refuse or drop clusters in which an arm has no units.")]
Domain = Annotated[
    str, first("Outcomes: binary, counts:0:10, bins:0:100:16, levels:1,2,5, or ordinal:a,b.")
]
Domains = Annotated[
    list[str],
    first(
        "Outcomes: binary, counts:0:10, bins:0:100:16, levels:1,2,5, or ordinal:a,b; of a ratio "
        "that of the numerator, and again that of the denominator.",
        "--domain",
    ),
]
Ratio = Annotated[
    tuple[str, str] | None,
    first(
        "Instead of --outcome: the ratio of the sums of two columns of a log; 'rows' counts rows.",
        metavar="NUMERATOR DENOMINATOR",
    ),
]
Expected = Annotated[
    tuple[float, float] | None,
    later("Of a ratio: expected means of numerator and denominator.", metavar="X Y"),
]
Lift = Annotated[bool, later("Of a ratio: show also ratio / ratio of the control - 1.", "--lift")]
MissingValue = Annotated[float | None, later("What a missing outcome counts as, such as 0.")]
Mechanism = Annotated[
    OptionalText,
    first(
        "Plan a release by this mechanism: best_table, uniform_prior, cluster_prior or histogram."
    ),
]
Units = Annotated[int | None, first("Instead of a file: number of units, such as 6000.")]
Clusters = Annotated[int | None, first("With --units: number of clusters, of equal size.")]
Share = Annotated[list[float] | None, later("Share of each arm, the control first, such as 0.5.")]
Mean = Annotated[float | None, later("Expected mean (rate, if binary), such as 0.3.")]
Deviation = Annotated[float | None, later("Expected standard deviation, such as 2.", "--sd")]
Between = Annotated[float, later("Expected share of the variance that lies between clusters.")]
EffectSize = Annotated[
    float | None, first("Effect for which to compute the power, such as 0.05.", "--effect")
]
Caps = Annotated[
    tuple[float, float, float] | None,
    first(
        "Show what caps on amounts would cost, for guesses of the part of units with an amount, "
        "and of their median and mean, such as 0.1 40 90.",
        metavar="SHARE MEDIAN MEAN",
    ),
]
Power = Annotated[float, later("Power at which the least detectable effect is computed.")]
OtherUnits = Annotated[
    list[int] | None, later("Compare other numbers of units.", "--against-units")
]
OtherClusters = Annotated[
    list[int] | None, later("Compare other numbers of clusters.", "--against-clusters")
]
Effect = Annotated[bool, first("Ask for the effect of each arm.", "--effect")]
Precision = Annotated[
    bool,
    first("Ask for the effect, with clusters weighted for the least error.", "--precision"),
]
EffectBy = Annotated[Texts, first("Ask for the effect in each group of a column, such as sex.")]
Means = Annotated[bool, first("Ask for the mean of each arm.", "--means")]
Ols = Annotated[
    Texts,
    first(
        "Ask for a regression, such as 'arm + age + arm:age + C(school)', where C() treats "
        "numbers as names. Regressions on fewer of these columns are free later."
    ),
]
Sd = Annotated[float | None, later("Expected standard deviation of outcomes.")]
ByCluster = Annotated[bool, first("Show the effects in each cluster too.", "--by-cluster")]

# Means of unbounded values.
Users = Annotated[int | None, first("Instead of a file: number of users, such as 2000.")]
Order = Annotated[
    list[float] | None, first("Order of a known central moment, such as 4. [default: 2]")
]
Size = Annotated[
    list[float],
    first("Size of each moment, such as 15: E|x - mean|^order <= size^order."),
]
Interval = Annotated[
    tuple[float, float] | None,
    first("Public interval that holds the mean, such as 0 100.", metavar="LO HI"),
]
Bias = Annotated[float | None, first("Largest bias that you accept, such as 0.1. [default: any]")]
Releases = Annotated[int, later("Number of releases, of different users, that will be averaged.")]
Weights = Annotated[str, later("Weights of users: equal, or counts (of their records).")]
Cap = Annotated[int | None, later("Largest weight, with --weights counts.")]
IntervalBy = Annotated[
    OptionalText,
    later(
        "normal: from squares that are released beside the sum; certified: by Chebyshev's "
        "inequality, 2.2 to 2.5 times as wide. [default: normal if possible]"
    ),
]
