# SPDX-License-Identifier: Apache-2.0
"""Finds possible changes in a C file: conditions to negate and bounds to move by one, in clang's syntax tree.

Conditions are those of if, while, do, for and ?:, operands of && || and !, and all comparisons. Bounds are those of
< <= > >=, and integer literals that == and != compare with. The bodies of macros are omitted, and so is BUG_ON, which
only checks the code.
"""
import dataclasses
import json
import re
import subprocess

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
# `a + 1 < b` and not `a < b - 1`, which differs if b is an unsigned 0.
MOVED = {
    "<": ("{a} <= {b}", "({a}) + 1 < {b}"),
    "<=": ("{a} < {b}", "{a} <= ({b}) + 1"),
    ">": ("{a} >= {b}", "{a} > ({b}) + 1"),
    ">=": ("{a} > {b}", "({a}) + 1 >= {b}"),
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    function: str
    begin: int  # in bytes
    end: int
    old: str
    new: str
    line: int
    nth: int  # number among the mutants of the function with the same text

    def name(self):
        """The name does not change when lines are added elsewhere."""
        again = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.function}: {squeeze(self.old)} -> {squeeze(self.new)}{again}"

    def apply(self, text):
        return text[: self.begin] + self.new + text[self.end :]


def squeeze(text):
    return " ".join(text.split())


def syntax_tree(clang_args, folder):
    command = ["clang", "-fsyntax-only", "-w", "-Xclang", "-ast-dump=json", *clang_args]
    return json.loads(subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True).stdout)


def bare(node):
    """The expression without parentheses and implicit casts."""
    while node.get("kind") in ("ParenExpr", "ImplicitCastExpr", "ConstantExpr"):
        node = node["inner"][0]
    return node


def is_not(node):
    return node.get("kind") == "UnaryOperator" and node.get("opcode") == "!"


def is_literal(node):
    return bare(node).get("kind") in ("IntegerLiteral", "CharacterLiteral")


def in_macro_body(loc):
    return "spellingLoc" in loc and not loc["expansionLoc"].get("isMacroArgExpansion")


