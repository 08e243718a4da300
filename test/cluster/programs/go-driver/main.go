// SPDX-License-Identifier: Apache-2.0

// Simulates the Go driver, for tests that migrate from it to this driver and back: one binary for its three programs, selected by the name that it
// is called by. They do what the real programs were seen to do, with the same objects, files and labels, and in the same order. They use the
// same libraries as the real ones: Kubernetes' own plugin helper, clients, API types and checkpoints. So their result for this driver's files counts.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	driver     = "compute-domain.nvidia.com"
	label      = "resource.nvidia.com/computeDomain"
	cliqueName = label + ".cliqueID"
	apiVersion = "resource.nvidia.com/v1beta1"
	slots      = 18
)

var (
	group     = schema.GroupVersion{Group: "resource.nvidia.com", Version: "v1beta1"}
	domains   = group.WithResource("computedomains")
	cliques   = group.WithResource("computedomaincliques")
	namespace = os.Getenv("NAMESPACE")
	node      = os.Getenv("NODE_NAME")
	core      kubernetes.Interface
	custom    dynamic.Interface
)

// entries returns the list of an object's members at a path, as in JSON.
func entries(o *unstructured.Unstructured, path ...string) []any {
	list, _, _ := unstructured.NestedSlice(o.Object, path...)
	return list
}

func text(m any, key string) string {
	s, _ := m.(map[string]any)[key].(string)
	return s
}

// must ends the program, as the Go driver's programs end after an error that they cannot handle.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func connect() {
	config, err := rest.InClusterConfig()
	must(err)
	core = kubernetes.NewForConfigOrDie(config)
	custom = dynamic.NewForConfigOrDie(config)
}

func get(ctx context.Context, what schema.GroupVersionResource, ns, name string) (*unstructured.Unstructured, error) {
	return custom.Resource(what).Namespace(ns).Get(ctx, name, metav1.GetOptions{})
}

// healthy serves an answer by which a test recognizes that a program of the Go driver runs.
func healthy() {
	must(http.ListenAndServe(":8090", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "go") })))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	name, verb := filepath.Base(os.Args[0]), os.Args[len(os.Args)-1]
	var err error
	switch {
	case name == "compute-domain-daemon" && verb == "check":
		err = check()
	case name == "compute-domain-daemon":
		connect()
		err = daemon(ctx)
	case name == "compute-domain-kubelet-plugin":
		connect()
		err = plugin(ctx)
	case name == "compute-domain-controller":
		connect()
		err = controller(ctx)
	case name == "go-driver" && len(os.Args) == 2: // only judges a checkpoint
		_, err = load(filepath.Dir(verb), filepath.Base(verb))
	default:
		err = errors.New("call this by the name of one of the driver's programs, not " + strings.Join(os.Args, " "))
	}
	must(err)
}
