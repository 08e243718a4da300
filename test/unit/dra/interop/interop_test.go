// SPDX-License-Identifier: Apache-2.0

// Calls the C server with gRPC for Go and the kubelet's own types, as on a node.
package interop

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	drahealth "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type server struct {
	cmd   *exec.Cmd
	dir   string
	lines chan string
}

func start(t *testing.T) *server {
	t.Helper()
	binary := os.Getenv("INTEROP_SERVER")
	if binary == "" {
		t.Skip("INTEROP_SERVER is not set")
	}
	dir, err := os.MkdirTemp("", "dra") // t.TempDir() is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{cmd: exec.Command(binary, dir), dir: dir, lines: make(chan string, 64)}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for sc := bufio.NewScanner(out); sc.Scan(); {
			s.lines <- sc.Text()
		}
		close(s.lines)
	}()
	if l := s.line(t); l != "ready" {
		t.Fatalf("line %q", l)
	}
	return s
}

func (s *server) line(t *testing.T) string {
	t.Helper()
	select {
	case l := <-s.lines:
		return l
	case <-time.After(20 * time.Second):
		t.Fatal("the server printed nothing")
		return ""
	}
}

// The server must exit with 0. With a leak the sanitizers change the status.
func (s *server) stop(t *testing.T) {
	t.Helper()
	s.cmd.Process.Signal(syscall.SIGTERM)
	for range s.lines {
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("server: %v", err)
	}
	for _, name := range []string{s.draSocket(), s.registrationSocket()} {
		if _, err := os.Lstat(name); !os.IsNotExist(err) {
			t.Errorf("%s is left behind", name)
		}
	}
}

func (s *server) draSocket() string { return filepath.Join(s.dir, "plugin", "dra.sock") }
func (s *server) registrationSocket() string {
	return filepath.Join(s.dir, "test.example.com-reg.sock")
}

// Connects as the kubelet's DRA manager does.
func (s *server) dra(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+s.draSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Connects as the kubelet's plugin watcher does: the address is a bare path, which becomes the :authority.
func (s *server) registration(t *testing.T) registerapi.RegistrationClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+s.registrationSocket(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", addr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return registerapi.NewRegistrationClient(conn)
}

func seconds(t *testing.T, n int) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(n)*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func claim(name string) *drav1.Claim {
	return &drav1.Claim{Namespace: "ns", Name: name, Uid: "uid-" + name}
}

func prepareRequest(names ...string) *drav1.NodePrepareResourcesRequest {
	r := &drav1.NodePrepareResourcesRequest{}
	for _, n := range names {
		r.Claims = append(r.Claims, claim(n))
	}
	return r
}

func wantCode(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), text) {
		t.Errorf("got %v, want %v with %q", err, code, text)
	}
}

// The messages of v1 are those of v1alpha1.
func TestHealth(t *testing.T) {
	for _, version := range []string{"v1", "v1alpha1"} {
		t.Run(version, func(t *testing.T) {
			s := start(t)
			conn := s.dra(t)
			stream, err := conn.NewStream(seconds(t, 20), &grpc.StreamDesc{ServerStreams: true},
				"/"+version+".DRAResourceHealth/NodeWatchResources")
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.SendMsg(&drahealth.NodeWatchResourcesRequest{}); err != nil {
				t.Fatal(err)
			}
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			receive := func() *drahealth.DeviceHealth {
				var r drahealth.NodeWatchResourcesResponse
				if err := stream.RecvMsg(&r); err != nil {
					t.Fatal(err)
				}
				if len(r.Devices) != 2 || r.Devices[1].Health != drahealth.HealthStatus_UNKNOWN ||
					r.Devices[0].Device.PoolName != "node-1" || r.Devices[0].Device.DeviceName != "channel-0" ||
					time.Since(time.Unix(r.Devices[0].LastUpdatedTime, 0)) > time.Minute {
					t.Errorf("devices %v", r.Devices)
				}
				return r.Devices[0]
			}
			if d := receive(); d.Health != drahealth.HealthStatus_HEALTHY || d.Message != "" {
				t.Errorf("device %v", d)
			}
			_, err = drav1.NewDRAPluginClient(conn).NodeUnprepareResources(seconds(t, 10),
				&drav1.NodeUnprepareResourcesRequest{Claims: []*drav1.Claim{claim("a")}})
			if err != nil {
				t.Fatal(err)
			}
			if d := receive(); d.Health != drahealth.HealthStatus_UNHEALTHY || d.Message != "lost nöde-2" {
				t.Errorf("device %v", d)
			}
			s.stop(t)
			wantCode(t, stream.RecvMsg(&drahealth.NodeWatchResourcesResponse{}), codes.Unavailable, "")
		})
	}
}

