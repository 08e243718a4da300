// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// The objects that the Go driver creates for a ComputeDomain: its DaemonSet and its two claim templates. They are
// copied from a real one, with names in capitals for what differs between ComputeDomains.
//
//go:embed objects.yaml
var objects string

const finalizer = label

var (
	daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	templates  = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaimtemplates"}
)

func domainOf(ctx context.Context, uid string) (*unstructured.Unstructured, error) {
	list, err := custom.Resource(domains).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if string(list.Items[i].GetUID()) == uid {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("no ComputeDomain %s", uid)
}

func controller(ctx context.Context) error {
	go healthy()
	for ctx.Err() == nil {
		list, err := custom.Resource(domains).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			cd := &list.Items[i]
			if cd.GetDeletionTimestamp() == nil {
				err = reconcile(ctx, cd)
			} else {
				err = remove(ctx, cd)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, cd.GetName()+":", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

func resourceOf(o *unstructured.Unstructured) schema.GroupVersionResource {
	if o.GetKind() == "DaemonSet" {
		return daemonSets
	}
	return templates
}

// belongings returns the objects of one kind that have the ComputeDomain's label.
func belongings(ctx context.Context, what schema.GroupVersionResource, uid string) ([]unstructured.Unstructured, error) {
	at := namespace // the controller's role covers no other namespace
	if what == templates {
		at = metav1.NamespaceAll
	}
	list, err := custom.Resource(what).Namespace(at).List(ctx, metav1.ListOptions{LabelSelector: label + "=" + uid})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func reconcile(ctx context.Context, cd *unstructured.Unstructured) error {
	uid := string(cd.GetUID())
	if !slices.Contains(cd.GetFinalizers(), finalizer) {
		cd.SetFinalizers(append(cd.GetFinalizers(), finalizer))
		_, err := custom.Resource(domains).Namespace(cd.GetNamespace()).Update(ctx, cd, metav1.UpdateOptions{})
		return err
	}
	template, _, _ := unstructured.NestedString(cd.Object, "spec", "channel", "resourceClaimTemplate", "name")
	filled := strings.NewReplacer("DOMAIN-UID", uid, "DOMAIN-NAMESPACE", cd.GetNamespace(), "TEMPLATE-NAME", template, "DRIVER-NAMESPACE", namespace,
		"IMAGE-NAME", os.Getenv("IMAGE_NAME")).Replace(objects)
	for _, document := range strings.Split(filled, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			return err
		}
		what := resourceOf(o)
		there, err := belongings(ctx, what, uid)
		if err != nil {
			return err
		}
		target := func(x *unstructured.Unstructured) string { return x.GetLabels()[label+"Target"] }
		// An existing object is used as it is, whatever its content.
		if slices.ContainsFunc(there, func(x unstructured.Unstructured) bool { return target(&x) == target(o) }) {
			continue
		}
		if _, err := custom.Resource(what).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return writeStatus(ctx, cd)
}

// writeStatus removes entries of nodes without a pod of a ComputeDomain from the cliques, and copies the other
// entries into the status.
func writeStatus(ctx context.Context, cd *unstructured.Unstructured) error {
	pods, err := core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return err
	}
	alive := map[string]bool{}
	for _, p := range pods.Items {
		alive[p.Spec.NodeName] = true
	}
	of, err := belongings(ctx, cliques, string(cd.GetUID()))
	if err != nil {
		return err
	}
	nodes, state := []any{}, "Ready"
	for i := range of {
		stay := []any{}
		for _, e := range entries(&of[i], "daemons") {
			if !alive[text(e, "nodeName")] {
				continue
			}
			stay = append(stay, e)
			nodes = append(nodes, map[string]any{"name": text(e, "nodeName"), "ipAddress": text(e, "ipAddress"), "cliqueID": text(e, "cliqueID"),
				"index": e.(map[string]any)["index"], "status": text(e, "status")})
			if text(e, "status") == "NotReady" {
				state = "NotReady"
			}
		}
		if len(stay) != len(entries(&of[i], "daemons")) {
			must(unstructured.SetNestedSlice(of[i].Object, stay, "daemons"))
			if _, err := custom.Resource(cliques).Namespace(namespace).Update(ctx, &of[i], metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
	}
	status := map[string]any{"status": state}
	if len(nodes) > 0 {
		status["nodes"] = nodes
	}
	if before, _, _ := unstructured.NestedMap(cd.Object, "status"); fmt.Sprint(before) == fmt.Sprint(status) {
		return nil
	}
	cd.Object["status"] = status
	_, err = custom.Resource(domains).Namespace(cd.GetNamespace()).UpdateStatus(ctx, cd, metav1.UpdateOptions{})
	return err
}

// remove deletes objects with the ComputeDomain's label, removes labels from nodes and finalizers from objects, and
// then the ComputeDomain's finalizer.
func remove(ctx context.Context, cd *unstructured.Unstructured) error {
	uid, left := string(cd.GetUID()), 0
	for _, what := range []schema.GroupVersionResource{templates, daemonSets} {
		there, err := belongings(ctx, what, uid)
		if err != nil {
			return err
		}
		for i := range there {
			o := &there[i]
			left++
			at := custom.Resource(what).Namespace(o.GetNamespace())
			if o.GetDeletionTimestamp() == nil {
				err = at.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
			} else {
				o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == finalizer }))
				_, err = at.Update(ctx, o, metav1.UpdateOptions{})
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
	nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: label + "=" + uid})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		delete(nodes.Items[i].Labels, label)
		if _, err := core.CoreV1().Nodes().Update(ctx, &nodes.Items[i], metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if left > 0 {
		return errors.New("still exists")
	}
	cd.SetFinalizers(slices.DeleteFunc(cd.GetFinalizers(), func(f string) bool { return f == finalizer }))
	_, err = custom.Resource(domains).Namespace(cd.GetNamespace()).Update(ctx, cd, metav1.UpdateOptions{})
	return err
}
