"""A Jinja sandbox in which a template takes neither endless time nor endless memory.

Steps are counted: those of every loop and filter, and each call and each included file, since a
macro, a recursive loop and a file may use themselves. So are the characters that a template prints
or puts together. Both counts start again with each rendering.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, cast

import jinja2
from jinja2 import nodes
from jinja2.runtime import Context, markup_join, str_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MOST_STEPS = 10_000_000
"""The most steps of one rendering: about a second, and more than any prompt needs."""

LONGEST = 10_000_000
"""The most characters, or entries of a list, that a template may make: more than a model reads."""

WALKED, JOINED, TAKEN = "walked over", "joined to", "taken by a filter"
"""The filters in the place of loops' values, of `~` and of filters' values; no template can name
them."""

WIDENING = ("batch", "center", "indent", "round", "slice")
"""The filters whose result is as large as a number says."""

GROWING = (str, list, tuple)

FORMAT = re.compile(r"%(?:\([^()%]*\))?[^a-zA-Z%]*|\{[^{}]*:[^{}]*\{?")
"""A format, with its width and precision; those of `%*d` and `{:{w}}` are among the values."""

PER_CALL = 25
"""The steps that a call counts as, since it takes longer than a round of a loop."""

PER_BIT = 500
"""The characters that a number's bit counts as: Python prints no number of 20,000 bits."""

