"""What is wrong between a session and its master keys, and with tables."""

from pyspark_iceberg_crypto.doctor._session import Diagnosis, diagnose, not_started
from pyspark_iceberg_crypto.doctor._tables import TablesDiagnosis, diagnose_tables

__all__ = ["Diagnosis", "TablesDiagnosis", "diagnose", "diagnose_tables", "not_started"]
