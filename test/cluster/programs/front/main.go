// SPDX-License-Identifier: Apache-2.0

// front listens on the API server's service address, between the pods and the server, and can answer requests in the server's place:
//
//	front LISTEN SERVER CA CERT KEY SOCKET
//
// It passes tokens on unchanged, so that the server can authenticate all clients, and also HTTP/2 and watches. It listens exactly while the
// server does: while the server is down it refuses connections, and it closes connections when the server closes them. CERT and KEY may be
// replaced: each new connection gets the current ones. It logs connections, failed TLS handshakes, the answers that it gives in the server's
// place, and each 401 of the server.
//
// It gets its rules through the socket (test/cluster/front): POST /?answer=A&user=U&verb=V&resource=R adds a rule, DELETE / removes all rules,
// and GET / lists them, with the number of requests that each has answered. The first rule that matches applies. A new rule ends running
// requests that match it, above all watches. Removing the rules ends requests that hang. Two rules are special, and end no request: goaway
// closes existing connections after one more answer of the server, and watches on them end as by a time-out; expired (&before=SECONDS, since
// 1970) gives the server's 401 to clients with a token from before that time.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// asked describes a request in Kubernetes' terms.
type asked struct {
	user, pod, verb, group, version, resource, namespace, name string
	issued                                                     int64 // when the token was issued, in seconds; 0: no token
	connection                                                 *connection
}

type connection struct {
	since time.Time
	first sync.Once
}

type connectionKey struct{}

func withConnection(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{since: time.Now()})
}

// readToken reads the account for which a token was issued. Only the server verifies the token.
func (a *asked) readToken(r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return
	}
	var token struct {
		Sub        string
		Iat        int64
		Kubernetes struct{ Pod struct{ Name string } } `json:"kubernetes.io"`
	}
	if json.Unmarshal(text, &token) != nil {
		return
	}
	a.user, a.pod, a.issued = token.Sub, token.Kubernetes.Pod.Name, token.Iat
}

// wantedBy parses a request: /api/v1 or /apis/GROUP/VERSION, [namespaces/NAMESPACE/] RESOURCE [NAME [SUBRESOURCE]].
// For other paths, such as discovery, the resource is the path.
func wantedBy(r *http.Request) asked {
	a := asked{verb: strings.ToLower(r.Method), resource: r.URL.Path}
	a.connection = r.Context().Value(connectionKey{}).(*connection)
	a.readToken(r)
	rest := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(rest) > 2 && rest[0] == "api":
		rest = rest[2:]
	case len(rest) > 3 && rest[0] == "apis":
		a.group, a.version, rest = rest[1], rest[2], rest[3:]
	default:
		return a
	}
	if rest[0] == "namespaces" && len(rest) > 2 {
		a.namespace, rest = rest[1], rest[2:]
	}
	a.resource = rest[0]
	if len(rest) > 1 {
		a.name = rest[1]
	}
	if len(rest) > 2 {
		a.resource += "/" + rest[2]
	}
	watch := r.URL.Query().Get("watch")
	switch r.Method {
	case "GET":
		switch {
		case watch == "1" || watch == "true":
			a.verb = "watch"
		case a.name == "":
			a.verb = "list"
		}
	case "POST":
		a.verb = "create"
	case "PUT":
		a.verb = "update"
	case "DELETE":
		if a.name == "" {
			a.verb = "deletecollection"
		}
	}
	return a
}

type rule struct {
	answer, text         string
	user, verb, resource *regexp.Regexp
	before               int64
	since                time.Time
	answered             int
}

// pattern converts words with *, separated by commas, into a regular expression. Without words it matches everything.
func pattern(words string) *regexp.Regexp {
	if words == "" {
		words = "*"
	}
	quoted := strings.ReplaceAll(regexp.QuoteMeta(words), `\*`, ".*")
	return regexp.MustCompile("^(?:" + strings.ReplaceAll(quoted, ",", "|") + ")$")
}

func (x *rule) fits(a *asked) bool {
	if x.answer == "unserved" {
		return x.resource.MatchString(a.group+"/"+a.version) || x.resource.MatchString(strings.TrimPrefix(a.resource, "/apis/"))
	}
	if x.answer == "expired" && (a.issued == 0 || a.issued >= x.before) {
		return false
	}
	if x.answer == "goaway" && a.connection.since.After(x.since) {
		return false
	}
	return (x.user.MatchString(a.user) || x.user.MatchString(a.pod)) && x.verb.MatchString(a.verb) && x.resource.MatchString(a.resource)
}