CHARACTERS_A_STEP = 1000
"""Copying as many takes as long as a round of a loop."""


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox; OverflowError where a rendering takes too many steps or characters."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.steps = 0
        self.filters[WALKED] = self._walked
        self.filters[JOINED] = self._joined
        self.filters[TAKEN] = self._taken
        for name in WIDENING:
            self.filters[name] = narrow(self.filters[name])
        self.filters["format"] = _formatted(self.filters["format"])
        self.filters["replace"] = self._replacing(self.filters["replace"])
        self.filters["join"] = self._joining(self.filters["join"])

    def walk(self, steps: int) -> None:
        """Count steps; OverflowError where one rendering takes too many."""
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise OverflowError(
                f"loops and calls would take more than {MOST_STEPS:,} steps together"
            )

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        Counting().visit(tree)
        return tree.set_environment(self)  # type: ignore[return-value]

    def make(self, length: int) -> None:
        """Count the steps of making a text, list or number; OverflowError where it is too long."""
        check_length(length)
        self.walk(length // CHARACTERS_A_STEP)

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """The parts as one text; OverflowError where it is too long."""
        return "".join(gathered(parts))

    def call(self, context: Context, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The result of a call in a template, which counts as steps."""
        self.walk(PER_CALL)
        text = getattr(called, "__self__", None)
        if args and isinstance(text, str):
            args = self._grown(text, called.__name__, args)
        return super().call(context, called, *args, **kwargs)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """The method of a text that formats it, if the value is one; no width is too large."""
        found = super().wrap_str_format(value)
        if found is None:
            return None

        def checked(*args: Any, **kwargs: Any) -> str:
            _check_format(value.__self__, [*args, *kwargs.values()])
            return found(*args, **kwargs)

        return checked

    def _grown(self, text: str, method: str, args: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments of a text's method, whose result is not too long."""
        first, *others = args
        _check_numbers(args)
        if method == "replace" and others:
            self.make(text.count(first) * len(others[0]))
        elif method == "join":
            first = [*self._each(first)]
            self.make(len(text) * len(first) + sum(map(len, first)))
        elif method == "expandtabs":
            self.make(text.count("\t") * first)
        elif method == "translate":
            self.make(len(text) * max((len(str(one)) for one in first.values()), default=0))
        return (first, *others)

    def _replacing(self, made: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(made)
        def checked(context: Any, value: Any, old: Any, new: Any, *more: Any, **named: Any) -> Any:
            self.make(str(value).count(str(old)) * len(str(new)))
            return made(context, value, old, new, *more, **named)

        return checked

    def _joining(self, made: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(made)
        def checked(context: Any, value: Any, d: Any = "", *more: Any, **named: Any) -> Any:
            values = [*self._each(value)]
            texts = sum(len(one) for one in values if isinstance(one, str))
            self.make(len(str(d)) * len(values) + texts)
            return made(context, values, d, *more, **named)

        return checked

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """The result of an operator; a text, list or number that is too large is not made."""
        if operator == "+":
            made = left + right
            if isinstance(made, GROWING):
                self.make(len(made))
            return made
        if operator == "*":
            for one, times in ((left, right), (right, left)):
                if isinstance(one, GROWING) and isinstance(times, int):
                    self.make(len(one) * times)
            if isinstance(left, int) and isinstance(right, int):
                self.make(PER_BIT * (left.bit_length() + right.bit_length()))
        elif operator == "**":
            if isinstance(left, int) and isinstance(right, int):
                self.make(PER_BIT * left.bit_length() * right)
        elif operator == "%" and isinstance(left, str):
            _check_format(left, right if isinstance(right, tuple) else ())
        return super().call_binop(context, operator, left, right)

    def get_template(self, *args: Any, **kwargs: Any) -> jinja2.Template:
        """A template that another one uses, which counts as a step."""
        self.walk(1)
        return super().get_template(*args, **kwargs)

    @jinja2.pass_context
    def _walked(self, context: Context, values: Any) -> Any:
        """The values of a loop, whose number counts when the loop begins or, if unknown, as it
        goes on."""
        if hasattr(values, "__len__"):
            self.walk(len(values))
            return values
        return self._each(values) if isinstance(values, Iterable) else values

    @jinja2.pass_context
    def _taken(self, context: Context, value: Any) -> Any:
        """The value that a filter takes, which may go through all of it."""
        if isinstance(value, str):
            self.walk(len(value) // CHARACTERS_A_STEP)
        elif isinstance(value, Sized) and not isinstance(value, jinja2.Undefined):
            self.walk(len(value))
        return value

    def _each(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.walk(1)
            yield value

    @jinja2.pass_context
    def _joined(self, context: Context, *values: Any) -> str:
        """The text that `~` makes."""
        made = (markup_join if context.eval_ctx.autoescape else str_join)(values)
        self.make(len(made))
        return made


class Counting(NodeTransformer):
    """Puts filters that count around the values of loops and filters, and in the place of `~`."""

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:
        """The filter, whose value counts; a block that a filter takes has none."""
        self.generic_visit(node)
        if node.node is not None:
            node.node = _filter(TAKEN, node.node, [])
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        """The loop, whose values count."""
        self.generic_visit(node)
        node.iter = _filter(WALKED, node.iter, [])
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """The filter that does what `~` does."""
        self.generic_visit(node)
        return _filter(JOINED, node.nodes[0], node.nodes[1:])


def _filter(name: str, value: nodes.Node, args: list[nodes.Expr]) -> nodes.Filter:
    return nodes.Filter(cast(nodes.Expr, value), name, args, [], None, None, lineno=value.lineno)


def check_length(length: int) -> None:
    """Raise OverflowError where something of this length is too long to make."""
    if length > LONGEST:
        raise OverflowError(f"a text, list or number would be longer than {LONGEST:,}")


def _check_numbers(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, int):
            check_length(abs(value))


def gathered(parts: Iterable[str]) -> list[str]:
    """The parts of a text; OverflowError as soon as they are too long."""
    if isinstance(parts, list):  # all are made already
        check_length(sum(map(len, parts)))
        return parts
    texts, length = [], 0
    for part in parts:
        texts.append(part)
        length += len(part)
        if length > LONGEST:  # a call for each of many parts is slow
            check_length(length)
    return texts


def _check_format(text: str, values: Iterable[Any]) -> None:
    """Raise OverflowError where the widths in a format, or its values, would make a long text."""
    formats: list[str] = FORMAT.findall(text)
    check_length(sum(int(width) for one in formats for width in re.findall(r"\d+", one)))
    if any(one.endswith("{") or "*" in one for one in formats):
        _check_numbers(values)


def narrow(made: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that takes no number that is too large."""

    @functools.wraps(made)
    def checked(*args: Any, **kwargs: Any) -> Any:
        _check_numbers([*args[1:], *kwargs.values()])
        return made(*args, **kwargs)

    return checked


def _formatted(made: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(made)
    def checked(value: Any, *args: Any, **kwargs: Any) -> Any:
        _check_format(str(value), args)
        return made(value, *args, **kwargs)

    return checked
