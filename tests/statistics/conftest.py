"""The same Spark session as for records."""

from tests.records.conftest import spark

__all__ = ["spark"]
