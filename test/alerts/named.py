#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the series, and their labels, in files with PromQL (alerts.yaml, dashboard.json), one line each: "METRIC LABEL...".

    test/alerts/named.py FILE..."""

import json
import re
import sys

METRIC = re.compile(r"nvidia_dra_\w+")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
GROUPING = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
QUERY = re.compile(r"label_values\([^,]*, (\w+)\)")
TARGET = {"node", "pod", "namespace", "instance"}  # what the scrape adds


def expressions(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if path.endswith(".json"):
        dashboard = json.loads(text)
        found = [t["expr"] for p in dashboard["panels"] for t in p["targets"]]
        return found + [v["definition"] for v in dashboard["templating"]["list"] if "definition" in v]
    # Without a YAML parser: an expression extends from "expr:" to the next key of its rule.
    return [" ".join(e.split()) for e in re.findall(r"^ +expr: (?:>-)?(.*?)^ +(?:for|labels):", text, re.S | re.M)]


def named(expression):
    """Maps each metric to its labels. Labels in braces belong to the metric before them, those of by() and on() to the whole expression."""
    grouping = {x.strip() for g in GROUPING.findall(expression) for x in g.split(",")} - TARGET
    grouping.update(QUERY.findall(expression))
    found = {}
    for m in METRIC.finditer(expression):
        braces = re.match(r"\s*\{([^}]*)\}", expression[m.end():])
        found.setdefault(m[0], set(grouping)).update(MATCHER.findall(braces[0]) if braces else [])
    return found


def main():
    everything = {}
    for path in sys.argv[1:]:
        for e in expressions(path):
            for metric, labels in named(e).items():
                everything.setdefault(metric, set()).update(labels)
    for metric, labels in sorted(everything.items()):
        print(metric, *sorted(labels))


if __name__ == "__main__":
    main()
