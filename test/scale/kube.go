// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	plainJSON  = "application/json"
	mergePatch = "application/merge-patch+json"
	// The server then sends only the metadata of each object.
	metadataOnly = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
)

// A client has one identity and several connections of HTTP/1.1, with one request at a time on each: the fastest way to use an API server
// on the same machine.
type client struct {
	base, token string
	http        *http.Client
}

func newClient(server, ca, cert, key, token string, connections int) *client {
	pem, err := os.ReadFile(ca)
	check(err, "certificate authority")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: roots}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		check(err, "client certificate")
		config.Certificates = []tls.Certificate{pair}
	}
	return &client{server, token, &http.Client{Transport: &http.Transport{
		TLSClientConfig: config, MaxIdleConnsPerHost: connections, DisableCompression: true,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, ReadBufferSize: 1 << 16,
	}}}
}

func (c *client) start(method, path, content, accept string, body []byte) (*http.Response, error) {
	request, err := http.NewRequest(method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", content)
	request.Header.Set("Accept", accept)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.http.Do(request)
}

// later waits if the server is overloaded, or its storage has just started. False: the server has answered.
func later(answer *http.Response) bool {
	if answer.StatusCode != http.StatusTooManyRequests {
		return false
	}
	answer.Body.Close()
	time.Sleep(time.Second) // the usual Retry-After
	return true
}

// do sends one request and reads the whole answer into `into` (nil: it is dropped). If the server asks to retry later, do retries.
func (c *client) do(method, path, content string, body []byte, into any) error {
	for {
		answer, err := c.start(method, path, content, plainJSON, body)
		if err != nil {
			return err
		}
		if later(answer) {
			continue
		}
		defer answer.Body.Close()
		if answer.StatusCode >= 300 {
			text, _ := io.ReadAll(io.LimitReader(answer.Body, 400))
			return fmt.Errorf("%s %s: %d %s", method, path, answer.StatusCode, text)
		}
		if into != nil {
			return json.NewDecoder(answer.Body).Decode(into)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
}

func (c *client) get(path string, into any) error { return c.do("GET", path, plainJSON, nil, into) }
func (c *client) create(path string, body any, into any) error {
	return c.do("POST", path, plainJSON, encode(body), into)
}
func (c *client) patch(path string, body any) error {
	return c.do("PATCH", path, mergePatch, encode(body), nil)
}

// remove deletes an object at once, without a grace period. It is no error if the object does not exist.
func (c *client) remove(path string) error {
	err := c.do("DELETE", path, plainJSON, encode(dict{"gracePeriodSeconds": 0}), nil)
	if err != nil && strings.Contains(err.Error(), ": 404 ") {
		return nil
	}
	return err
}

func encode(body any) []byte {
	if text, ok := body.([]byte); ok {
		return text
	}
	text, err := json.Marshal(body)
	check(err, "JSON")
	return text
}

type listed struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// follow watches a collection that is empty at first, forever. It calls back for each change, in the order of the server.
func (c *client) follow(path, accept string, changed func(kind string, object []byte)) {
	var head listed
	check(c.get(path+"?limit=1", &head), path)
	go func() {
		for {
			answer, err := c.start("GET", path+"?watch=1&allowWatchBookmarks=true&resourceVersion="+head.Metadata.ResourceVersion, plainJSON,
				accept, nil)
			check(err, "watch of "+path)
			if later(answer) {
				continue
			}
			if answer.StatusCode != 200 {
				fail("watch of %s: %d", path, answer.StatusCode)
			}
			lines := bufio.NewReaderSize(answer.Body, 1<<16)
			for {
				line, err := lines.ReadBytes('\n')
				if err != nil {
					break // the server ends each watch after its time-out: continue at the same version
				}
				var e event
				var version listed
				check(json.Unmarshal(line, &e), "event")
				if e.Type == "ERROR" {
					fail("watch of %s: %s", path, line)
				}
				check(json.Unmarshal(e.Object, &version), "event")
				head = version
				if e.Type != "BOOKMARK" {
					changed(e.Type, e.Object)
				}
			}
			answer.Body.Close()
		}
	}()
}

// each calls f for 0..n-1, atOnce at a time, and prints the progress if it takes long. It returns the duration in seconds.
func each(what string, n, atOnce int, f func(i int) error) float64 {
	begin, told := time.Now(), time.Now()
	var mu sync.Mutex
	var next, done int
	var all sync.WaitGroup
	for range make([]struct{}, min(n, atOnce)) {
		all.Add(1)
		go func() {
			defer all.Done()
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n {
					return
				}
				check(f(i), what)
				mu.Lock()
				done++
				if time.Since(told) > 10*time.Second {
					told = time.Now()
					say("%s: %d of %d", what, done, n)
				}
				mu.Unlock()
			}
		}()
	}
	all.Wait()
	return time.Since(begin).Seconds()
}
