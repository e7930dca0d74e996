"""The command ``iceberg-crypto``.

Exit codes: 0 all is well (everything is encrypted, every key can be used), 1 a problem was found, 2 it could
not be checked or done.
"""

from __future__ import annotations

import click

from pyspark_iceberg_crypto import __version__
from pyspark_iceberg_crypto.cli._doctor import doctor
from pyspark_iceberg_crypto.cli._kms import kms
from pyspark_iceberg_crypto.cli._tables import demo, inspect, verify


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Apache Iceberg table encryption: proof, keys, and a demonstration."""


for _command in (demo, doctor, inspect, kms, verify):
    main.add_command(_command)
