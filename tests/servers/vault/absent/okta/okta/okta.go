// Package okta asks nobody: the tests' Vault has no logins with a second factor.
package okta

import (
	"context"
	"errors"
	"net/http"
)

var errAbsent = errors.New("the tests' Vault does not ask Okta")

// Configuration of a client.
type Configuration struct{ Context context.Context }

// ConfigSetter is an option of it.
type ConfigSetter func(*Configuration)

// WithToken is ignored.
func WithToken(string) ConfigSetter { return nil }

// WithOrgUrl is ignored.
func WithOrgUrl(string) ConfigSetter { return nil }

// WithCache is ignored.
func WithCache(bool) ConfigSetter { return nil }

// NewConfiguration refuses.
func NewConfiguration(...ConfigSetter) (*Configuration, error) { return nil, errAbsent }

// APIClient has what Vault names, and does nothing.
type APIClient struct {
	UserAPI       users
	UserFactorAPI factors
}

// NewAPIClient makes one.
func NewAPIClient(*Configuration) *APIClient { return &APIClient{} }

// GetConfig returns an empty one.
func (*APIClient) GetConfig() *Configuration { return &Configuration{} }

type (
	users          struct{}
	factors        struct{}
	request[T any] struct{}
	// User is nobody.
	User struct{}
	// UserFactorPush is none.
	UserFactorPush struct{}
	// Factor is none.
	Factor struct{ UserFactorPush *UserFactorPush }
	// Result is none.
	Result struct {
		Links                                                               map[string]any
		UserFactorPushTransaction, UserFactorPushTransactionWaiting         *UserFactorPush
		UserFactorPushTransactionRejected, UserFactorPushTransactionTimeout *UserFactorPush
	}
)

func (request[T]) Execute() (T, *http.Response, error) {
	var none T
	return none, nil, errAbsent
}

type userRequest struct{ request[[]User] }

func (r userRequest) Filter(string) userRequest { return r }

func (users) ListUsers(context.Context) userRequest { return userRequest{} }

func (factors) ListFactors(context.Context, string) request[[]Factor] { return request[[]Factor]{} }

func (factors) VerifyFactor(context.Context, string, string) request[*Result] {
	return request[*Result]{}
}

func (factors) GetFactorTransactionStatus(context.Context, string, string, string) request[*Result] {
	return request[*Result]{}
}

// GetId is empty.
func (User) GetId() string { return "" }

// GetId is empty.
func (*UserFactorPush) GetId() string { return "" }

// GetFactorResult is empty.
func (*Result) GetFactorResult() string { return "" }
