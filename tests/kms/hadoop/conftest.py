"""Who manages keys, in the KMS that a module's fixture `server` has started; and a key."""

import uuid

import pytest
from servers.hadoop_kms import ADMIN, KmsServer

from pyspark_iceberg_crypto import HadoopKms


@pytest.fixture
def admin(server: KmsServer) -> HadoopKms:
    return HadoopKms(f"kms://http@127.0.0.1:{server.port}/kms", user=ADMIN)


@pytest.fixture
def key(admin: HadoopKms) -> str:
    return admin.create_key(f"sales-{uuid.uuid4().hex[:8]}").key_id
