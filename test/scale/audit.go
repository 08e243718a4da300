// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"slices"
	"time"
)

type request struct {
	Verb      string    `json:"verb"`
	Stage     string    `json:"stage"`
	SourceIPs []string  `json:"sourceIPs"`
	Received  time.Time `json:"requestReceivedTimestamp"`
	Done      time.Time `json:"stageTimestamp"`
	Object    *struct {
		Resource, Subresource, Name string
	} `json:"objectRef"`
	Status *struct {
		Code int
	} `json:"responseStatus"`
}

func (r *request) what() string {
	if r.Object == nil {
		return r.Verb + " -"
	}
	if r.Object.Subresource != "" {
		return r.Verb + " " + r.Object.Resource + "/" + r.Object.Subresource
	}
	return r.Verb + " " + r.Object.Resource
}

func (r *request) write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// An audit reads the controllers' requests from the server's audit log, which is written before a request is answered.
type audit struct {
	path string
}

func (a *audit) position() int64 {
	s, err := os.Stat(a.path)
	check(err, a.path)
	return s.Size()
}

// each calls back for every answered request from one of the addresses between two positions. A watch counts at its beginning.
func (a *audit) each(from, to int64, addresses []string, f func(r *request)) {
	file, err := os.Open(a.path)
	check(err, a.path)
	defer file.Close()
	_, err = file.Seek(from, io.SeekStart)
	check(err, a.path)
	lines := bufio.NewReaderSize(io.LimitReader(file, to-from), 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		check(json.Unmarshal(line, &r), "audit log")
		stage := "ResponseComplete"
		if r.Verb == "watch" {
			stage = "ResponseStarted"
		}
		if r.Stage == stage && len(r.SourceIPs) > 0 && slices.Contains(addresses, r.SourceIPs[0]) {
			f(&r)
		}
	}
}
