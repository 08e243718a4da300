# SPDX-License-Identifier: Apache-2.0
"""Measures shared claims of this driver on the test cluster, with its controller, its plugins and the hosts' IMEX, which is READY.

As in claims.py, but the controller allocates and reserves the claims, and the plugins prepare them. The forms:

    plain                   without a claim
    template-driver         a claim for each pod, from spec.channel.resourceClaimTemplate of the ComputeDomain
    named-driver            all pods name the claim of spec.channel.resourceClaim
    gang                    pods of a PodGroup with gang scheduling, without a claim
    group-driver            the PodGroup names the claim of spec.channel.resourceClaim
    group-template-driver   the PodGroup names the claim template of spec.channel.sharedResourceClaimTemplate

Each form has its own ComputeDomain, which exists before the first Job. ./claims sets up the cluster and calls this program."""

import claims
from bench import CD_GROUP, DRIVER_NS, NS
from claims import DRA, Claims, claim_of
from kubeapi import Watch

# ---- The limits, stated before the first run. No pod uses a claim when a Job starts.
claims.RATIO.update({"template-driver": 1.10, "named-driver": 1.08, "group-driver": 1.08, "group-template-driver": 1.08})
claims.WRITES.update({"named-driver": (0, 1), "group-driver": (0, 0), "group-template-driver": (1, 1)})
# ----

FIELDS = {"template-driver": "resourceClaimTemplate", "named-driver": "resourceClaim", "group-driver": "resourceClaim",
          "group-template-driver": "sharedResourceClaimTemplate"}
ALL = ("plain", "template-driver", "named-driver", "gang", "group-driver", "group-template-driver")


class DriverClaims(Claims):
    def set_up(self, forms):
        mine = [form for form in forms if form in FIELDS]
        for form in mine:
            self.make(f"{CD_GROUP}/namespaces/{NS}/computedomains", {
                "apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": {"name": claim_of(form)},
                "spec": {"numNodes": 0, "channel": {FIELDS[form]: {"name": claim_of(form)}}}})
        wanted = {claim_of(form) for form in mine if FIELDS[form] == "resourceClaim"}
        self.claims.wait(lambda list_: wanted <= {c["metadata"]["name"] for c in list_ if c.get("status", {}).get("allocation")}, 120,
                         "claims that the controller has allocated")
        templates = Watch(self.k, f"{DRA}/namespaces/{NS}/resourceclaimtemplates")
        wanted = {claim_of(form) for form in mine if "template" in form}
        templates.wait(lambda list_: wanted <= {t["metadata"]["name"] for t in list_}, 60, "claim templates")
        templates.stop()

    def our_pods(self):
        return self.k.get(f"/api/v1/namespaces/{DRIVER_NS}/pods")["items"]

    def named(self, form):
        return {"resourceClaimTemplateName" if "template" in form else "resourceClaimName": claim_of(form)}

    def idle(self, claim):
        """The claim is as it was before the first Job. Claims from templates are deleted."""
        shared = [claim_of(form) for form, field in FIELDS.items() if field == "resourceClaim"]
        return claim["metadata"]["name"] in shared and not claim.get("status", {}).get("reservedFor")


if __name__ == "__main__":
    claims.main(DriverClaims, ALL, __doc__)
