"""Templates of managed settings: Jinja2's sandbox, and of that only expressions over checked variables.

The authors of a knowledge base write templates; tenants never do, and a value that looks like a template stays a value
because nothing is rendered twice. Still the language is kept small: no statements, no attributes, no calls, a few
filters. What an address or a value needs fits into ``{{ item }}`` and ``{{ '-1' if 'quota' in setting else 'max' }}``,
and what cannot be written cannot go wrong. This is the one door to Jinja2, and it is opened on first use only: the
watcher plans rarely and its memory is counted.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from unveil.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import jinja2

    from unveil.records.fact import FactValue

MAX_TEMPLATE = 2048
MAX_RENDERED = 4096
FILTERS = ("int", "float", "join", "length", "lower", "max", "min", "round", "string", "trim", "upper")

# Everything an expression may be made of. Calls, attributes, loops and assignments are absent, on purpose.
_OPERANDS = {"Template", "Output", "TemplateData", "Name", "Const", "List", "Tuple", "Getitem"}
_OPERATORS = {"CondExpr", "Compare", "Operand", "And", "Or", "Not", "Concat", "Filter"}
_ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Neg", "Pos"}
_NODES = frozenset(_OPERANDS | _OPERATORS | _ARITHMETIC)


@cache
def _environment() -> jinja2.Environment:
    from jinja2 import StrictUndefined  # opened on first use, see above
    from jinja2.exceptions import SecurityError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Arithmetic(ImmutableSandboxedEnvironment):
        """Numbers are multiplied; a text that is (``'x' * 10**9``) would be a way to eat memory."""

        intercepted_binops = frozenset({"*", "%"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            if not (isinstance(left, int | float) and isinstance(right, int | float)):
                raise SecurityError(f"{operator} is for numbers only")
            return super().call_binop(context, operator, left, right)

    environment = Arithmetic(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in FILTERS}
    environment.tests.clear()
    return environment


@lru_cache(maxsize=1024)  # a loader meets every version of every template, for weeks
def _compiled(template: str) -> tuple[jinja2.Template, frozenset[str]]:
    """Return a checked template and the names that it uses."""
    from jinja2 import TemplateError, meta, nodes

    hint = f"a template is text and {{{{ expressions }}}} over variables; filters: {', '.join(FILTERS)}"
    if len(template) > MAX_TEMPLATE:
        raise BadInputError(f"a template is longer than {MAX_TEMPLATE} characters", hint=hint)
    environment = _environment()
    try:
        tree = environment.parse(template)
        for node in tree.find_all(nodes.Node):
            kind = type(node).__name__
            if kind not in _NODES:
                raise BadInputError(f"template {template!a} holds {kind}, which is not allowed", hint=hint)
        names = frozenset(meta.find_undeclared_variables(tree))
        return environment.from_string(template), names
    except TemplateError as error:
        raise BadInputError(f"template {template!a} is wrong: {error}", hint=hint) from error


def names(template: str) -> frozenset[str]:
    """Return the names of the variables that a template uses.

    Raises:
        BadInputError: it is no template, or holds more than an expression may.
    """
    return _compiled(template)[1]


def render(template: str, values: Mapping[str, FactValue]) -> str:
    """Return a template filled in. Values are data: one that holds ``{{`` comes out as it went in.

    Raises:
        BadInputError: a name is no variable, or the result is too long or cannot be computed.
    """
    from jinja2 import TemplateError

    compiled, used = _compiled(template)
    if missing := sorted(used - set(values)):
        raise BadInputError(
            f"template {template!a} uses {', '.join(missing)}, which is no variable that may be used there",
            hint="declare it under variables; untrusted text is only ever shown",
        )
    try:
        text: str = compiled.render(dict(values))
    except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError) as error:
        raise BadInputError(f"template {template!a} cannot be filled in: {error}") from error
    if len(text) > MAX_RENDERED:
        raise BadInputError(f"template {template!a} gives more than {MAX_RENDERED} characters")
    return text
