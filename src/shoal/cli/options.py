"""Every argument and option of the command line, once: its type, its name and its help."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

MORE = "More options"
FILES = (
    "a Parquet or CSV file (also .csv.gz, .csv.zst), a pattern of files in quotes, or a folder of "
    "Parquet files"
)

# What is read.
Data = Annotated[Path, Argument(help=f"Records: {FILES}.")]
PublicData = Annotated[Path | None, Argument(help=f"{FILES.capitalize()}; no value is read.")]
PlanFile = Annotated[Path, Argument(metavar="PLAN", help="A plan, saved with --output.")]
Manifest = Annotated[Path, Argument(help="A manifest, written by `shoal release --manifest`.")]
OptionalManifest = Annotated[
    Path | None, Argument(metavar="MANIFEST", help="A manifest, written by `shoal release`.")
]
LedgerFile = Annotated[Path, Argument(help="The ledger's file; its name ends in .ledger.")]
Ledger = Annotated[Path, Option(help="The ledger of the data set, such as flights.ledger.")]
KnownLedger = Annotated[
    Path | None, Option("--ledger", help="The ledger that recorded it, such as flights.ledger.")
]
Groups = Annotated[Path | None, Option(help="A file with the public groups of units.")]
Like = Annotated[Path, Option(help="The last manifest, or a plan of cells: what is asked for.")]

# Columns of records.
User = Annotated[str, Option(help="Column that says whose record it is, such as tailnum.")]
Value = Annotated[str, Option(help="Column of the private values, such as speed.")]
By = Annotated[
    list[str] | None,
    Option(
        help="Column whose values are the cells, or timeslot(column,1h), hour_of_day(column), "
        "weekday(column), date(column), month(column), each with a time zone if wanted, "
        "bins(column,10), or hexagon(lat,lon,7); repeat. Without it all records are one cell."
    ),
]
Bounds = Annotated[
    tuple[float, float], Option(metavar="LO HI", help="Public range of the value, such as 0 700.")
]
Missing = Annotated[
    str,
    Option(
        rich_help_panel=MORE,
        help="Rows with something missing: refuse them, or drop them where it is public which they "
        "are (public).",
    ),
]

# What is asked for.
Epsilon = Annotated[str, Option(help="Total privacy loss of a user or unit, such as 1.")]
Epsilons = Annotated[list[str] | None, Option(help="Privacy loss; repeat to compare. [default: 1]")]
Delta = Annotated[
    str, Option(rich_help_panel=MORE, help="The delta of (epsilon, delta)-DP, such as 1e-9.")
]
Objective = Annotated[
    str | None,
    Option(help="What should be small: the typical error (default), or the worst_case error."),
]
MaxError = Annotated[
    str | None,
    Option(help="Leave out cells that err more: in the value's unit, or such as 5% of the range."),
]
Statistic = Annotated[
    list[str] | None,
    Option(
        rich_help_panel=MORE,
        help="mean, variance, or such as 'share_above(60)'; repeat. [default: mean]",
    ),
]
Method = Annotated[
    str | None,
    Option(
        rich_help_panel=MORE,
        help="Take this method, such as balanced, and not the one that is chosen.",
    ),
]
Methods = Annotated[
    list[str] | None, Option("--method", help="A method to compare, such as balanced; repeat.")
]
MinUsers = Annotated[
    int, Option(rich_help_panel=MORE, help="Fewest users of a released cell, such as 10.")
]
Setting = Annotated[
    list[str] | None,
    Option(
        rich_help_panel=MORE,
        metavar="NAME=VALUE",
        help="One of the settings that are listed above; repeat.",
    ),
]
Advice = Annotated[
    bool,
    Option("--advice", rich_help_panel=MORE, help="Say, too, what would let more cells be told."),
]

# What is written and shown.
Output = Annotated[Path | None, Option(help="Write the result here: a plan .json, a table .csv.")]
Stem = Annotated[
    Path, Option("--output", help="Folder for the files, or how their names begin: out/speeds.")
]
ManifestOutput = Annotated[
    Path | None, Option("--manifest", help="Write the manifest here, such as 2013-05.json.")
]
Report = Annotated[Path, Option("--output", help="Write the report here, such as report.html.")]
Picture = Annotated[
    Path | None,
    Option(rich_help_panel=MORE, help="Draw it here: a name that ends in .png, .svg or .pdf."),
]
Confidence = Annotated[
    float, Option(rich_help_panel=MORE, help="Confidence of the intervals, such as 0.9.")
]
Force = Annotated[
    bool,
    Option(
        "--force",
        rich_help_panel=MORE,
        help="Replace any file that is there, unless it is an input or a ledger.",
    ),
]
Json = Annotated[
    bool, Option("--json", rich_help_panel=MORE, help="Print sorted JSON instead of text.")
]
Folder = Annotated[Path, Option(help="Where plans, tables, pictures and the ledger go.")]

# Releases and ledgers.
Name = Annotated[
    str, Option(help="What the release is of, such as 2013-05; another name draws and costs anew.")
]
Entry = Annotated[int, Option(help="The number of the ledger's entry, if names are not unique.")]
PrivacyUnit = Annotated[
    str,
    Option(
        rich_help_panel=MORE,
        help="What the ledger calls a unit, such as person, if the column of users or units has "
        "another name or there is none; 'each row' if rows are units.",
    ),
]
Replan = Annotated[bool, Option("--replan", help="Of cells: plan again, too, and compare.")]
LedgerUnit = Annotated[
    str, Option("--unit", help="What is protected: the user column's name, or 'each row'.")
]
Head = Annotated[str, Option(help="A head noted elsewhere, which must be in the chain.")]

# Trials.
Outcome = Annotated[str, Option(help="Column of the private outcome, such as bought.")]
Arm = Annotated[str, Option(help="Column of the treatment, such as arm. Public.")]
# docs/explanation/trials.md#whole-clusters-in-one-arm
Cluster = Annotated[
    str | None,
    Option(
        help="Column of the cluster, such as city, within which units or groups were assigned; not "
        "for groups that have one arm each: these are --assigned. Public."
    ),
]
Assigned = Annotated[
    str | None,
    Option(
        help="Column of the group (class, village) that was assigned to an arm whole, or 'units': "
        "units were assigned one by one. Public."
    ),
]
Unit = Annotated[
    str | None, Option(help="Column with a name for each unit, such as person. Public.")
]
Control = Annotated[str | None, Option(help="The arm that others are compared with, such as old.")]
SingleArm = Annotated[
    str, Option(rich_help_panel=MORE, help="Clusters where an arm has nobody: refuse or drop.")
]
Space = Annotated[
    str,
    Option(help="Outcomes: binary, counts:0:10, bins:0:100:16, levels:1,2,5, or ordinal:a,b."),
]
Mechanism = Annotated[
    str | None,
    Option(
        help="Plan this table, for `shoal release`: best_table, uniform_prior, cluster_dp, "
        "cluster_free or noisy_histogram."
    ),
]
Units = Annotated[int | None, Option(max=10**12, help="Instead of a file: units, such as 6000.")]
Clusters = Annotated[int | None, Option(max=10**6, help="Of equal size, with --units.")]
Shares = Annotated[
    str | None, Option(rich_help_panel=MORE, help="Of the arms, control first, such as 0.5,0.5.")
]
Mean = Annotated[
    float | None, Option(rich_help_panel=MORE, help="Expected mean (rate, if binary), such as 0.3.")
]
Deviation = Annotated[
    float | None,
    Option("--sd", rich_help_panel=MORE, help="Expected standard deviation, such as 2."),
]
Between = Annotated[
    float, Option(rich_help_panel=MORE, help="Expected share of variance between clusters.")
]
EffectSize = Annotated[
    float | None, Option("--effect", help="Effect whose power is computed, such as 0.05.")
]
Power = Annotated[float, Option(rich_help_panel=MORE, help="Of the least detectable effect.")]
OtherUnits = Annotated[
    list[int] | None,
    Option("--against-units", max=10**12, rich_help_panel=MORE, help="Compare with; repeat."),
]
OtherClusters = Annotated[
    list[int] | None,
    Option("--against-clusters", max=10**6, rich_help_panel=MORE, help="Compare with; repeat."),
]
Effect = Annotated[bool, Option("--effect", help="Ask for the effect of each arm, units alike.")]
Precision = Annotated[
    bool, Option("--precision", help="Ask for it with the weights of clusters that err least.")
]
EffectBy = Annotated[
    list[str] | None,
    Option(help="Ask for the effect where a column has each of its values, such as sex; repeat."),
]
Means = Annotated[bool, Option("--means", help="Ask for the mean of each arm.")]
Ols = Annotated[
    list[str] | None,
    Option(
        help="Regression on columns, such as 'arm + age + arm:age + C(school)': C() takes numbers "
        "as names. Each on some of its columns is free later; repeat. With --assigned of group "
        "means."
    ),
]
Spread = Annotated[
    float | None,
    Option(rich_help_panel=MORE, help="Expected deviation of outcomes; a quarter of the range."),
]
ByCluster = Annotated[bool, Option("--by-cluster", help="Show the effects in each cluster too.")]

# Means of values without bounds.
Users = Annotated[int | None, Option(help="Instead of a file: how many users, such as 2000.")]
Order = Annotated[
    list[float] | None, Option(help="Of a central moment, 2 to 1000; repeat. [default: 2]")
]
Size = Annotated[
    list[float], Option(help="E|x - mean|^order <= size^order, one for each order; repeat.")
]
Interval = Annotated[
    tuple[float, float] | None,
    Option(metavar="LO HI", help="Public interval that holds the mean, such as 0 100."),
]
Bias = Annotated[float | None, Option(help="Most bias that is accepted; any if not given.")]
Releases = Annotated[
    int, Option(rich_help_panel=MORE, help="So many releases, each on other users, are averaged.")
]
Weights = Annotated[
    str, Option(rich_help_panel=MORE, help="Of users: equal, or by their records (counts).")
]
Cap = Annotated[
    int | None, Option(rich_help_panel=MORE, help="Largest weight, with --weights counts.")
]
IntervalBy = Annotated[
    str | None,
    Option(
        rich_help_panel=MORE,
        help="normal: squares are released beside the sum; certified: by Chebyshev, 2.2 to 2.5 "
        "times as wide. [default: normal where it can be had]",
    ),
]
HERE = Path()
