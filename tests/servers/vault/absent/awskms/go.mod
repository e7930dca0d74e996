module github.com/hashicorp/go-kms-wrapping/wrappers/awskms/v2

go 1.25.1

require (
	github.com/hashicorp/go-kms-wrapping/v2 v2.0.18
	github.com/hashicorp/go-kms-wrapping/wrappers/aead/v2 v2.0.10
)
