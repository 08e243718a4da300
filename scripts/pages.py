# SPDX-License-Identifier: Apache-2.0
"""The text of generated pages, for scripts/reasons and scripts/reference."""


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def wrapped(text, width=110):
    """Returns the text in lines of at most this width."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return "\n".join(lines) + "\n"
