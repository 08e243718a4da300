#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kueue.py CA <manifests: prints the CustomResourceDefinitions and webhooks of Kueue's rendered chart, as a List in JSON. The manager runs
beside the API server here, so the webhooks are called at 127.0.0.1, with a certificate of that CA."""
import base64
import json
import sys

import yaml

KINDS = ("CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def redirect(client, ca):
    path = client.pop("service")["path"]
    client.update(url="https://127.0.0.1:9443" + path, caBundle=ca)


def main(ca_file):
    with open(ca_file, "rb") as f:
        ca = base64.b64encode(f.read()).decode()
    items = [o for o in yaml.safe_load_all(sys.stdin) if o and o["kind"] in KINDS]
    for o in items:
        for hook in o.get("webhooks", []):
            redirect(hook["clientConfig"], ca)
        conversion = o.get("spec", {}).get("conversion", {})
        if conversion.get("strategy") == "Webhook":
            redirect(conversion["webhook"]["clientConfig"], ca)
    json.dump({"apiVersion": "v1", "kind": "List", "items": items}, sys.stdout)


main(sys.argv[1])
