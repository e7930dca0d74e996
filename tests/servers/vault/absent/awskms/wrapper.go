// Package awskms unseals nothing: the tests' Vault is unsealed over its API.
package awskms

import (
	wrapping "github.com/hashicorp/go-kms-wrapping/v2"
	"github.com/hashicorp/go-kms-wrapping/wrappers/aead/v2"
)

// NewWrapper makes one without a key.
func NewWrapper() *aead.Wrapper { return aead.NewWrapper() }

// WithDisallowEnvVars is as of any wrapper.
func WithDisallowEnvVars(disallowed bool) wrapping.Option {
	return wrapping.WithDisallowEnvVars(disallowed)
}

// What Vault asks the environment for.
const (
	EnvAwsKmsWrapperKeyId   = "AWSKMS_WRAPPER_KEY_ID"
	EnvVaultAwsKmsSealKeyId = "VAULT_AWSKMS_SEAL_KEY_ID"
)

// WithLogger changes nothing.
func WithLogger(any) wrapping.Option {
	return func() any { return wrapping.OptionFunc(func(*wrapping.Options) error { return nil }) }
}
