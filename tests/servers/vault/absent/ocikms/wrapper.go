// Package ocikms unseals nothing: the tests' Vault is unsealed over its API.
package ocikms

import (
	"github.com/hashicorp/go-kms-wrapping/wrappers/aead/v2"
)

// NewWrapper makes one without a key.
func NewWrapper() *aead.Wrapper { return aead.NewWrapper() }

// What a configuration would name.
const (
	KmsConfigKeyId              = "key_id"
	KmsConfigCryptoEndpoint     = "crypto_endpoint"
	KmsConfigManagementEndpoint = "management_endpoint"
)

// What Vault asks the environment for.
const (
	EnvOciKmsWrapperCryptoEndpoint       = "OCIKMS_WRAPPER_CRYPTO_ENDPOINT"
	EnvOciKmsWrapperKeyId                = "OCIKMS_WRAPPER_KEY_ID"
	EnvOciKmsWrapperManagementEndpoint   = "OCIKMS_WRAPPER_MANAGEMENT_ENDPOINT"
	EnvVaultOciKmsSealCryptoEndpoint     = "VAULT_OCIKMS_CRYPTO_ENDPOINT"
	EnvVaultOciKmsSealKeyId              = "VAULT_OCIKMS_SEAL_KEY_ID"
	EnvVaultOciKmsSealManagementEndpoint = "VAULT_OCIKMS_MANAGEMENT_ENDPOINT"
)
