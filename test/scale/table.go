// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The rows of the table. Bars apply to 10,000 nodes.
var rows = []struct{ name, bar string }{
	{"KB of a Node", "20"},
	{"load: Nodes and slices s", ""},
	{"first sync: start to leading s", "<= 30"},
	{"first labels of all nodes: after leading s", ""},
	{"nodes and slices: private dirty idle MB", ""},
	{"nodes and slices: peak MB", ""},
	{"first start: CPU s", ""},
	{"first start: MB read", ""},
	{"load: daemons come s", ""},
	{"daemons come: CPU s", ""},
	{"daemons come: MB read", ""},
	{"nodes and daemons: private dirty idle MB", ""},
	{"a foreign change of a Node: ms of CPU", ""},
	{"a foreign change of a Node: KB read", ""},
	{"load: label patches of the large domain s", ""},
	{"large domain: leading to all assigned s", ""},
	{"large domain: leading to all labelled s", ""},
	{"all assigned, in times of the load program's label patches", "<= 2"},
	{"large domain: first report to Ready s", ""},
	{"large domain formed: CPU s", ""},
	{"large domain formed: MB read", ""},
	{"large domain: deletion s", ""},
	{"large domain: deletion after the last request s", ""},
	{"large domain deleted: CPU s", ""},
	{"large domain deleted: MB read", ""},
	{"many domains: allocations s", ""},
	{"many domains: last allocation to all labelled s", ""},
	{"many domains: last allocation to all assigned s", ""},
	{"many domains: last allocation to all Ready s", ""},
	{"many domains formed: CPU s", ""},
	{"many domains formed: MB read", ""},
	{"leader with everything: private dirty idle MB", ""},
	{"leader with everything: peak MB", ""},
	{"why, admin: median of 11 s", "<= 2 with 1000 nodes"},
	{"why, admin: longest s", ""},
	{"why, role view: median of 11 s", "<= 2 with 1000 nodes"},
	{"why, role view: longest s", ""},
	{"sync with everything: start to candidate s", "<= 30"},
	{"sync with everything: CPU s", ""},
	{"sync with everything: MB read", ""},
	{"everything after sync: private dirty idle MB", "<= 40"},
	{"everything after sync: peak MB", ""},
	{"failover: kill to lease s", ""},
	{"failover: lease to first write s", "<= 5"},
	{"failover: CPU s", ""},
	{"many domains: deletion s", ""},
	{"many domains: deletion after the last request s", ""},
	{"many domains deleted: CPU s", ""},
	{"many domains deleted: MB read", ""},
	{"peak of the second controller MB", ""},
	{"watches ended by the server as too slow", ""},
	{"leases lost", "0"},
	{"conflicts", "0"},
}

var phases = []string{"first start", "daemons", "foreign changes", "large domain: claims", "large domain: assignments, labels", "large domain: Ready",
	"large domain: deletion", "many domains: formation", "sync with everything", "failover", "many domains: deletion"}

func line(cells ...string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }

func number(v float64) string {
	switch {
	case v == float64(int(v)):
		return fmt.Sprintf("%.0f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func table(files []string) {
	var results []result
	for _, f := range files {
		var r result
		text, err := os.ReadFile(f)
		check(err, f)
		check(json.Unmarshal(text, &r), f)
		results = append(results, r)
	}
	head, rule := []string{"what"}, []string{"---"}
	for _, r := range results {
		head, rule = append(head, fmt.Sprintf("%d nodes", r.Nodes)), append(rule, "---")
	}
	line(append(head, "bar")...)
	line(append(rule, "---")...)
	for _, row := range rows {
		cells := []string{row.name}
		for _, r := range results {
			if v, measured := r.Figures[row.name]; measured {
				cells = append(cells, number(v))
			} else {
				cells = append(cells, "-")
			}
		}
		line(append(cells, row.bar)...)
	}
	fmt.Println("\nRequests of the controllers to the API server, without those for leases:")
	for _, phase := range phases {
		var verbs []string
		for _, r := range results {
			for verb := range r.Requests[phase] {
				if !slices.Contains(verbs, verb) {
					verbs = append(verbs, verb)
				}
			}
		}
		slices.Sort(verbs)
		fmt.Println()
		head[0] = phase
		line(head...)
		line(rule...)
		for _, verb := range verbs {
			cells := []string{verb}
			for _, r := range results {
				cells = append(cells, fmt.Sprint(r.Requests[phase][verb]))
			}
			line(cells...)
		}
	}
}
