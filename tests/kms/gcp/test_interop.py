"""Iceberg's own GcpKeyManagementClient and ours read each other's wrapped keys.

Iceberg's speaks gRPC to Google's address and has no option for another one. A test authority for TLS and an
https proxy lead it to the double; Iceberg's classes are the released ones.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from doubles.gcp import GcpKmsDouble
from doubles.gcp_grpc import HOST, GcpGrpcDouble
from harness.jvm import Jvm, start_jvm
from harness.tls import make_authority
from py4j.protocol import Py4JJavaError

DEK = b"0123456789abcdef"
STOCK = {"encryption.kms-impl": "org.apache.iceberg.gcp.GcpKeyManagementClient"}


@pytest.fixture
def grpc_double(double: GcpKmsDouble, tmp_path: Path) -> Iterator[GcpGrpcDouble]:
    started = GcpGrpcDouble(double, make_authority(tmp_path, HOST)).start()
    yield started
    started.stop()


@pytest.fixture
def jvm(double: GcpKmsDouble, grpc_double: GcpGrpcDouble, tmp_path: Path) -> Iterator[Jvm]:
    account = double.login.service_account(tmp_path / "account.json")
    started = start_jvm(
        tmp_path / "log",
        {"GOOGLE_APPLICATION_CREDENTIALS": str(account)},
        options=grpc_double.java_options,
    )
    yield started
    started.stop()


@pytest.mark.nightly
def test_each_reads_what_the_other_wrapped(
    jvm: Jvm, double: GcpKmsDouble, grpc_double: GcpGrpcDouble
) -> None:
    key = double.add_key("k1")
    endpoint = {"encryption.kms.gcp.endpoint": double.url}
    ours = jvm.client({"encryption.kms-type": "gcp", **endpoint}, raw=True)
    with_aad = jvm.client(
        {
            "encryption.kms-type": "gcp",
            "encryption.kms.gcp.additional-authenticated-data": "key-id",
            **endpoint,
        },
        raw=True,
    )
    stock = jvm.client(STOCK, raw=True)
    assert ours.unwrap(stock.wrap(DEK, key), key) == DEK
    assert stock.unwrap(ours.wrap(DEK, key), key) == DEK
    assert grpc_double.calls == ["Encrypt", "Decrypt"]
    assert set(grpc_double.proxy.asked) == {f"{HOST}:443"}
    with pytest.raises(Py4JJavaError, match="the ciphertext is invalid"):
        stock.unwrap(with_aad.wrap(DEK, key), key)
