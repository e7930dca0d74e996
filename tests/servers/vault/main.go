// The Vault of the tests: the real core with its transit engine and login methods, everything in memory. It
// starts uninitialised, as every Vault does; the tests initialise and unseal it over its API. It listens on
// 127.0.0.1 only, writes "ADDRESS\n" to standard output, and ends when its standard input does.
//
// Vault's licence (BUSL 1.1) allows use in tests; no binary of it is kept in this tree or shipped.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"

	hclog "github.com/hashicorp/go-hclog"
	jwt "github.com/hashicorp/vault-plugin-auth-jwt"
	kubernetes "github.com/hashicorp/vault-plugin-auth-kubernetes"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/builtin/credential/cert"
	"github.com/hashicorp/vault/builtin/logical/transit"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

var (
	// kv is what a wrong mount path finds.
	engines = map[string]logical.Factory{"transit": transit.Factory, "kv": vault.PassthroughBackendFactory}
	logins  = map[string]logical.Factory{
		"approle":    approle.Factory,
		"cert":       cert.Factory,
		"jwt":        jwt.Factory,
		"kubernetes": kubernetes.Factory,
	}
)

func main() {
	certificate := flag.String("tls-cert", "", "PEM `file`: serve TLS with this certificate")
	key := flag.String("tls-key", "", "PEM `file`: its private key")
	logs := flag.String("log", "off", "`level`: off, error, warn, info, debug or trace; to standard error")
	flag.Parse()
	if err := serve(*certificate, *key, *logs); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(certificate, key, logs string) error {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.LevelFromString(logs), Output: os.Stderr})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:           storage,
		Logger:             logger,
		DisableMlock:       true,
		LogicalBackends:    engines,
		CredentialBackends: logins,
		BuiltinRegistry:    builtins{consts.PluginTypeSecrets: engines, consts.PluginTypeCredential: logins},
	})
	if err != nil {
		return err
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: vaulthttp.Handler.Handler(&vault.HandlerProperties{
			Core:           core,
			ListenerConfig: &configutil.Listener{Address: listener.Addr().String()},
		}),
		// As Vault's own listener: a certificate may be shown, and the cert login looks at it.
		TLSConfig: &tls.Config{ClientAuth: tls.RequestClientCert},
		ErrorLog:  logger.StandardLogger(nil),
	}
	failed := make(chan error, 1)
	go func() {
		if certificate != "" {
			failed <- server.ServeTLS(listener, certificate, key)
		} else {
			failed <- server.Serve(listener)
		}
	}()
	fmt.Println(listener.Addr())

	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(closed)
	}()
	select {
	case err := <-failed:
		return err
	case <-closed:
		return server.Close()
	}
}

// builtins tells the core which plugins are compiled in.
type builtins map[consts.PluginType]map[string]logical.Factory

func (b builtins) Contains(name string, kind consts.PluginType) bool {
	_, found := b[kind][name]
	return found
}

func (b builtins) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	factory, found := b[kind][name]
	return func() (any, error) { return factory, nil }, found
}

func (b builtins) Keys(kind consts.PluginType) []string {
	return slices.Sorted(maps.Keys(b[kind]))
}

func (b builtins) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, b.Contains(name, kind)
}

func (b builtins) IsBuiltinEntPlugin(string, consts.PluginType) bool {
	return false
}
