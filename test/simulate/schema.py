#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the schemas of the chart's CustomResourceDefinitions as JSON, in C string literals: schema.py FILE.yaml..."""
import json
import sys

import yaml


def without_descriptions(schema):
    if isinstance(schema, list):
        return [without_descriptions(x) for x in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: without_descriptions(v) for k, v in schema.items() if k != "description" or isinstance(v, dict)}


for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as f:
        crd = yaml.safe_load(f)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    print(json.dumps(json.dumps(without_descriptions(schema))) + ",")
