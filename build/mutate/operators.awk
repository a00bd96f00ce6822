# Lists the mutants of a C source: LINE, COLUMN, LENGTH, OPERATOR and REPLACEMENT, separated by tabs. Each replaces LENGTH
# characters at COLUMN of that line. With -v line, column, length_ and text (separated by tabs: the replacement) set, it
# prints the source with that one change instead.
#
# The sources are in clang-format's form: a binary operator has a space on each side, and a call that is a statement of
# its own ends its line.
BEGIN { FS = OFS = "\t" }

# The line with comments, strings and characters replaced by as many dots: nothing in them is changed.
function code_of(text,   out, i, c, two) {
  out = ""
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    two = substr(text, i, 2)
    if (comment) {
      if (two == "*/") { comment = 0; out = out ".."; i++ } else out = out "."
    } else if (two == "/*") { comment = 1; out = out ".."; i++ }
    else if (two == "//") { while (length(out) < length(text)) out = out "."; return out }
    else if (c == "\"" || c == "'") {
      out = out "."
      for (i++; i <= length(text) && substr(text, i, 1) != c; i++) {
        out = out "."
        if (substr(text, i, 1) == "\\") { out = out "."; i++ }
      }
      out = out "."
    } else out = out c
  }
  return out
}

function mutant(at, size, operator, replacement) { print NR, at, size, operator, replacement }

# Each occurrence of a binary operator, written with its spaces.
function binary(code, from, operator, to,   at, rest) {
  rest = 1
  while ((at = index(substr(code, rest), " " from " ")) > 0) {
    at += rest - 1
    mutant(at + 1, length(from), operator, to)
    rest = at + length(from) + 1
  }
}

# Where the parenthesis at the position is closed; 0 where not on this line.
function closing(code, at,   depth, c) {
  for (; at <= length(code); at++) {
    c = substr(code, at, 1)
    if (c == "(") depth++
    if (c == ")" && --depth == 0) return at
  }
  return 0
}

# A call that is a statement: removed. What is logged is not looked at.
function calls(code,   at, name, before, end, rest) {
  rest = 1
  while (match(substr(code, rest), /[A-Za-z_][A-Za-z_0-9]*\(/)) {
    at = rest + RSTART - 1
    name = substr(code, at, RLENGTH - 1)
    before = substr(code, 1, at - 1)
    end = closing(code, at + RLENGTH - 1)
    rest = at + RLENGTH
    if (name ~ /^(if|for|while|switch|return|sizeof|CHANGING|vgpu__log)$/ || end == 0) continue
    if (before ~ /(^ *|\) |else |\{ |; )$/ && substr(code, end + 1) ~ /^;( \.*| })?$/ && before !~ /for \([^)]*$/) {
      mutant(at, end - at + 1, "remove-call", "(void)0")
    }
  }
}

function returned(code,   at, value) {
  if (!match(code, /(^|[ {])return [^;]+;/)) return
  at = RSTART + index(substr(code, RSTART), "return ") + 6
  value = substr(code, at, RSTART + RLENGTH - 1 - at)
  if (value != "NULL") mutant(at, length(value), "return-value", value == "0" || value == "ABI_SUCCESS" ? "1" : "0")
}

# Decimal numbers, one more; not those that are returned.
function numbers(code,   at, digits, rest) {
  while (match(code, /return -?[0-9]+;/)) {
    code = substr(code, 1, RSTART + 6) substr("xxxxxxxxxxxxxxxxxxxx", 1, RLENGTH - 8) substr(code, RSTART + RLENGTH - 1)
  }
  rest = 1
  while (match(substr(code, rest), /(^|[^A-Za-z0-9_.])[0-9]+([^0-9xXA-Za-z_.]|[uUlL]|$)/)) {
    at = rest + RSTART - 1
    while (substr(code, at, 1) !~ /[0-9]/) at++
    match(substr(code, at), /^[0-9]+/)
    digits = substr(code, at, RLENGTH)
    rest = at + RLENGTH
    mutant(at, length(digits), "constant", digits + 1)
  }
}

function mutants(code,   at, rest) {
  binary(code, "<", "boundary", "<="); binary(code, "<=", "boundary", "<")
  binary(code, ">", "boundary", ">="); binary(code, ">=", "boundary", ">")
  binary(code, "<", "negate", ">="); binary(code, "<=", "negate", ">")
  binary(code, ">", "negate", "<="); binary(code, ">=", "negate", "<")
  binary(code, "==", "negate", "!="); binary(code, "!=", "negate", "==")
  binary(code, "+", "math", "-"); binary(code, "-", "math", "+")
  binary(code, "*", "math", "/"); binary(code, "/", "math", "*")
  binary(code, "+=", "math", "-="); binary(code, "-=", "math", "+=")
  rest = 1
  while (match(substr(code, rest), /[ (]![A-Za-z_(]/)) {
    mutant(rest + RSTART, 1, "negate", "")
    rest += RSTART + 1
  }
  numbers(code)
  calls(code)
  returned(code)
}

line {
  if (NR == line) $0 = substr($0, 1, column - 1) text substr($0, column + length_)
  print
  next
}

{
  code = code_of($0)
  if (code ~ /^ *#/ || continued) { continued = code ~ /\\$/; next }
  mutants(code)
}
