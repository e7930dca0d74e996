/** AWS KMS, by the AWS SDK that iceberg-aws-bundle brings. */
package io.icebergcrypto.kms.aws;
