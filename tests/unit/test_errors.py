import pickle

import pytest

import pyspark_iceberg_crypto as package
from pyspark_iceberg_crypto import IcebergCryptoError, KeyNotFoundError, errors


def test_an_error_shows_its_hint_on_a_line_of_its_own() -> None:
    error = KeyNotFoundError("no key 'k9'", "create it")
    assert str(error) == "no key 'k9'\n  hint: create it"
    assert (error.message, error.hint) == ("no key 'k9'", "create it")


def test_an_error_without_a_hint_is_its_message() -> None:
    assert str(IcebergCryptoError("it broke")) == "it broke"


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(KeyNotFoundError("no key", "create it")))
    assert (type(error), error.message, error.hint) == (KeyNotFoundError, "no key", "create it")


@pytest.mark.parametrize("name", [name for name in vars(errors) if name.endswith("Error")])
def test_every_error_has_the_one_root_and_is_public(name: str) -> None:
    assert issubclass(getattr(errors, name), IcebergCryptoError)
    assert name in package.__all__