type request struct {
	asked
	end  context.CancelFunc
	hung bool
	over atomic.Bool // the answer ends regularly, and was not broken off
}

// watched is the answer to a watch, which has no end by itself. It can be ended.
type watched struct {
	io.ReadCloser
	x *request
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil && w.x.over.Load() {
		err = io.EOF
	}
	return n, err
}

type requestKey struct{}

type front struct {
	lock    sync.Mutex
	rules   []*rule
	running map[*request]bool
	proxy   *httputil.ReverseProxy
}

// answers gives the answers of a rule: pages that do not come from an API server; RBAC's denial; the API server's
// answers to a version that it does not serve, and to an expired token; no answer; and the server's own answer, which
// ends the connection.
var answers = map[string]func(w http.ResponseWriter, a *asked){
	"404": func(w http.ResponseWriter, a *asked) {
		page(w, 404, "text/plain; charset=utf-8", "404 page not found\n")
	},
	"403": func(w http.ResponseWriter, a *asked) {
		page(w, 403, "text/html", "<html><head><title>403 Forbidden</title></head><body><h1>Forbidden</h1></body></html>\n")
	},
	"503": func(w http.ResponseWriter, a *asked) {
		w.Header().Set("Retry-After", "3600")
		page(w, 503, "text/plain", "no healthy upstream\n")
	},
	"refuse": refuse,
	"expired": func(w http.ResponseWriter, a *asked) {
		page(w, 401, "application/json",
			`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`+"\n")
	},
	"unserved": func(w http.ResponseWriter, a *asked) {
		page(w, 404, "text/plain; charset=utf-8", "404 page not found\n")
	},
	"hang":   nil,
	"goaway": nil,
}

func page(w http.ResponseWriter, code int, kind, text string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(code)
	io.WriteString(w, text)
}

// refuse answers as RBAC does.
func refuse(w http.ResponseWriter, a *asked) {
	full := a.resource
	if a.group != "" {
		full += "." + a.group
	}
	text, _ := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "reason": "Forbidden", "code": 403,
		"message": fmt.Sprintf("%s is forbidden: User %q cannot %s resource %q in API group %q at the cluster scope", full, a.user, a.verb,
			a.resource, a.group),
		"details": map[string]any{"group": a.group, "kind": a.resource, "name": a.name},
	})
	page(w, 403, "application/json", string(text)+"\n")
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, end := context.WithCancel(r.Context())
	defer end()
	x := &request{asked: wantedBy(r), end: end}
	x.connection.first.Do(func() { log.Printf("new connection: %s/%s", x.user, x.pod) })
	var fits *rule
	f.lock.Lock()
	for _, rule := range f.rules {
		if rule.fits(&x.asked) {
			rule.answered++
			x.hung = rule.answer == "hang"
			fits = rule
			break
		}
	}
	f.running[x] = true
	f.lock.Unlock()
	defer func() {
		f.lock.Lock()
		delete(f.running, x)
		f.lock.Unlock()
	}()
	if fits != nil && fits.answer == "goaway" {
		w.Header().Set("Connection", "close") // in HTTP/2 this is GOAWAY: running requests continue, new requests need a new connection
		x.over.Store(true)
		fits = nil
	}
	if fits == nil {
		f.proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, requestKey{}, x)))
		return
	}
	log.Printf("%s: %s/%s %s %s %s/%s", fits.answer, x.user, x.pod, x.verb, x.resource, x.namespace, x.name)
	if x.hung {
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	}
	answers[fits.answer](w, &x.asked)
}

func (f *front) onAnswer(r *http.Response) error {
	x := r.Request.Context().Value(requestKey{}).(*request)
	if r.StatusCode == 401 {
		log.Printf("401 of the server: %s/%s %s %s %s/%s", x.user, x.pod, x.verb, x.resource, x.namespace, x.name)
	}
	if x.verb == "watch" && x.over.Load() {
		r.Body.Close()
		r.Body = http.NoBody
	} else if x.verb == "watch" {
		r.Body = &watched{r.Body, x}
	}
	return f.withoutUnserved(r)
}

