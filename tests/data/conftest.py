"""Engines for the records: files, frames in memory, DuckDB, and Spark where there is Java 17."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest


def _java() -> str | None:
    """Why Spark cannot run here, or None if it can."""
    java = shutil.which("java")
    if java is None:
        return "no Java on the path"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < 17:
        return "Java older than 17"
    return None


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local Spark session."""
    reason = _java()
    if reason:
        pytest.skip(reason)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[1]")
            .appName("shoal tests")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.session.timeZone", "America/New_York")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
