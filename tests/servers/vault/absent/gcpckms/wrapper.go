// Package gcpckms unseals nothing: the tests' Vault is unsealed over its API.
package gcpckms

import (
	"github.com/hashicorp/go-kms-wrapping/wrappers/aead/v2"
)

// NewWrapper makes one without a key.
func NewWrapper() *aead.Wrapper { return aead.NewWrapper() }

// What Vault asks the environment for.
const (
	EnvGcpCkmsWrapperCredsPath   = "GOOGLE_CREDENTIALS"
	EnvGcpCkmsWrapperCryptoKey   = "GCPCKMS_WRAPPER_CRYPTO_KEY"
	EnvGcpCkmsWrapperKeyRing     = "GCPCKMS_WRAPPER_KEY_RING"
	EnvGcpCkmsWrapperLocation    = "GOOGLE_REGION"
	EnvGcpCkmsWrapperProject     = "GOOGLE_PROJECT"
	EnvVaultGcpCkmsSealCryptoKey = "VAULT_GCPCKMS_SEAL_CRYPTO_KEY"
	EnvVaultGcpCkmsSealKeyRing   = "VAULT_GCPCKMS_SEAL_KEY_RING"
)
