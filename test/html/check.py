#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a page of `kubectl compute-domains racks --html`:

  check.py --dom DOM NAMES    the DOM that a browser printed has a table with each name of the file NAMES, titles, and no element that
                              could run or load something
  check.py --net-log FILE     prints the URLs that the browser requested, except files and its own
  check.py --contrast PAGE    each colour of a text has enough contrast in light, dark and print (WCAG 2.2, 1.4.3: 4.5 to 1)"""
import html.parser
import json
import re
import sys

ALLOWED = {"html", "head", "meta", "link", "title", "style", "body", "header", "main", "section", "h1", "h2", "p", "time", "ul", "li", "b", "br",
           "div", "span", "table", "caption", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "rel", "href", "class", "scope"}
OWN = re.compile(r"^(file|data|chrome|chrome-extension|devtools|about|blob):|^https?://[\w.-]+\.(google|googleapis|gstatic|gvt1)\.com(:\d+)?(/|$)")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.bad, self.rows, self.captions, self.columns, self.title, self.at = [], set(), set(), 0, "", ""

    def handle_starttag(self, tag, attrs):
        self.at = "caption" if self.at == "caption" and tag == "b" else "row" if ("scope", "row") in attrs else tag
        self.columns += ("scope", "col") in attrs
        if tag not in ALLOWED or any(a not in ATTRIBUTES for a, _ in attrs) or (tag == "link" and ("href", "data:,") not in attrs):
            self.bad.append(f"<{tag} {attrs}>")

    def handle_data(self, data):
        {"row": self.rows, "caption": self.captions}.get(self.at, set()).add(data)
        self.title += data if self.at == "title" else ""

    def handle_endtag(self, tag):
        self.at = ""


def dom(path, names):
    page = Page()
    with open(path, encoding="utf-8") as f:
        page.feed(f.read())
    with open(names, encoding="utf-8") as f:
        wanted = f.read().splitlines()
    if page.bad:
        sys.exit("elements or attributes that the page should not have:\n" + "\n".join(page.bad))
    lost = [n for n in wanted if n not in page.rows | page.captions]
    if lost or not page.title or not page.columns:
        sys.exit(f"not in the page: {', '.join(lost) or 'a title, or the heads of columns'}")


def net_log(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    try:
        log = json.loads(text)
    except ValueError:  # the browser was ended before it closed the file
        log = json.loads(text.rstrip().rstrip(",") + "]}")
    urls = {e["params"]["url"] for e in log["events"] if isinstance(e.get("params", {}).get("url"), str)}
    print("\n".join(sorted(u for u in urls if not OWN.match(u))))


def luminance(color):
    color = "".join(c * 2 for c in color) if len(color) == 3 else color
    parts = [int(color[i:i + 2], 16) / 255 for i in (0, 2, 4)]
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(path):
    with open(path, encoding="utf-8") as f:
        sets = [dict(re.findall(r"--([\w-]+):#([0-9a-f]{3,6})", s)) for s in re.findall(r":root\{([^}]*)\}", f.read())]
    if len(sets) != 3:
        sys.exit("the page has not the colours of light, dark and print")
    for colors in sets:
        pairs = [(c, on) for c in ("text", "dim", "bad", "wait", "good") for on in ("page", "head")]
        for text, under in pairs + [("onto", f"c{i}") for i in range(8)]:
            a, b = sorted((luminance(colors[text]), luminance(colors[under])))
            if (b + 0.05) / (a + 0.05) < 4.5:
                sys.exit(f"the contrast of --{text} #{colors[text]} on --{under} #{colors[under]} is {(b + 0.05) / (a + 0.05):.1f}")


def main(arguments):
    if arguments[:1] == ["--dom"] and len(arguments) == 3:
        dom(*arguments[1:])
    elif arguments[:1] == ["--net-log"] and len(arguments) == 2:
        net_log(arguments[1])
    elif arguments[:1] == ["--contrast"] and len(arguments) == 2:
        contrast(arguments[1])
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
