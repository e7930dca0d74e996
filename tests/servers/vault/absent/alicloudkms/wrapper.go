// Package alicloudkms unseals nothing: the tests' Vault is unsealed over its API.
package alicloudkms

import (
	"github.com/hashicorp/go-kms-wrapping/wrappers/aead/v2"
)

// NewWrapper makes one without a key.
func NewWrapper() *aead.Wrapper { return aead.NewWrapper() }

// What Vault asks the environment for.
const (
	EnvAliCloudKmsWrapperKeyId   = "ALICLOUDKMS_WRAPPER_KEY_ID"
	EnvVaultAliCloudKmsSealKeyId = "VAULT_ALICLOUDKMS_SEAL_KEY_ID"
)
