#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""operators.py PORT CA <manifests: prints the definitions, the roles and the webhooks of an operator's manifests, as a List in JSON. The
operator runs beside the API server here, so its webhooks are called at 127.0.0.1:PORT, with a certificate of that CA."""
import base64
import json
import sys

import yaml

KINDS = (
    "Namespace",
    "CustomResourceDefinition",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)


def redirect(client, port, ca):
    path = client.pop("service")["path"]
    client.update(url=f"https://127.0.0.1:{port}{path}", caBundle=ca)


def main(port, ca_file):
    with open(ca_file, "rb") as f:
        ca = base64.b64encode(f.read()).decode()
    items = [o for o in yaml.safe_load_all(sys.stdin) if o and o["kind"] in KINDS]
    for o in items:
        for hook in o.get("webhooks", []):
            redirect(hook["clientConfig"], port, ca)
        conversion = o.get("spec", {}).get("conversion", {}) if o["kind"] == "CustomResourceDefinition" else {}
        if conversion.get("strategy") == "Webhook":
            redirect(conversion["webhook"]["clientConfig"], port, ca)
    json.dump({"apiVersion": "v1", "kind": "List", "items": items}, sys.stdout)


main(sys.argv[1], sys.argv[2])
