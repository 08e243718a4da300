// SPDX-License-Identifier: Apache-2.0

// Added to the package of the Go driver's GPU plugin (test/cluster/tools): called as go-gpu, the program reads a checkpoint with that
// driver's own code, and does nothing else.
//
//	go-gpu judge DIR     whether the driver starts with DIR/checkpoint.json, and can check another claim against the claims in it;
//	                     fails with the driver's error
//	go-gpu rewrite DIR   writes it again, as the driver leaves it when the claims in it have been prepared
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/kubernetes/pkg/kubelet/checkpointmanager"

	"sigs.k8s.io/dra-driver-nvidia-gpu/pkg/flock"
)

func judge(command, dir string) error {
	manager, err := checkpointmanager.NewCheckpointManager(dir)
	if err != nil {
		return err
	}
	state := &DeviceState{config: &Config{flags: &Flags{}}, checkpointManager: manager, cplock: flock.NewFlock(filepath.Join(dir, "cp.lock"))}
	switch command {
	case "judge":
		c, err := state.getCheckpoint(context.Background())
		if err != nil {
			return err
		}
		fmt.Println(len(c.V2.PreparedClaims))
		other := []resourceapi.DeviceRequestAllocationResult{{Driver: DriverName, Device: "gpu-99"}}
		return state.validateNoOverlappingPreparedDevices(c, &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{
			Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: other}},
		}})
	case "rewrite":
		return state.updateCheckpoint(context.Background(), func(c *Checkpoint) {
			for uid, claim := range c.V2.PreparedClaims {
				if claim.CheckpointState == ClaimCheckpointStatePrepareCompleted {
					claim.Name, claim.Namespace = "", ""
					c.V2.PreparedClaims[uid] = claim
				}
			}
		})
	}
	return fmt.Errorf("unknown command %q", command)
}

func init() {
	if filepath.Base(os.Args[0]) != "go-gpu" || len(os.Args) != 3 {
		return
	}
	if err := judge(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
