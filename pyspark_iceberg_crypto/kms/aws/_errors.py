"""What the errors of boto3 mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark_iceberg_crypto import errors
from pyspark_iceberg_crypto.kms._errors import ErrorTable, Rule, http_status


def _read(error: Any) -> tuple[Sequence[str], str]:
    answer = getattr(error, "response", None)
    if not isinstance(answer, dict):
        return (), str(error)
    code = str(answer["Error"].get("Code", ""))
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    kind = "Throttling" if "Throttling" in code else http_status(status)
    said = f"{code}, {answer['Error'].get('Message', '')}"
    # A failing custom key store has the same code: a key's own state is pending deletion, or import.
    is_pending = code == "KMSInvalidStateException" and "pending " in said
    return (*(["pending"] if is_pending else []), code, kind), said


ERRORS = ErrorTable(
    [
        # Without {said}: the message of a bad signature repeats the request's headers, a token among them.
        Rule(
            "UnrecognizedClientException InvalidClientTokenId ExpiredTokenException "
            "ExpiredToken MissingAuthenticationToken IncompleteSignature "
            "InvalidSignatureException SignatureDoesNotMatch RequestExpired",
            errors.LoginFailedError,
            "log in again; check the credentials, and this host's clock",
            "{what}: login refused ({code})",
        ),
        Rule(
            "botocore.exceptions.NoCredentialsError botocore.exceptions.PartialCredentialsError",
            errors.LoginFailedError,
            "aws configure, AwsKms(profile=...), or a role of the host",
            "{what}: there is no login: {said}",
        ),
        Rule(
            "NotFoundException InvalidArnException",
            errors.KeyNotFoundError,
            "check the name, the region and the account",
        ),
        Rule("DisabledException", errors.KeyDisabledError, "aws kms enable-key"),
        Rule("pending", errors.KeyDisabledError, "aws kms describe-key shows its state"),
        Rule(
            "KMSInvalidStateException",
            errors.IcebergCryptoError,
            "aws kms describe-key shows its state; if it is in a custom key store, aws kms describe-custom-key-stores "
            "shows whether that is connected",
        ),
        Rule(
            "AccessDeniedException",
            errors.AccessDeniedError,
            "set-up needs kms:CreateKey, CreateAlias, ListKeys, ListAliases, DescribeKey, "
            "ListKeyRotations, RotateKeyOnDemand",
        ),
        Rule(
            "AlreadyExistsException InvalidAliasNameException",
            errors.ConfigurationError,
            "choose another name",
        ),
        Rule("ValidationException", errors.ConfigurationError, "check the name and the arguments"),
        Rule("LimitExceededException", errors.NotSupportedError, "see the quotas of AWS KMS"),
        Rule(
            "UnsupportedOperationException",
            errors.NotSupportedError,
            "it takes a symmetric key that AWS KMS made, and of a multi-Region key the primary one",
        ),
        Rule(
            "InvalidKeyUsageException",
            errors.NotSupportedError,
            "it takes a symmetric encryption key",
        ),
        Rule("Throttling ConflictException 429 5xx", errors.KmsUnavailableError),
        Rule(
            "botocore.exceptions.ClientError",
            errors.IcebergCryptoError,
            "see the error's code in AWS KMS's API reference",
        ),
        Rule(
            "botocore.exceptions.NoRegionError botocore.exceptions.ProfileNotFound ValueError",
            errors.ConfigurationError,
            "AwsKms(region=..., profile=...), or set AWS_REGION and AWS_PROFILE",
        ),
        Rule(
            "botocore.exceptions.ParamValidationError",
            errors.ConfigurationError,
            "check the arguments",
        ),
        Rule(
            "botocore.exceptions.BotoCoreError",
            errors.KmsUnavailableError,
            "check the region, the endpoint and the network",
        ),
    ],
    _read,
)