func TestRegistration(t *testing.T) {
	s := start(t)
	defer s.stop(t)
	c := s.registration(t)
	info, err := c.GetInfo(seconds(t, 10), &registerapi.InfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if info.Type != registerapi.DRAPlugin || info.Name != "test.example.com" || info.Endpoint != s.draSocket() {
		t.Errorf("info %v", info)
	}
	if got := strings.Join(info.SupportedVersions, " "); got != drav1.DRAPluginService+" "+drav1beta1.DRAPluginService+
		" v1.DRAResourceHealth v1alpha1.DRAResourceHealth" {
		t.Errorf("versions %q", got)
	}
	if _, err := c.NotifyRegistrationStatus(seconds(t, 10), &registerapi.RegistrationStatus{PluginRegistered: true}); err != nil {
		t.Error(err)
	}
	if l := s.line(t); l != "registered " {
		t.Errorf("line %q", l)
	}
	_, err = c.NotifyRegistrationStatus(seconds(t, 10), &registerapi.RegistrationStatus{Error: "no room"})
	wantCode(t, err, codes.Unknown, "no room")
	if l := s.line(t); l != "refused no room" {
		t.Errorf("line %q", l)
	}
}

func TestPrepareV1(t *testing.T) {
	s := start(t)
	defer s.stop(t)
	c := drav1.NewDRAPluginClient(s.dra(t))
	r, err := c.NodePrepareResources(seconds(t, 10), prepareRequest("good", "fail", "none"))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Claims) != 3 {
		t.Fatalf("claims %v", r.Claims)
	}
	if got := r.Claims["uid-fail"].Error; got != "claim is \"bäd\": 100% wrong" {
		t.Errorf("error %q", got)
	}
	if none := r.Claims["uid-none"]; none.Error != "" || len(none.Devices) != 0 {
		t.Errorf("none %v", none)
	}
	good := r.Claims["uid-good"]
	if good.Error != "" || len(good.Devices) != 2 {
		t.Fatalf("good %v", good)
	}
	d := good.Devices[0]
	if strings.Join(d.RequestNames, " ") != "channel other" || d.PoolName != "node-1" || d.DeviceName != "channel-0" || len(d.CdiDeviceIds) != 2 || d.ShareId != nil {
		t.Errorf("device %v", d)
	}
	if d := good.Devices[1]; len(d.RequestNames) != 0 || len(d.CdiDeviceIds) != 0 {
		t.Errorf("device %v", d)
	}
}

// The kubelet's own wrapper converts v1 requests to v1beta1.
func TestPrepareV1beta1(t *testing.T) {
	s := start(t)
	defer s.stop(t)
	c := drav1beta1.V1Beta1ClientWrapper{DRAPluginClient: drav1beta1.NewDRAPluginClient(s.dra(t))}
	r, err := c.NodePrepareResources(seconds(t, 10), prepareRequest("good"))
	if err != nil || len(r.Claims["uid-good"].Devices) != 2 {
		t.Errorf("%v %v", r, err)
	}
	u, err := c.NodeUnprepareResources(seconds(t, 10), &drav1.NodeUnprepareResourcesRequest{Claims: []*drav1.Claim{claim("good")}})
	if err != nil || len(u.Claims) != 1 {
		t.Errorf("%v %v", u, err)
	}
}

func TestUnprepare(t *testing.T) {
	s := start(t)
	defer s.stop(t)
	c := drav1.NewDRAPluginClient(s.dra(t))
	r, err := c.NodeUnprepareResources(seconds(t, 10), &drav1.NodeUnprepareResourcesRequest{Claims: []*drav1.Claim{claim("good"), claim("fail")}})
	if err != nil {
		t.Fatal(err)
	}
	if entry, ok := r.Claims["uid-good"]; !ok || entry.GetError() != "" {
		t.Errorf("good %v", entry)
	}
	if got := r.Claims["uid-fail"].GetError(); got != "cannot unprepare" {
		t.Errorf("error %q", got)
	}
}

