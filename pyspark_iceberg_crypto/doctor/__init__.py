"""What is wrong between a session and its master keys, and with tables."""

from pyspark_iceberg_crypto.doctor._report import DoctorReport, DoctorStep
from pyspark_iceberg_crypto.doctor._session import diagnose, not_started
from pyspark_iceberg_crypto.doctor._tables import DoctorTablesReport, diagnose_tables

__all__ = [
    "DoctorReport",
    "DoctorStep",
    "DoctorTablesReport",
    "diagnose",
    "diagnose_tables",
    "not_started",
]
