#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C functions of Kubernetes objects in YAML: templates.py FILE.yaml... >FILE.inc

Each document is a function, with its name and parameters behind the `---`. It writes the object as JSON into a
buffer, its last parameter, with the members in the order of the text. Functions that begin with "objects_" are
public, the others static. The compiler checks the values, and the program parses no YAML at run time. Besides plain
YAML a document may have:

    ${name}            a string: a parameter, or a member of one (${meta.uid}); NULL is written as null
    ${name:int}        an int64_t; in quotes, or together with other text, it becomes text
    ${name:json}       a struct str of JSON
    ${name:time}       seconds since 1970
    ${name:list(t)}    a list of structs: the `n_name` elements of `name`, encoded with the table `t`
    - ${list[].name}   an item that is written for each of the `n_list` elements of `list`; in it, an item with
                       ${list[].inner[].name} is written for each element of `inner`
    - !each(list) ...  such an item, inside an item that is not written for each element
    <<: ${pairs[]}     members from a list of struct jd_pair
    !if(name)          leaves out the next node if name is false, NULL or 0; !if(*name): also if it is ""
    !unless(name)      leaves it out otherwise
    !null_unless(name) writes null instead of leaving it out; may follow another mark and a comma
    &name, *name       an anchor and its alias, which may be in a later document of the file
