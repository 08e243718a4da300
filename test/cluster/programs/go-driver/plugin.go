// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/utils/ptr"
)

const (
	pluginDir = "/var/lib/kubelet/plugins/" + driver
	cdiDir    = "/var/run/cdi"
	hostRoot  = "/run/nvidia/driver"
)

type dra struct{ clique, bootID string }

// setting returns the value of a name in a file with NAME=value lines, or with "value name" lines.
func setting(path, pattern string) string {
	b, err := os.ReadFile(path)
	must(err)
	m := regexp.MustCompile("(?m)" + pattern).FindSubmatch(b)
	if m == nil {
		must(fmt.Errorf("%s has no %s", path, pattern))
	}
	return string(m[1])
}

func major(name string) int {
	n, err := strconv.Atoi(setting("/driver-root/proc/devices", `^\s*(\d+) `+name+"$"))
	must(err)
	return n
}

func plugin(ctx context.Context) error {
	nvml := "/driver-root/usr/lib64/libnvidia-ml.conf"
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	must(err)
	d := &dra{setting(nvml, "^CLUSTER_UUID=(.*)$") + "." + setting(nvml, "^CLIQUE_ID=(.*)$"), strings.TrimSpace(string(boot))}
	must(os.MkdirAll(pluginDir+"/domains", 0o755))
	must(writeCDI("device_base", "device", "all", map[string]any{
		"env":    []string{"NVIDIA_VISIBLE_DEVICES=void"},
		"mounts": []any{mount(hostRoot+"/usr/bin/nvidia-imex", "/usr/bin/nvidia-imex", "ro"), mount(hostRoot+"/usr/bin/nvidia-imex-ctl", "/usr/bin/nvidia-imex-ctl", "ro")},
	}))
	must(d.start())
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.DriverName(driver), kubeletplugin.KubeClient(core), kubeletplugin.NodeName(node),
		kubeletplugin.PluginDataDirectoryPath(pluginDir), kubeletplugin.Serialize(false))
	must(err)
	devices := []resourceapi.Device{}
	for _, kind := range []string{"channel", "daemon"} {
		devices = append(devices, resourceapi.Device{Name: kind + "-0", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"type": {StringValue: ptr.To(kind)}, "id": {IntValue: ptr.To(int64(0))}}})
	}
	must(helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: {Slices: []resourceslice.Slice{{Devices: devices}}}}}))
	go healthy()
	<-ctx.Done()
	helper.Stop()
	return nil
}

func (d *dra) HandleError(_ context.Context, err error, msg string) {
	fmt.Fprintln(os.Stderr, msg, err)
}

// ---- CDI

func mount(host, inside string, access string) any {
	return map[string]any{"hostPath": host, "containerPath": inside, "options": []string{access, "nosuid", "nodev", "bind"}}
}

func device(path string, major, minor int) any {
	n := map[string]any{"path": path, "hostPath": path, "type": "c", "major": major, "fileMode": 0o666}
	if minor != 0 {
		n["minor"] = minor
	}
	return n
}

func cdiFile(name string) string { return cdiDir + "/k8s." + driver + "-" + name + ".yaml" }

func writeCDI(file, class, name string, edits any) error {
	spec, err := json.Marshal(map[string]any{"cdiVersion": "0.5.0", "kind": "k8s." + driver + "/" + class,
		"devices": []any{map[string]any{"name": name, "containerEdits": edits}}})
	must(err)
	tmp := cdiDir + "/spec." + file + ".tmp"
	must(os.WriteFile(tmp, append([]byte("---\n"), spec...), 0o600))
	return os.Rename(tmp, cdiFile(file))
}

// ---- Prepare and Unprepare

// config returns the opaque configuration of the claim.
func config(s *resourceapi.ResourceClaimStatus) (kind, domain string) {
	for _, c := range s.Allocation.Devices.Config {
		if c.Opaque != nil && c.Opaque.Driver == driver {
			var p struct{ Kind, DomainID string }
			must(json.Unmarshal(c.Opaque.Parameters.Raw, &p))
			kind, domain = p.Kind, p.DomainID
		}
	}
	return
}

// known fails for a claim with a configuration of another kind than the two that the driver decodes, also in each
// call of Unprepare.
func known(s *resourceapi.ResourceClaimStatus) error {
	if s.Allocation == nil {
		return nil
	}
	for _, c := range s.Allocation.Devices.Config {
		if c.Opaque == nil || c.Opaque.Driver != driver {
			continue
		}
		var p struct{ APIVersion, Kind string }
		if err := json.Unmarshal(c.Opaque.Parameters.Raw, &p); err != nil {
			return fmt.Errorf("error decoding config parameters: %w", err)
		}
		if p.APIVersion != apiVersion || (p.Kind != "ComputeDomainChannelConfig" && p.Kind != "ComputeDomainDaemonConfig") {
			return fmt.Errorf("error decoding config parameters: no kind %q is registered for version %q", p.Kind, p.APIVersion)
		}
	}
	return nil
}

// locked runs f under the node's lock, as the plugins of both drivers do.
func locked(f func() error) error {
	lock, err := os.OpenFile(pluginDir+"/pu.lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return f()
}

func (d *dra) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	result := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		for {
			var r kubeletplugin.PrepareResult
			err := locked(func() (err error) { r, err = d.prepare(ctx, claim); return })
			if err == nil {
				result[claim.UID] = r
				break
			}
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(250 * time.Millisecond):
			}
		}
	}
	return result, nil
}

