"""AWS as two programs imitate it, in processes of their own, on 127.0.0.1: moto (KMS, S3), ministack (KMS, S3 Tables).

moto checks encryption contexts and tampering, but lets disabled keys work. ministack checks a key's state, but
not tampering. Neither checks logins, permissions or clocks, nor limits the rate.
"""

import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import boto3
from harness.jvm import ENVIRONMENT
from harness.programs import free_port, start_logging, wait_for_end, wait_until_it_listens
from harness.used import used

REGION = "us-east-1"
ACCOUNT = "123456789012"


@dataclass
class AwsServer:
    """A running imitation. `stop` ends this process and no other."""

    process: "subprocess.Popen[bytes]"
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def boto(self, service: str, region: str = REGION) -> Any:
        """A boto3 client: an oracle beside our own code."""
        return boto3.client(
            service,
            region_name=region,
            endpoint_url=self.url,
            aws_access_key_id=ENVIRONMENT["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
        )

    def create_key(self, region: str = REGION, **arguments: Any) -> str:
        """Makes a key (a symmetric one, unless told otherwise) and returns its id."""
        return str(self.boto("kms", region).create_key(**arguments)["KeyMetadata"]["KeyId"])

    def stop(self) -> None:
        self.process.terminate()
        wait_for_end(self.process)


def start_moto(log: Path) -> AwsServer:
    """Starts moto; returns once it listens."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    used("moto", version("moto"))
    return _start(command, {}, port, log)


def start_ministack(log: Path, services: str = "kms") -> AwsServer:
    """Starts ministack with some services of AWS; returns once it listens."""
    port = free_port()
    environment = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": services,
        "IOT_MTLS_ENABLED": "0",  # it would listen on every address
        "TMPDIR": str(log.parent),
    }
    used("ministack", version("ministack"))
    return _start([sys.executable, "-m", "ministack"], environment, port, log)


def catalog_on_s3(moto: AwsServer, bucket: str) -> dict[str, str]:
    """Makes a bucket, and returns a catalog's properties that keep tables there.

    S3FileIO's login comes from the environment of Spark's JVMs, as the KMS's does: they need ENVIRONMENT's
    AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (any value will do for moto), and iceberg-aws-bundle.
    """
    moto.boto("s3").create_bucket(Bucket=bucket)
    return {
        "warehouse": f"s3://{bucket}/warehouse",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": moto.url,
        "s3.path-style-access": "true",
        "client.region": REGION,
    }


def _start(command: list[str], environment: dict[str, str], port: int, log: Path) -> AwsServer:
    process = start_logging(command, log, environment)
    wait_until_it_listens(process, port, log)
    return AwsServer(process, port)