func TestBadRequests(t *testing.T) {
	s := start(t)
	defer s.stop(t)
	c := drav1.NewDRAPluginClient(s.dra(t))
	_, err := c.NodePrepareResources(seconds(t, 10), prepareRequest())
	wantCode(t, err, codes.InvalidArgument, "no claims")
	_, err = c.NodePrepareResources(seconds(t, 10), prepareRequest("a", "b", "a"))
	wantCode(t, err, codes.InvalidArgument, "claim 'ns/a': the uid 'uid-a' is in the request twice")
	_, err = c.NodePrepareResources(seconds(t, 10), &drav1.NodePrepareResourcesRequest{Claims: []*drav1.Claim{{Namespace: "ns", Name: "x"}}})
	wantCode(t, err, codes.InvalidArgument, "('ns/x') has no uid")
	_, err = c.NodePrepareResources(seconds(t, 10), &drav1.NodePrepareResourcesRequest{Claims: []*drav1.Claim{{Namespace: "ns", Name: "x", Uid: "../x"}}})
	wantCode(t, err, codes.InvalidArgument, "invalid uid")
	_, err = c.NodePrepareResources(seconds(t, 10), prepareRequest(strings.Repeat("x", 5<<20)))
	wantCode(t, err, codes.ResourceExhausted, "at most 4194304")
	if _, err = c.NodePrepareResources(seconds(t, 10), prepareRequest("good")); err != nil {
		t.Errorf("after the bad ones: %v", err)
	}
}

// An operation that waits does not block others on the same connection.
func TestWaitBlocksNobody(t *testing.T) {
	s := start(t)
	defer s.stop(t)
	c := drav1.NewDRAPluginClient(s.dra(t))
	done := make(chan error, 1)
	go func() {
		r, err := c.NodePrepareResources(seconds(t, 45), prepareRequest("good", "wait-1"))
		if err == nil && len(r.Claims) != 2 {
			err = fmt.Errorf("claims %v", r.Claims)
		}
		done <- err
	}()
	if l := s.line(t); l != "waiting wait-1" {
		t.Fatalf("line %q", l)
	}
	for range 10 {
		if _, err := c.NodePrepareResources(seconds(t, 10), prepareRequest("good")); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("answered too early: %v", err)
	default:
	}
	if _, err := c.NodePrepareResources(seconds(t, 10), prepareRequest("release")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	s := start(t)
	defer s.stop(t)
	c := drav1.NewDRAPluginClient(s.dra(t))
	ctx, cancel := context.WithCancel(seconds(t, 45))
	done := make(chan error, 1)
	go func() {
		_, err := c.NodePrepareResources(ctx, prepareRequest("wait-1", "good", "wait-2"))
		done <- err
	}()
	s.line(t)
	s.line(t)
	cancel()
	wantCode(t, <-done, codes.Canceled, "")
	for range 2 {
		if l := s.line(t); l != "cancelled -" {
			t.Errorf("line %q", l)
		}
	}
}

func TestDeadline(t *testing.T) {
	s := start(t)
	defer s.stop(t)
	c := drav1.NewDRAPluginClient(s.dra(t))
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := c.NodePrepareResources(ctx, prepareRequest("wait-1"))
	wantCode(t, err, codes.DeadlineExceeded, "")
	if l := s.line(t); l != "waiting wait-1" {
		t.Errorf("line %q", l)
	}
	if l := s.line(t); l != "cancelled -" {
		t.Errorf("line %q", l)
	}
}

func TestShutdownEndsOpenCalls(t *testing.T) {
	s := start(t)
	c := drav1.NewDRAPluginClient(s.dra(t))
	done := make(chan error, 1)
	go func() {
		_, err := c.NodePrepareResources(seconds(t, 45), prepareRequest("wait-1"))
		done <- err
	}()
	s.line(t)
	s.stop(t)
	wantCode(t, <-done, codes.Unavailable, "shutting down")
}

func TestManyAtOnce(t *testing.T) {
	s := start(t)
	defer s.stop(t)
	c := drav1.NewDRAPluginClient(s.dra(t))
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			name := fmt.Sprintf("good-%d", i)
			r, err := c.NodePrepareResources(seconds(t, 45), prepareRequest(name))
			if err != nil || len(r.Claims["uid-"+name].GetDevices()) != 2 {
				t.Errorf("%s: %v %v", name, r, err)
			}
		})
	}
	wg.Wait()
}

// The kubelet requests device health on the same connection. The server offers neither this nor streams.
func TestUnknownMethods(t *testing.T) {
	s := start(t)
	defer s.stop(t)
	_, err := healthpb.NewHealthClient(s.dra(t)).Check(seconds(t, 10), &healthpb.HealthCheckRequest{})
	wantCode(t, err, codes.Unimplemented, "/grpc.health.v1.Health/Check")
	_, err = registerapi.NewRegistrationClient(s.dra(t)).GetInfo(seconds(t, 10), &registerapi.InfoRequest{})
	wantCode(t, err, codes.Unimplemented, "unknown method")
}
