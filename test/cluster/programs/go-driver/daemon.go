// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

const imexConfig = "/imexd/imexd.cfg"

func check() error {
	out, err := exec.Command("nvidia-imex-ctl", "-c", imexConfig, "-q").CombinedOutput()
	if err != nil || string(out) != "READY\n" {
		return fmt.Errorf("IMEX is not ready: %v: %s", err, out)
	}
	return nil
}

// writeConfig fills in the template that the plugin has put into the folder. It fails without one, as the real daemon
// does.
func writeConfig(ip string) error {
	t, err := template.ParseFiles(imexConfig + ".tmpl")
	if err != nil {
		return err
	}
	f, err := os.Create(imexConfig)
	if err != nil {
		return err
	}
	if err := t.Option("missingkey=error").Execute(f, map[string]string{"IMEXCmdBindInterfaceIP": ip}); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

type member struct {
	domain, clique, pod, uid, ip string
	imex                         *exec.Cmd
	ended                        chan error
	hosts                        map[string]string
}

func daemon(ctx context.Context) error {
	namespace = os.Getenv("POD_NAMESPACE")
	m := &member{os.Getenv("COMPUTE_DOMAIN_UUID"), os.Getenv("CLIQUE_ID"), os.Getenv("POD_NAME"), os.Getenv("POD_UID"), os.Getenv("POD_IP"), nil, nil, nil}
	if m.domain == "" {
		return errors.New("COMPUTE_DOMAIN_UUID is empty: were CDI edits applied?")
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, cliqueName, m.clique)
	if _, err := core.CoreV1().Pods(namespace).Patch(ctx, m.pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return err
	}
	nodes := ""
	for i := range slots {
		nodes += slot(i) + "\n"
	}
	must(os.WriteFile("/imexd/nodes.cfg", []byte(nodes), 0o644))
	if err := writeConfig(m.ip); err != nil {
		return err
	}

	only := func(name string) func(*metav1.ListOptions) {
		return func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + name }
	}
	wake := make(chan struct{}, 1)
	notify := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { poke(wake) }, UpdateFunc: func(any, any) { poke(wake) }}
	ours := dynamicinformer.NewFilteredDynamicSharedInformerFactory(custom, 0, namespace, only(m.domain+"."+m.clique)).ForResource(cliques).Informer()
	pods := informers.NewSharedInformerFactoryWithOptions(core, 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(only(m.pod))).
		Core().V1().Pods().Informer()
	for _, informer := range []cache.SharedIndexInformer{ours, pods} {
		_, err := informer.AddEventHandler(notify)
		must(err)
		go informer.Run(ctx.Done())
	}
	// Events of the clique start nvidia-imex, and none comes before both caches are filled.
	if !cache.WaitForCacheSync(ctx.Done(), ours.HasSynced, pods.HasSynced) {
		return nil
	}
	poke(wake)
	tick := time.NewTicker(time.Second)
	for {
		select {
		case <-ctx.Done():
			return m.leave()
		case <-tick.C: // the watchdog, and retries
			m.keepRunning()
			poke(wake)
		case <-wake:
			if err := m.sync(ctx, ours.GetStore(), pods.GetStore()); err != nil {
				fmt.Fprintln(os.Stderr, "sync:", err)
			}
		}
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func slot(i int) string { return fmt.Sprintf("compute-domain-daemon-%04d", i) }

// sync writes the entry of this node into the clique, with the state of its pod, and starts or notifies nvidia-imex.
func (m *member) sync(ctx context.Context, ours, pods cache.Store) error {
	status := "NotReady"
	for _, p := range pods.List() {
		for _, c := range p.(*corev1.Pod).Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if len(ours.List()) == 0 {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "ComputeDomainClique", "metadata": map[string]any{
			"name": m.domain + "." + m.clique, "namespace": namespace, "labels": map[string]any{label: m.domain, cliqueName: m.clique}}}}
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: m.pod, UID: types.UID(m.uid)}})
		_, err := custom.Resource(cliques).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	clique := ours.List()[0].(*unstructured.Unstructured).DeepCopy()
	list, used, own := entries(clique, "daemons"), map[int64]bool{}, -1
	hosts := map[string]string{}
	for i, e := range list {
		index, _ := e.(map[string]any)["index"].(int64)
		used[index] = true
		hosts[text(e, "ipAddress")] = slot(int(index))
		if text(e, "nodeName") == node {
			own = i
		}
	}
	if own < 0 || text(list[own], "ipAddress") != m.ip || text(list[own], "status") != status {
		index := int64(0)
		for own < 0 && used[index] {
			index++
		}
		if own < 0 {
			list, own = append(list, map[string]any{"nodeName": node, "cliqueID": m.clique, "index": index}), len(list)
		}
		list[own].(map[string]any)["ipAddress"], list[own].(map[string]any)["status"] = m.ip, status
		must(unstructured.SetNestedSlice(clique.Object, list, "daemons"))
		owners, mine := clique.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: m.pod, UID: types.UID(m.uid)}
		there := false
		for _, o := range owners {
			there = there || o.UID == mine.UID
		}
		if !there {
			clique.SetOwnerReferences(append(owners, mine))
		}
		if _, err := custom.Resource(cliques).Namespace(namespace).Update(ctx, clique, metav1.UpdateOptions{}); err != nil {
			fmt.Fprintln(os.Stderr, "update of the clique:", err)
		}
	}
	if hosts[m.ip] == "" || maps.Equal(hosts, m.hosts) {
		return nil
	}
	m.hosts = hosts
	if err := writeHosts(hosts); err != nil {
		return err
	}
	if m.imex == nil {
		return m.run()
	}
	return m.imex.Process.Signal(syscall.SIGUSR1)
}

func writeHosts(names map[string]string) error {
	b, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return err
	}
	out := ""
	for line := range strings.Lines(string(b)) {
		if !strings.Contains(line, "compute-domain-daemon-") {
			out += line
		}
	}
	for ip, name := range names {
		out += ip + "\t" + name + "\n"
	}
	return os.WriteFile("/etc/hosts", []byte(out), 0o644)
}

func (m *member) run() error {
	m.imex = exec.Command("nvidia-imex", "-c", imexConfig)
	m.imex.Stdout, m.imex.Stderr = os.Stdout, os.Stderr
	if err := m.imex.Start(); err != nil {
		return err
	}
	m.ended = make(chan error, 1)
	go func() { m.ended <- m.imex.Wait() }()
	return nil
}

// keepRunning restarts nvidia-imex after it has ended.
func (m *member) keepRunning() {
	select {
	case <-m.ended:
		must(m.run())
	default:
	}
}

// leave removes this node's entry from the clique, once, and ends nvidia-imex.
func (m *member) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if clique, err := get(ctx, cliques, namespace, m.domain+"."+m.clique); err == nil {
		stay := []any{}
		for _, e := range entries(clique, "daemons") {
			if text(e, "ipAddress") != m.ip {
				stay = append(stay, e)
			}
		}
		must(unstructured.SetNestedSlice(clique.Object, stay, "daemons"))
		if _, err := custom.Resource(cliques).Namespace(namespace).Update(ctx, clique, metav1.UpdateOptions{}); err != nil {
			fmt.Fprintln(os.Stderr, "leaving the clique:", err)
		}
	}
	if m.imex != nil {
		return m.imex.Process.Signal(syscall.SIGTERM)
	}
	return nil
}
