// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/kubernetes/pkg/kubelet/checkpointmanager"
	"k8s.io/kubernetes/pkg/kubelet/checkpointmanager/checksum"
	checkpointerrors "k8s.io/kubernetes/pkg/kubelet/checkpointmanager/errors"
)

// The layout of the file, with the members in the order in which they are written. A checksum covers the output of
// these types, so the driver does not start with a file that has a superfluous or misplaced member.
type (
	device1 struct {
		Requests     []string
		PoolName     string
		DeviceName   string
		CDIDeviceIDs []string
	}
	device2 struct {
		Info struct {
			ID int `json:"id"`
		} `json:"info"`
		Device *device1 `json:"device"`
	}
	deviceOf struct {
		Channel *device2 `json:"channel"`
		Daemon  *device2 `json:"daemon"`
	}
	deviceGroup struct {
		Devices     []deviceOf                           `json:"devices"`
		ConfigState struct{ Type, ComputeDomain string } `json:"configState"`
	}
	claimV1 struct {
		Status          resourceapi.ResourceClaimStatus `json:"status"`
		PreparedDevices []deviceGroup                   `json:"preparedDevices,omitempty"`
	}
	claimV2 struct {
		CheckpointState string                          `json:"checkpointState"`
		Status          resourceapi.ResourceClaimStatus `json:"status"`
		PreparedDevices []deviceGroup                   `json:"preparedDevices,omitempty"`
		Name            string                          `json:"name,omitempty"`
		Namespace       string                          `json:"namespace,omitempty"`
		AbortedAt       string                          `json:"abortedAt,omitempty"`
	}
	checkpointV1 struct {
		PreparedClaims map[string]claimV1 `json:"preparedClaims,omitempty"`
	}
	checkpointV2 struct {
		Checksum       checksum.Checksum  `json:"checksum"`
		PreparedClaims map[string]claimV2 `json:"preparedClaims,omitempty"`
		NodeBootID     string             `json:"nodeBootID,omitempty"`
	}
	checkpoint struct {
		Checksum checksum.Checksum `json:"checksum"`
		V1       *checkpointV1     `json:"v1,omitempty"`
		V2       *checkpointV2     `json:"v2,omitempty"`
	}
)

// sums returns the checksums of the present content: of the first layout without the second, and of the second.
func (c *checkpoint) sums() (first, second checksum.Checksum) {
	v2 := *c.V2
	v2.Checksum = 0
	b, err := json.Marshal(checkpoint{V1: c.V1})
	must(err)
	b2, err := json.Marshal(v2)
	must(err)
	return checksum.New(b), checksum.New(b2)
}

func (c *checkpoint) MarshalCheckpoint() ([]byte, error) {
	c.V1 = &checkpointV1{map[string]claimV1{}}
	for uid, claim := range c.V2.PreparedClaims {
		if claim.CheckpointState == "PrepareCompleted" {
			c.V1.PreparedClaims[uid] = claimV1{claim.Status, claim.PreparedDevices}
		}
	}
	c.Checksum, c.V2.Checksum = c.sums()
	return json.Marshal(c)
}

func (c *checkpoint) UnmarshalCheckpoint(b []byte) error { return json.Unmarshal(b, c) }

func (c *checkpoint) VerifyChecksum() error {
	if c.V1 == nil || c.V2 == nil {
		return errors.New("a layout is missing")
	}
	if first, second := c.sums(); c.Checksum != first || c.V2.Checksum != second {
		return &checkpointerrors.CorruptCheckpointError{ActualCS: uint64(second), ExpectedCS: uint64(c.V2.Checksum)}
	}
	return nil
}

func manager(dir string) checkpointmanager.CheckpointManager {
	m, err := checkpointmanager.NewCheckpointManager(dir)
	must(err)
	return m
}

func load(dir, name string) (*checkpoint, error) {
	c := &checkpoint{}
	if err := manager(dir).GetCheckpoint(name, c); err != nil {
		return nil, err
	}
	if c.V2.PreparedClaims == nil {
		c.V2.PreparedClaims = map[string]claimV2{}
	}
	return c, nil
}

func (d *dra) load() (*checkpoint, error) { return load(pluginDir, "checkpoint.json") }

func (d *dra) save(c *checkpoint) error {
	return manager(pluginDir).CreateCheckpoint("checkpoint.json", c)
}

// start reads the file. It starts with an empty one if there is none or if the node has rebooted. A corrupt file ends
// the program.
func (d *dra) start() error {
	c, err := d.load()
	if err != nil && !errors.Is(err, checkpointerrors.ErrCheckpointNotFound) {
		return fmt.Errorf("unable to read the checkpoint: %w", err)
	}
	if err != nil || c.V2.NodeBootID != d.bootID {
		return d.save(&checkpoint{V2: &checkpointV2{NodeBootID: d.bootID}})
	}
	return nil
}
