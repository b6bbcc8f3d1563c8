"""The core does without what only extras bring."""

import subprocess
import sys
from pathlib import Path

EXTRAS = "ibis pandas polars matplotlib h3ronpy pyspark dp_accounting causaldata"
RUN = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split():
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from shoal.cli.main import main

rng = np.random.default_rng(1)
who = np.repeat(np.arange(60), 20)
records = pa.table({
    "who": pa.array(who), "place": pa.array(rng.choice(["a", "b"], 1200)),
    "speed": pa.array(rng.normal(30, 5, 1200).clip(0, 60)), "arm": pa.array(who % 2),
    "bought": pa.array(rng.integers(0, 2, 1200)), "row": pa.array(np.arange(1200)),
})
csv.write_csv(records, "r.csv")
parquet.write_table(records, "r.parquet")
for file in ("r.csv", "r.parquet"):
    end = file.partition(".")[2]
    known = "--counts public --user who --value speed --bounds 0 60 --by place --epsilon 1"
    for line in (
        f"plan {file} {known} --output {end}.json",
        f"ledger create {end}.ledger --epsilon 9 --delta 1e-3 --privacy-unit who "
        "--counts public",
        f"release {file} {end}.json --ledger {end}.ledger --output {end}-t.csv "
        f"--manifest {end}-m.json",
        f"verify {end}-m.json --ledger {end}.ledger",
        f"compare {file} {known} --setting repetitions=2",
        f"ledger create {end}-trial.ledger --epsilon 9 --privacy-unit row --counts public",
        f"trial plan {file} --outcome bought --arm arm --unit row --epsilon 1 "
        f"--mechanism uniform_prior --output {end}-t.json",
        f"release {file} {end}-t.json --ledger {end}-trial.ledger --output {end}-u.parquet",
        f"trial ask {file} --outcome bought --arm arm --user row --domain binary --epsilon 1 "
        "--effect",
        f"mean plan {file} --user who --value speed --epsilon 1 --size 9 --interval 0 60 "
        f"--bias 0.1 --output {end}-mean.json",
        f"release {file} {end}-mean.json --ledger {end}.ledger",
        f"show {end}-m.json --json",
    )[: 12 if end == "csv" else 3]:
        assert main(line.split()) == 0, line
print("done")
"""


def test_every_verb_runs_without_the_extras(tmp_path: Path) -> None:
    """No verb but pictures needs pandas, Polars, Matplotlib, or another part of an extra."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN, EXTRAS],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.stdout.endswith("done\n"), ran.stdout + ran.stderr
