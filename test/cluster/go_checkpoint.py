# SPDX-License-Identifier: Apache-2.0
"""The checkpoint of a node's GPU claims as the Go driver has it.

    go_checkpoint.py main|released <ours >theirs     what that Go driver would have left of the same claims
    go_checkpoint.py judge <file                     whether a Go driver would take it, and which: main, released or any; else fails

Between 0.4 and 0.5 it changed how it writes that a group of devices has nothing special, which its checksums cover: neither reads a file of
the other once a claim is in it. Neither writes the claim's name into an entry that is complete.
"""

import json
import sys

NOTHING = {"main": {}, "released": {"mpsControlDaemonID": ""}}


def text_of(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def checksum(text):
    """Kubernetes' own of a checkpoint: FNV-1a over how Go prints the bytes."""
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


def groups(claims):
    return [g for uid in claims for g in claims[uid].get("preparedDevices", [])]


def main(what):
    text = sys.stdin.read()
    v2 = json.loads(text)["v2"]
    claims = v2.get("preparedClaims", {})
    if what == "judge":
        if sealed(claims, v2["nodeBootID"]) != text:
            sys.exit("no Go driver takes it: a member too many, in another place, or a wrong checksum")
        found = {d for g in groups(claims) for d in NOTHING if g["configState"] == NOTHING[d]}
        if len(found) > 1:
            sys.exit("no Go driver takes it: groups of both forms")
        print(*(found or ["any"]))
        return
    for claim in claims.values():
        claim.pop("name", None)
        claim.pop("namespace", None)
    for group in groups(claims):
        group["configState"] = NOTHING[what]
    sys.stdout.write(sealed(claims, v2["nodeBootID"]))


main(sys.argv[1])
