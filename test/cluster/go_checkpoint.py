# SPDX-License-Identifier: Apache-2.0
"""The checkpoint of a node's GPU claims as builds of the Go driver's main branch wrote it before 2026-08-11.

    go_checkpoint.py write <checkpoint of this driver >checkpoint of such a build, with the same claims
    go_checkpoint.py judge <file             fails unless such a build reads the file

No release wrote or read this form: it omits that a group of devices has no MPS daemon, and the checksums cover that. Checkpoints of
releases are judged by the releases' own code (go-gpu). The Go driver does not write the name of a claim into a completed entry.
"""

import json
import sys


def text_of(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def checksum(text):
    """The checksum that Kubernetes uses for checkpoints: FNV-1a over the bytes as Go prints them."""
    h = 0x811C9DC5
    for byte in ("([]uint8)[" + " ".join(map(str, text.encode())) + "]").encode():
        h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    return h


def sealed(claims, boot_id):
    first = {uid: {k: c[k] for k in ("status", "preparedDevices") if k in c} for uid, c in claims.items() if c["checkpointState"] == "PrepareCompleted"}
    v1 = {"preparedClaims": first} if first else {}
    v2 = {"checksum": 0}
    if claims:
        v2["preparedClaims"] = claims
    v2["nodeBootID"] = boot_id
    v2["checksum"] = checksum(text_of(v2))
    return text_of({"checksum": checksum(text_of({"checksum": 0, "v1": v1})), "v1": v1, "v2": v2})


def main(what):
    text = sys.stdin.read()
    v2 = json.loads(text)["v2"]
    claims = v2.get("preparedClaims", {})
    groups = [g for uid in claims for g in claims[uid].get("preparedDevices", [])]
    if what == "judge":
        if sealed(claims, v2["nodeBootID"]) != text or any(g["configState"].get("mpsControlDaemonID") == "" for g in groups):
            sys.exit("a superfluous or misplaced member, or a wrong checksum")
        return
    for claim in claims.values():
        claim.pop("name", None)
        claim.pop("namespace", None)
    for group in groups:
        if group["configState"].get("mpsControlDaemonID") == "":
            del group["configState"]["mpsControlDaemonID"]
    sys.stdout.write(sealed(claims, v2["nodeBootID"]))


main(sys.argv[1])
