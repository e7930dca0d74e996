// The Google Cloud Storage of the tests: fake-gcs-server, everything in memory. It listens on 127.0.0.1 only, writes
// "ADDRESS\n" to standard output, and ends when its standard input does.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fake, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		NoListener:  true,
		ExternalURL: "http://" + listener.Addr().String(),
		Writer:      os.Stderr,
	})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: fake.HTTPHandler()}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
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
