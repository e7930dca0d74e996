// Package azurekeyvault unseals nothing: the tests' Vault is unsealed over its API.
package azurekeyvault

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
	EnvAzureKeyVaultWrapperKeyName   = "AZUREKEYVAULT_WRAPPER_KEY_NAME"
	EnvAzureKeyVaultWrapperVaultName = "AZUREKEYVAULT_WRAPPER_VAULT_NAME"
	EnvVaultAzureKeyVaultKeyName     = "VAULT_AZUREKEYVAULT_KEY_NAME"
	EnvVaultAzureKeyVaultVaultName   = "VAULT_AZUREKEYVAULT_VAULT_NAME"
)
