# Text to C string literals, a line each.
s/[\\"]/\\&/g
s/.*/"&\\n"/
