"""What a refusal must be."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pyspark_iceberg_crypto import IcebergCryptoError


def refused(
    kind: type[IcebergCryptoError],
    call: Callable[[], Any],
    *words: str,
    secrets: Sequence[str] = (),
) -> IcebergCryptoError:
    """Makes a call that must fail with this type of error and no other, these words, a hint, and no secret."""
    with pytest.raises(IcebergCryptoError) as caught:
        call()
    assert type(caught.value) is kind, caught.value
    text = str(caught.value)
    for word in words:
        assert word in text
    for secret in secrets:
        assert secret not in text
    assert caught.value.hint
    return caught.value
