"""The same Spark session as for records."""

from tests.data.conftest import spark

__all__ = ["spark"]
