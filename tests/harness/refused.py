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
    explained(caught.value, words, secrets)
    return caught.value


def explained(error: IcebergCryptoError, words: Sequence[str], secrets: Sequence[str] = ()) -> None:
    """An error must say these words, have a hint, and show no secret."""
    text = str(error)
    for word in words:
        assert word in text
    for secret in secrets:
        assert secret not in text
    assert error.hint


def problem_of(*always: str, secrets: Sequence[str] = ("only-for-tests",)) -> Callable[..., None]:
    """`problem(raised, *words)`: what was raised says these words, and those of its KMS, which are always there."""

    def problem(raised: pytest.ExceptionInfo[IcebergCryptoError], *words: str) -> None:
        explained(raised.value, [*always, *words], secrets)

    return problem
