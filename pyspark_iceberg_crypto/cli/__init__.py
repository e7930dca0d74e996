"""The command ``iceberg-crypto``."""

from __future__ import annotations

import click

from pyspark_iceberg_crypto import __version__
from pyspark_iceberg_crypto.cli._decrypt import decrypt
from pyspark_iceberg_crypto.cli._demo import demo
from pyspark_iceberg_crypto.cli._doctor import doctor
from pyspark_iceberg_crypto.cli._encrypt import encrypt
from pyspark_iceberg_crypto.cli._inspect import inspect
from pyspark_iceberg_crypto.cli._jar import jar
from pyspark_iceberg_crypto.cli._keys import keys
from pyspark_iceberg_crypto.cli._kms import kms
from pyspark_iceberg_crypto.cli._prune import prune
from pyspark_iceberg_crypto.cli._reencrypt import reencrypt
from pyspark_iceberg_crypto.cli._repair import repair
from pyspark_iceberg_crypto.cli._report import report
from pyspark_iceberg_crypto.cli._rotate import rotate
from pyspark_iceberg_crypto.cli._verify import verify


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Apache Iceberg table encryption: proof, keys, and a demonstration.

    \b
    Exit codes:
      0  all is well: everything is encrypted, every key can be used, it is done
      1  a problem was found: a file or table that is not encrypted, a step that failed
      2  it could not be checked or done; standard error says why
    """  # noqa: D301 (click's mark for lines to leave as they are)


for _command in (
    decrypt,
    demo,
    doctor,
    encrypt,
    inspect,
    jar,
    keys,
    kms,
    prune,
    reencrypt,
    repair,
    report,
    rotate,
    verify,
):
    main.add_command(_command)