class Finder:
    def __init__(self, text, bounds_only):
        self.text = text
        self.bounds_only = bounds_only
        self.function = ""
        self.found = {}  # (begin, end, new): function

    def token(self, loc):
        """(offset, length, offset of the macro whose argument it is) of a token of this file; None for other files."""
        macro = None
        if "spellingLoc" in loc:
            if in_macro_body(loc):
                loc = loc["expansionLoc"]
            else:
                macro = loc["expansionLoc"]["offset"]
                loc = loc["spellingLoc"]
        if "offset" not in loc or "includedFrom" in loc:
            return None
        return loc["offset"], loc["tokLen"], macro

    def extent(self, node):
        """(begin, end) of an expression's text; None if the text is not one piece of this file."""
        ends = node["range"]
        first, last = self.token(ends["begin"]), self.token(ends["end"])
        if not first or not last or first[2] != last[2]:
            return None
        if first[2] is not None and re.match(r"BUG_ON\b", self.text[first[2] :]):
            return None
        begin, end = first[0], last[0] + last[1]
        if in_macro_body(ends["end"]) and self.text[end : end + 1] == "(":
            end = self.closing(end)
        inside = self.text[begin:end]
        return (begin, end) if begin < end and inside.count("(") == inside.count(")") else None

    def closing(self, at):
        depth = 0
        for i in range(at, len(self.text)):
            depth += {"(": 1, ")": -1}.get(self.text[i], 0)
            if depth == 0:
                return i + 1
        return at

    def operands(self, node):
        """The extents of both operands, if the operator itself is in this file's text."""
        a, b = (self.extent(operand) for operand in node["inner"])
        if a and b and self.text[a[1] : b[0]].strip() == node["opcode"]:
            return a, b
        return None

    def add(self, begin, end, new):
        self.found.setdefault((begin, end, new), self.function)

    def negate(self, node):
        node = bare(node)
        while is_not(node):  # A negation inside makes the same mutant as one outside.
            node = bare(node["inner"][0])
        if node.get("kind") == "BinaryOperator" and node["opcode"] in (*COMPARISONS, "&&", "||"):
            ends = self.operands(node)
            extent = ends and (ends[0][0], ends[1][1])
        else:
            extent = self.extent(node)
        if extent:
            self.add(*extent, f"!({self.text[slice(*extent)]})")

    def move(self, node):
        ends = self.operands(node)
        if not ends or any(re.search("float|double", n["type"]["qualType"]) for n in node["inner"]):
            return
        a, b = (self.text[slice(*end)] for end in ends)
        op = node["opcode"]
        forms = list(MOVED.get(op, ()))
        if not forms and is_literal(node["inner"][1]):
            forms = [f"{{a}} {op} ({{b}}) + 1", f"{{a}} {op} ({{b}}) - 1"]
        elif not forms and is_literal(node["inner"][0]):
            forms = [f"({{a}}) + 1 {op} {{b}}", f"({{a}}) - 1 {op} {{b}}"]
        for form in forms:
            self.add(ends[0][0], ends[1][1], form.format(a=a, b=b))

    def conditions(self, node):
        kind, inner = node.get("kind"), node.get("inner", [])
        if kind == "BinaryOperator":
            if node["opcode"] in COMPARISONS:
                return [node]
            # In a && b && c: each operand and the whole, not a && b.
            parts = [operand for operand in inner if operand.get("opcode") != node["opcode"]]
            return parts if node["opcode"] in ("&&", "||") and self.operands(node) else []
        if kind == "ConditionalOperator":
            return inner[:1]
        if in_macro_body(node.get("range", {}).get("begin", {})):
            return []
        if kind in ("IfStmt", "WhileStmt"):
            return inner[:1]
        if kind == "DoStmt":
            return inner[1:]
        if kind == "ForStmt":
            return inner[2:3] if inner[2] else []
        return inner if is_not(node) else []

    def visit(self, node):
        if not self.bounds_only:
            for condition in self.conditions(node):
                self.negate(condition)
        if node.get("kind") == "BinaryOperator" and node["opcode"] in COMPARISONS:
            self.move(node)
        for child in node.get("inner", []):
            self.visit(child)

    def mutants(self, tree):
        for node in tree["inner"]:
            if node["kind"] == "FunctionDecl" and "includedFrom" not in node["loc"].get("spellingLoc", node["loc"]):
                self.function = node["name"]
                for body in node.get("inner", []):
                    if body["kind"] == "CompoundStmt":
                        self.visit(body)
        seen = {}
        for begin, end, new in sorted(self.found):
            mutant = Mutant(self.found[begin, end, new], begin, end, self.text[begin:end], new,
                            self.text.count("\n", 0, begin) + 1, 1)
            seen[mutant.name()] = nth = seen.get(mutant.name(), 0) + 1
            yield dataclasses.replace(mutant, nth=nth)


def combine(text, found):
    """A text in which each mutant is a branch: mutate_n is the number of the mutant that is taken, from 1; 0: none."""
    at = {}
    for n, mutant in enumerate(found, 1):
        at.setdefault((mutant.begin, -mutant.end), []).append((n, mutant))
    extents = sorted(at)

    def branches(here):
        begin, end = here[0], -here[1]
        out = between(begin, end)
        for n, mutant in at[here]:
            if mutant.new == f"!({mutant.old})":
                out = f"((mutate_n == {n}) != !!({out}))"
            else:
                out = f"(mutate_n == {n} ? ({mutant.new}) : ({out}))"
        return out

    def between(begin, end):
        out = []
        while extents and extents[0][0] < end:
            here = extents.pop(0)
            if -here[1] > end:
                raise ValueError(f"{at[here][0][1].name()} overlaps another mutant")
            out += [text[begin : here[0]], branches(here)]
            begin = -here[1]
        return "".join([*out, text[begin:end]])

    head = """extern char *getenv(const char *name);
extern int atoi(const char *text);
static int mutate_n;
__attribute__((constructor)) static void mutate_read(void) {
        const char *n = getenv("MUTANT");
        mutate_n = n ? atoi(n) : 0;
}
"""
    return head + between(0, len(text))


def mutants(text, source, command, folder, bounds_only):
    """All mutants of a file with this text. `source` is its path from the build folder, `command` the arguments of its compiler."""
    kept = [arg for arg in command if arg.startswith(("-I", "-D", "-std="))]
    return list(Finder(text, bounds_only).mutants(syntax_tree([*kept, source], folder)))
