// SPDX-License-Identifier: Apache-2.0

// One binary for every Kubernetes program of the test cluster, selected by the name that it is called by: the five programs share nearly all
// of their packages, so it links once instead of five times.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	var cmd *cobra.Command
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		cmd = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		cmd = controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		cmd = scheduler.NewSchedulerCommand()
	case "kubelet":
		// Before 1.34 it takes no context.
		switch kubeletCommand := any(kubelet.NewKubeletCommand).(type) {
		case func() *cobra.Command:
			cmd = kubeletCommand()
		case func(context.Context) *cobra.Command:
			cmd = kubeletCommand(context.Background())
		}
	case "kubectl":
		cmd = kubectl.NewDefaultKubectlCommand()
		if err := cli.RunNoErrOutput(cmd); err != nil {
			kubectlutil.CheckErr(err)
		}
		return
	default:
		fmt.Fprintf(os.Stderr, "%s: call this binary by the name of a Kubernetes program\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(cmd))
}
