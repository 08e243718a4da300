#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a Prometheus has seen lately of the series that alerts name, as input_series of `promtool test rules`, for test/chart/monitoring.bats.
The first lines of a recording, "# fires: ALERT=NUMBER" and "# gate: FEATUREGATE", are its editor's:

    test/alerts/record.py URL SECONDS ALERTS.YAML"""

import json
import os
import sys
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import named  # noqa: E402

STEP = 15
DROPPED = {"__name__", "job", "container", "instance"}


def metrics(path):
    return sorted({m for e in named.expressions(path) for m in named.named(e)})


def fetch(url, name, begin, end):
    query = urllib.parse.urlencode({"query": name, "start": begin, "end": end, "step": STEP})
    with urllib.request.urlopen(f"{url}/api/v1/query_range?{query}") as answer:
        return json.load(answer)["data"]["result"]


def runs(values):
    """Equal neighbours in promtool's short form: v+0xN is v and N repetitions, and _xN is N missing values.
    "stale" means that the series has ended, because a scrape did not find it."""
    out, i = [], 0
    while i < len(values):
        n = 1
        while i + n < len(values) and values[i + n] == values[i]:
            n += 1
        if values[i] is None:
            out += (["stale"] if out else ["_"]) + ([f"_x{n - 1}"] if n > 1 else [])
        else:
            out.append(values[i] if n == 1 else f"{values[i]}+0x{n - 1}")
        i += n
    return " ".join(out)


def main():
    url, seconds, alerts = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    end = int(time.time()) // STEP * STEP
    begin = end - seconds // STEP * STEP
    print(f"# ends: {end - begin}s\ninterval: {STEP}s\ninput_series:")
    for name in metrics(alerts):
        for series in fetch(url, name, begin, end):
            labels = ", ".join(f'{k}="{v}"' for k, v in sorted(series["metric"].items()) if k not in DROPPED)
            at = {int(float(t)): v for t, v in series["values"]}
            values = [at.get(t) for t in range(begin, end + 1, STEP)]
            print(f"  - series: '{name}{{{labels}}}'\n    values: '{runs(values)}'")


if __name__ == "__main__":
    main()