func (d *dra) prepare(ctx context.Context, claim *resourceapi.ResourceClaim) (r kubeletplugin.PrepareResult, err error) {
	uid, res := string(claim.UID), claim.Status.Allocation.Devices.Results[0]
	kind, domain := config(&claim.Status)
	c, err := d.load()
	if err != nil {
		return
	}
	entry, there := c.V2.PreparedClaims[uid]
	if !there || entry.CheckpointState != "PrepareCompleted" {
		entry = claimV2{CheckpointState: "PrepareStarted", Status: claim.Status, Name: claim.Name, Namespace: claim.Namespace}
		c.V2.PreparedClaims[uid] = entry
		if err = d.save(c); err != nil {
			return
		}
		made := &device1{Requests: []string{res.Request}, PoolName: res.Pool, DeviceName: res.Device,
			CDIDeviceIDs: []string{"k8s." + driver + "/claim=" + uid + "-" + res.Device}}
		group := deviceGroup{Devices: make([]deviceOf, 1)}
		if kind == "ComputeDomainDaemonConfig" {
			group.ConfigState.Type = "daemon"
			made.CDIDeviceIDs = append([]string{"k8s." + driver + "/device=all"}, made.CDIDeviceIDs...)
			group.Devices[0].Daemon = &device2{Device: made}
			err = d.prepareDaemon(ctx, uid, res.Device, domain)
		} else {
			group.ConfigState.Type = "channel"
			group.Devices[0].Channel = &device2{Device: made}
			err = d.prepareChannel(ctx, uid, res.Device, domain)
		}
		if err != nil {
			return
		}
		group.ConfigState.ComputeDomain = domain
		entry.CheckpointState, entry.PreparedDevices = "PrepareCompleted", []deviceGroup{group}
		c.V2.PreparedClaims[uid] = entry
		if err = d.save(c); err != nil {
			return
		}
	}
	for _, g := range entry.PreparedDevices {
		for _, x := range g.Devices {
			p := x.Channel
			if p == nil {
				p = x.Daemon
			}
			r.Devices = append(r.Devices, kubeletplugin.Device{Requests: p.Device.Requests, PoolName: p.Device.PoolName,
				DeviceName: p.Device.DeviceName, CDIDeviceIDs: p.Device.CDIDeviceIDs})
		}
	}
	return
}

func (d *dra) prepareDaemon(ctx context.Context, uid, name, domain string) error {
	dir := pluginDir + "/domains/" + domain
	must(os.MkdirAll(dir, 0o755))
	must(os.WriteFile(dir+"/imexd.cfg.tmpl", []byte("SERVER_PORT=50000\nIMEX_NODE_CONFIG_FILE=/imexd/nodes.cfg\nIMEX_WAIT_FOR_QUORUM=RECOVERY\n"+
		"DAEMONIZE=0\nLOG_FILE_NAME=\nIMEX_CMD_ENABLED=1\nIMEX_CMD_PORT=50005\nIMEX_CMD_BIND_INTERFACE_IP={{.IMEXCmdBindInterfaceIP}}\n"), 0o644))
	cd, err := domainOf(ctx, domain)
	if err != nil {
		return err
	}
	return writeCDI("claim_"+uid, "claim", uid+"-"+name, map[string]any{
		"env": []string{"CLIQUE_ID=" + d.clique, "COMPUTE_DOMAIN_UUID=" + domain, "COMPUTE_DOMAIN_NAME=" + cd.GetName(),
			"COMPUTE_DOMAIN_NAMESPACE=" + cd.GetNamespace()},
		"deviceNodes": []any{device("/dev/nvidia-caps/nvidia-cap512", major("nvidia-caps"), 512)},
		"mounts":      []any{mount(dir, "/imexd", "rw")},
	})
}

func (d *dra) prepareChannel(ctx context.Context, uid, name, domain string) error {
	if err := labelNode(ctx, domain, domain); err != nil {
		return err
	}
	clique, err := get(ctx, cliques, namespace, domain+"."+d.clique)
	if err != nil {
		return err
	}
	for _, e := range entries(clique, "daemons") {
		if text(e, "nodeName") == node && text(e, "status") == "Ready" {
			return writeCDI("claim_"+uid, "claim", uid+"-"+name, map[string]any{
				"deviceNodes": []any{device("/dev/nvidia-caps-imex-channels/channel0", major("nvidia-caps-imex-channels"), 0)}})
		}
	}
	return fmt.Errorf("current node not ready in ComputeDomain %s", domain)
}

// labelNode sets the label of the node. With an empty value it removes the label if it is this ComputeDomain's.
func labelNode(ctx context.Context, domain, value string) error {
	n, err := core.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	has := n.Labels[label]
	switch {
	case value != "" && has != "" && has != domain:
		return fmt.Errorf("node belongs to ComputeDomain %s", has)
	case has == value || (value == "" && has != domain):
		return nil
	case value == "":
		delete(n.Labels, label)
	default:
		n.Labels[label] = value
	}
	_, err = core.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
	return err
}

func (d *dra) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	result := map[types.UID]error{}
	for _, claim := range claims {
		result[claim.UID] = locked(func() error { return d.unprepare(ctx, string(claim.UID)) })
	}
	return result, nil
}

func (d *dra) unprepare(ctx context.Context, uid string) error {
	c, err := d.load()
	if err != nil {
		return err
	}
	entry, there := c.V2.PreparedClaims[uid]
	if !there {
		return nil
	}
	if err := known(&entry.Status); err != nil {
		return err
	}
	for _, g := range entry.PreparedDevices {
		if g.ConfigState.Type == "channel" {
			if err := labelNode(ctx, g.ConfigState.ComputeDomain, ""); err != nil {
				return err
			}
		}
	}
	delete(c.V2.PreparedClaims, uid)
	if err := d.save(c); err != nil {
		return err
	}
	if err := os.Remove(filepath.Clean(cdiFile("claim_" + uid))); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