// withoutUnserved removes unserved versions from the server's description of a group (/apis/GROUP).
func (f *front) withoutUnserved(r *http.Response) error {
	group, ok := strings.CutPrefix(r.Request.URL.Path, "/apis/")
	if !ok || strings.Contains(group, "/") || r.StatusCode != 200 {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body.Close()
	f.lock.Lock()
	defer f.lock.Unlock()
	var list map[string]any
	if json.Unmarshal(body, &list) == nil {
		all, _ := list["versions"].([]any)
		left := []any{}
		for _, v := range all {
			if !f.unserved(v.(map[string]any)["groupVersion"].(string)) {
				left = append(left, v)
			}
		}
		if len(left) > 0 && len(left) < len(all) {
			list["versions"], list["preferredVersion"] = left, left[0]
			body, _ = json.Marshal(list)
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", fmt.Sprint(len(body)))
	return nil
}

func (f *front) unserved(version string) bool {
	for _, x := range f.rules {
		if x.answer == "unserved" && x.resource.MatchString(version) {
			return true
		}
	}
	return false
}

func (f *front) control(w http.ResponseWriter, r *http.Request) {
	f.lock.Lock()
	defer f.lock.Unlock()
	q := r.URL.Query()
	switch r.Method {
	case "POST":
		if _, ok := answers[q.Get("answer")]; !ok {
			http.Error(w, "there is no answer '"+q.Get("answer")+"': 404, 403, 503, refuse, unserved, hang, expired, goaway", 400)
			return
		}
		x := &rule{answer: q.Get("answer"), since: time.Now()}
		x.user, x.verb, x.resource = pattern(q.Get("user")), pattern(q.Get("verb")), pattern(q.Get("resource"))
		x.before, _ = strconv.ParseInt(q.Get("before"), 10, 64)
		name := x.answer
		if q.Has("before") {
			name += " " + q.Get("before")
		}
		x.text = strings.TrimRight(strings.Join([]string{name, q.Get("user"), q.Get("verb"), q.Get("resource")}, " "), " ")
		f.rules = append(f.rules, x)
		for y := range f.running {
			if y.hung || x.answer == "expired" || !x.fits(&y.asked) {
				continue
			}
			if x.answer == "goaway" {
				if y.verb != "watch" {
					continue
				}
				y.over.Store(true)
			}
			y.end()
		}
	case "DELETE":
		f.rules = nil
		for y := range f.running {
			if y.hung {
				y.end()
			}
		}
	default:
		for _, x := range f.rules {
			fmt.Fprintf(w, "%d %s\n", x.answered, x.text)
		}
	}
}

// gone waits until nothing listens on the server's address. An idle connection shows its end at once.
func gone(server string, conn net.Conn) {
	for {
		io.Copy(io.Discard, conn)
		conn.Close()
		next, err := net.DialTimeout("tcp", server, 5*time.Second)
		for err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			next, err = net.DialTimeout("tcp", server, 5*time.Second)
		}
		if err != nil {
			return
		}
		conn = next
	}
}

// certificate is a pair of files that may be replaced. While only one of them is new, the pair that was read before
// is used.
type certificate struct {
	cert, key string
	lock      sync.Mutex
	last      *tls.Certificate
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.last = &pair
	}
	if c.last == nil {
		return nil, err
	}
	return c.last, nil
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	if len(os.Args) != 7 {
		log.Fatal("usage: front LISTEN SERVER CA CERT KEY SOCKET")
	}
	listen, server, socket := os.Args[1], os.Args[2], os.Args[6]
	ca, err := os.ReadFile(os.Args[3])
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	pair := &certificate{cert: os.Args[4], key: os.Args[5]}
	_, err = pair.get(nil)
	must(err)

	transport := &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
	}
	target := &url.URL{Scheme: "https", Host: server}
	quiet := log.New(io.Discard, "", 0)
	f := &front{running: map[*request]bool{}}
	f.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Del("Accept-Encoding") // withoutUnserved has to read the body
		},
		Transport:      transport,
		ModifyResponse: f.onAnswer,
		FlushInterval:  -1,
		ErrorLog:       quiet,
		// If the server breaks off an answer, so does the front.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}

	os.Remove(socket)
	commands, err := net.Listen("unix", socket)
	must(err)
	go func() { must(http.Serve(commands, http.HandlerFunc(f.control))) }()

	for {
		conn, err := net.Dial("tcp", server)
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		listener, err := net.Listen("tcp", listen)
		must(err)
		s := &http.Server{Handler: f, TLSConfig: &tls.Config{GetCertificate: pair.get}, ConnContext: withConnection}
		go s.ServeTLS(listener, "", "")
		gone(server, conn)
		s.Close()
		transport.CloseIdleConnections()
	}
}