"""
import contextlib
import json
import re
import sys

import yaml

SIGNATURE = re.compile(r"^--- # (\w+)\(([^)]+)\)$", re.M)
NAME = r"[\w.]+(?:\[\][\w.]*)*"
PLACEHOLDER = re.compile(r"\$\{(" + NAME + r")(?::(int|json|time|list\((\w+)\)))?\}")
EACH = re.compile(r"!each\((" + NAME + r")\)")
MARK = re.compile(r"(if|unless|null_unless)\((\*?)(" + NAME + r")\)")
LITERAL = {"null": "null", "bool": "true|false", "int": r"0|-?[1-9]\d*"}


class Refused(Exception):
    pass


def prefixes(name):
    """The lists that a name goes through, the outer one first: a.b[].c[].d -> a.b, a.b[].c"""
    return [name[:at.start()] for at in re.finditer(re.escape("[]"), name)]


class Loader(yaml.SafeLoader):
    def compose_document(self):
        """Keeps the anchors for the next documents. YAML forgets them."""
        self.get_event()
        node = self.compose_node(None, None)
        self.get_event()
        return node


class Function:
    def __init__(self, path, signature, root):
        name, parameters = signature[0], " ".join(signature[1].replace("\n#", " ").split())
        self.path, self.lines, self.each = path, [], []
        self.known = {re.search(r"\w+$", p)[0] for p in parameters.split(", ")}
        self.unused = set(self.known)
        linkage = "" if name.startswith("objects_") else "static "
        self.put(root, f"{linkage}void {name}({parameters}, struct buf *out) {{ struct jw w = JW(out);")
        self.value(root, "NULL")
        self.put(root, "}")
        if self.unused:
            raise self.refused(root, f"{name}() does not use {', '.join(sorted(self.unused))}")

    def refused(self, node, why):
        return Refused(f"{self.path}:{node.start_mark.line + 1}: {why}")

    def put(self, node, text):
        # The compiler's messages name the template.
        self.lines += [f'#line {node.start_mark.line + 1} "{self.path}"', text]

    def expression(self, node, name):
        """The C expression for a placeholder's name. A parameter with members is a pointer, a member with members is not."""
        first = re.match(r"\w*", name)[0]
        if first not in self.known:
            raise self.refused(node, f"{name} is no parameter, and no member of one")
        lists = prefixes(name)
        if lists != self.each[:len(lists)]:
            raise self.refused(node, f"{name} is in no item of its list")
        self.unused.discard(first)
        for index in "ij":
            name = name.replace("[]", f"[{index}]", 1)
        return re.sub(r"^(\w+)\.", r"\1->", name)

    def value(self, node, key):
        ends = ""
        item = key == "NULL" and EACH.fullmatch(node.tag)
        for mark in node.tag[1:].split(",") if node.tag.startswith("!") and not item else ():
            parts = MARK.fullmatch(mark)
            if not parts:
                raise self.refused(node, f"!{mark} is no mark of a template")
            what = self.expression(node, parts[3])
            condition = f"{what} && *{what}" if parts[2] else what
            if parts[1] == "null_unless":
                self.put(node, f"if (!({condition})) jw_null(&w, {key}); else {{")
            else:
                self.put(node, f"if ({condition}) {{" if parts[1] == "if" else f"if (!({condition})) {{")
            ends += "}"
        if isinstance(node, yaml.ScalarNode):
            self.scalar(node, key)
        else:
            kind = "obj" if isinstance(node, yaml.MappingNode) else "arr"
            self.put(node, f"jw_{kind}(&w, {key});")
            self.members(node) if kind == "obj" else self.items(node)
            self.put(node, f"jw_end_{kind}(&w);" + ends)
            return
        self.lines[-1] += ends

    def members(self, node):
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or "${" in key.value or key.value in seen:
                raise self.refused(key, "a key is plain text, and is there once")
            seen.add(key.value)
            if key.value != "<<":
                self.value(value, json.dumps(key.value))
                continue
            pairs = re.fullmatch(r"\$\{(" + NAME + r")\[\]\}", str(value.value))
            if not pairs or value.tag.startswith("!"):
                raise self.refused(value, "<< wants a list of pairs")
            with self.once_for_each(value, pairs[1]):
                pair = self.expression(value, pairs[1] + "[]")
                self.put(value, f"jw_str(&w, {pair}.key, {pair}.value);")

    def items(self, node):
        for item in node.value:
            each = EACH.fullmatch(item.tag)
            lists = {each[1]} if each else {name for name in self.lists_in(item) - set(self.each) if prefixes(name) == self.each}
            if len(lists) > 1:
                raise self.refused(item, f"an item of more than one list: {', '.join(sorted(lists))}")
            with self.once_for_each(item, lists.pop()) if lists else contextlib.nullcontext():
                self.value(item, "NULL")

    def lists_in(self, node):
        text, below = node.tag, node.value
        if isinstance(node, yaml.ScalarNode):
            text, below = f"{node.tag} {node.value}", []
        elif isinstance(node, yaml.MappingNode):
            below = [value for key, value in node.value if key.value != "<<"]
        each = EACH.fullmatch(node.tag)
        found = {name for whole in re.findall(NAME, text) for name in prefixes(whole)}.union(*map(self.lists_in, below))
        return found - {each[1]} if each else found

    @contextlib.contextmanager
    def once_for_each(self, node, name):
        if prefixes(name) != self.each or len(self.each) == 2:
            raise self.refused(node, f"{name} is a list in an item of {self.each[-1]}")
        count, index = self.expression(node, re.sub(r"(\w+)$", r"n_\1", name)), "ij"[len(self.each)]
        self.put(node, f"for (size_t {index} = 0; {index} < {count}; {index}++) {{")
        self.each.append(name)
        yield
        self.each.pop()
        self.put(node, "}")

    def scalar(self, node, key):
        text, plain = node.value, node.style is None
        whole = PLACEHOLDER.fullmatch(text)
        if "${" in PLACEHOLDER.sub("", text):
            raise self.refused(node, f"{text} is no placeholder")
        if whole and whole[3]:
            of, count = self.expression(node, whole[1]), self.expression(node, re.sub(r"(\w+)$", r"n_\1", whole[1]))
            self.put(node, f"jd_encode_list({whole[3]}, {of}, {count}, sizeof *{of}, &w, {key});")
        elif whole and (plain or not whole[2]):
            call = {None: "str", "int": "int", "json": "raw", "time": "time"}[whole[2]]
            self.put(node, f"jw_{call}(&w, {key}, {self.expression(node, whole[1])});")
        elif "${" in text:
            self.put(node, f"jw_strf(&w, {key}, {self.printf(node)});")
        else:
            kind = yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (plain, False)).rpartition(":")[2]
            if kind != "str" and not re.fullmatch(LITERAL.get(kind, "$^"), text):
                raise self.refused(node, f"{text} is a {kind}: put it in quotes, or write it as JSON does")
            argument = "" if kind == "null" else ", " + (json.dumps(text) if kind == "str" else text)
            self.put(node, f"jw_{kind}(&w, {key}{argument});")

    def printf(self, node):
        arguments = []

        def conversion(placeholder):
            if placeholder[2] not in (None, "int"):
                raise self.refused(node, f"a {placeholder[2]} stands alone")
            arguments.append(self.expression(node, placeholder[1]))
            return '%" PRId64 "' if placeholder[2] else "%s"

        text = PLACEHOLDER.sub(conversion, json.dumps(node.value.replace("%", "%%")))
        return ", ".join([text] + arguments)


def functions(path):
    with open(path, encoding="ascii") as f:
        text = f.read()
    signatures, roots = SIGNATURE.findall(text), list(yaml.compose_all(text, Loader=Loader))
    if len(signatures) != len(roots) or not all(isinstance(root, yaml.MappingNode) for root in roots):
        raise Refused(f"{path}: a document is an object, and begins with --- # name(parameters)")
    return [Function(path, *pair) for pair in zip(signatures, roots)]


if __name__ == "__main__":
    try:
        print("\n".join(line for path in sys.argv[1:] for function in functions(path) for line in function.lines))
    except (Refused, yaml.YAMLError, ValueError) as e:
        sys.exit(f"templates.py: {e}")
