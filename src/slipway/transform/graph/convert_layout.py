"""ConvertLayout and AlterOpLayout by rules: operators in another layout, and what is between them.

    nn.relu(nn.conv2d(%x, %w, data_layout="NHWC", kernel_layout="HWIO"))
        ->  %y = nn.conv2d(layout_transform(%x, NHWC, NCHW), layout_transform(%w, HWIO, OIHW))
            layout_transform(nn.relu(%y), NCHW, NHWC)

A rule gives for a call the call to compute instead, whose attributes say how its operands and its
result lie.  Other operators take values as they lie (`layout_rules`); a layout_transform stands
only where a value is needed in two ways, or leaves the function.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence

from slipway.arguments import integer_of, items_of
from slipway.entered import Entered
from slipway.errors import LoweringError, did_you_mean
from slipway.ir.op_attrs import op_attr
from slipway.relay import op_registry, op_rules
from slipway.relay.expr import Call, Expr, Function, Op, Tuple, TupleGetItem, Var
from slipway.relay.layout import has_blocks, parse_layout
from slipway.relay.visit import post_order, rebuild, substitute
from slipway.transform.graph.conv.plain_layouts import CONVS
from slipway.transform.graph.layout_rules import Moved, Value, adapt, field_of, plain

# f(call, operands that stand for the call's) -> what to compute, or None
Rule = Callable[[Call, Sequence[Expr]], "Expr | None"]
CONVERT = "FTVMConvertOpLayout"
_CONTRIB_KERNEL = re.compile(r"\d+i\d+o$")  # what the operators over blocked channels take
_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO", "NCW": "OIW", "NWC": "WIO", "NCDHW": "OIDHW",
            "NDHWC": "DHWIO"}  # fmt: skip


_SKIPPING: Entered[LayoutConfig] = Entered("convolutions that keep their layout")


class LayoutConfig:
    """Which convolutions ConvertLayout leaves as they are, by their numbers from 0 on.

    ``with relay.transform.LayoutConfig(skip_layers=[0]): mod = ConvertLayout(...)(mod)`` leaves the
    first one, whose three channels no blocked layout helps.
    """

    def __init__(self, skip_layers: Sequence[int] | None = None) -> None:
        self.skip_layers = [
            integer_of(layer, "LayoutConfig: a layer of skip_layers", 0)
            for layer in items_of(skip_layers or (), "LayoutConfig: skip_layers", "[0]")
        ]
        self.skip_counter = 0

    def check_skip(self) -> bool:
        """Return whether the next convolution is one of those; it is counted."""
        self.skip_counter += 1
        return self.skip_counter - 1 in self.skip_layers

    def reset(self) -> None:
        """Begin to count again, and skip none."""
        self.skip_counter = 0
        self.skip_layers = []

    def __enter__(self) -> LayoutConfig:
        _SKIPPING.enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        _SKIPPING.leave(self)


def change_layouts(function: Function, rule: Rule) -> Function:
    """Return a typed `function` with each call computed as `rule` says, and the rest adapted."""
    return _Walk(rule).run(function)


def convert_layout(function: Function, desired: Mapping[str, Sequence[str]]) -> Function:
    """Return `function` with the named operators in the layouts given for them.

    An operator has a list of layouts: of its data, and for convolutions of its kernel, "default"
    for the usual one.  A rule of `relay.op.register_convert_op_layout` says itself what a call
    becomes.  Raises LoweringError for what is no operator or no layout.
    """
    wanted = {name: _checked(name, layouts) for name, layouts in desired.items()}
    return change_layouts(function, lambda call, operands: _in_layout(call, operands, wanted))


def layouts_of(call: Call) -> tuple[tuple[str, ...], str]:
    """Return the layouts of a call's operands and of its result; () where it has none."""
    attrs = call.attrs
    if hasattr(attrs, "data_layout") and hasattr(attrs, "kernel_layout"):
        return (attrs.data_layout, attrs.kernel_layout), attrs.out_layout or attrs.data_layout
    if hasattr(attrs, "layout"):
        return (attrs.layout,), attrs.layout
    return (), ""


def _checked(name: str, layouts: Sequence[str]) -> tuple[str, ...]:
    definition = op_registry.load_ops().get(name)
    if definition is None and not name.startswith(("qnn.", "nn.", "vision.", "image.")):
        raise LoweringError(
            f"ConvertLayout: there is no operator {name!r}.{did_you_mean(name, op_registry.OPS)}"
        )
    if isinstance(layouts, str) or not layouts:
        raise LoweringError(
            f"ConvertLayout: {name} needs a list of layouts, as ['NHWC', 'default'], "
            f"not {layouts!r}"
        )
    if op_attr(name, CONVERT) is not None:
        return tuple(str(layout) for layout in layouts)
    if (
        definition is None
        or not hasattr(definition.attrs_type, "FIELDS")
        or not (
            {"data_layout", "layout"} & set(definition.attrs_type.FIELDS)  # type: ignore[union-attr]
        )
    ):
        warnings.warn(f"ConvertLayout: {name} has one layout only, and keeps it", stacklevel=5)
        return ()
    found = tuple(str(layout) for layout in layouts)
    for layout in found:
        if layout != "default":
            parse_layout(layout)
    return found


def _in_layout(
    call: Call, operands: Sequence[Expr], wanted: Mapping[str, tuple[str, ...]]
) -> Expr | None:
    skipping = _SKIPPING.innermost()
    is_skipped = "conv" in call.op.name and skipping is not None and skipping.check_skip()
    layouts = wanted.get(call.op.name)
    if not layouts or is_skipped:
        return None
    if op_attr(call.op.name, CONVERT) is not None:
        types = [argument.type for argument in call.args]
        return op_rules.apply(CONVERT, call, operands, [types, list(layouts)])
    old, _ = layouts_of(call)
    data = old[0] if layouts[0] == "default" else layouts[0]
    if sorted(parse_layout(data).letters) != sorted(parse_layout(old[0]).letters):
        raise LoweringError(
            f"ConvertLayout: {call.op.name} has the axes {old[0]}, which {data!r} does not order"
        )
    if len(old) == 1:
        return Call(call.op, tuple(operands), call.attrs.replace(layout=data), call.span)
    kernel = layouts[1] if len(layouts) > 1 else "default"
    if kernel == "default":
        kernel = _kernel_for(call, data)
    attrs = call.attrs.replace(data_layout=data, kernel_layout=kernel, out_layout="")
    return Call(call.op, tuple(operands), attrs, call.span)


def _kernel_for(call: Call, data: str) -> str:
    """Return the usual layout of a kernel; that of a depthwise convolution over NHWC is HWOI."""
    kernel = _KERNELS.get(data)
    if kernel is None:
        raise LoweringError(
            f"ConvertLayout: say which layout the kernel of {call.op.name} has with {data}: "
            f'["{data}", "OIHW"]'
        )
    if call.attrs.groups > 1 and kernel == "HWIO":
        weight = call.args[1].tensor_type
        extents = parse_layout(call.attrs.kernel_layout).whole_shape(weight.shape)
        if extents["I"] == 1:
            return "HWOI"
    return kernel


class _Walk:
    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.values: dict[int, Value] = {}
        self.made: dict[tuple[int, str, str], Expr] = {}
        self.kept: list[Expr] = []  # whose ids are keys

    def run(self, function: Function) -> Function:
        for expr in post_order(function.body, into_functions=False):
            self.values[id(expr)] = self.value(expr)
        body = self.plain(function.body)
        if body is function.body:
            return function
        return Function(function.params, body, None, function.attrs)

    def plain(self, expr: Expr) -> Expr:
        """Return a value of the graph in its own layout."""
        known = self.values[id(expr)]
        if isinstance(known, Expr):
            return known
        return plain(known, self.transform)

    def transform(self, expr: Expr, source: str, target: str) -> Expr:
        """Return `expr` in another layout; once for all who ask."""
        if source == target:
            return expr
        key = (id(expr), source, target)
        if key not in self.made:
            self.kept.append(expr)
            self.made[key] = op_registry.make("layout_transform")(expr, source, target)
        return self.made[key]

    def value(self, expr: Expr) -> Value:
        if isinstance(expr, Function):
            return expr
        if isinstance(expr, TupleGetItem):
            value = self.values[id(expr.tuple_value)]
            if not isinstance(value, Expr):
                return field_of(value, expr.index)
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return rebuild(expr, self.plain)  # type: ignore[no-any-return]
        changed = self.changed(expr)
        if changed is not None:
            return changed
        args = [self.values[id(a)] for a in expr.args]
        first = expr.args[0] if len(expr.args) == 1 else None
        parts = [self.values[id(f)] for f in first.fields] if isinstance(first, Tuple) else []
        if all(isinstance(v, Expr) for v in (*args, *parts)):
            return rebuild(expr, self.plain)  # type: ignore[no-any-return]
        with op_registry.span(expr.span):
            return adapt(expr, args, parts, self.transform)

    def changed(self, call: Call) -> Value | None:
        """Return the call that the rule gives, on operands that lie as it says."""
        stand_ins = [Var(f"operand{i}", None) for i in range(len(call.args))]
        made = self.rule(call, stand_ins)
        if made is None or made is call:
            return None
        with op_registry.span(call.span):
            return self._placed(call, made, stand_ins)

    def _placed(self, call: Call, made: Expr, stand_ins: Sequence[Var]) -> Value:
        name = call.op.name
        old_in, old_out = layouts_of(call)
        if not isinstance(made, Call) or not isinstance(made.op, Op):
            return self._same_type(call, made, stand_ins)
        new_in, new_out = layouts_of(made)
        if not old_in or len(new_in) != len(old_in):
            return self._same_type(call, made, stand_ins)
        table: dict[Var, Expr] = {}
        for position, operand in enumerate(call.args):
            stand_in = stand_ins[position]
            if position >= len(old_in):
                table[stand_in] = self.plain(operand)
            elif position < len(made.args) and made.args[position] is stand_in:
                source, target = (
                    old_in[position],
                    _letters(new_in[position], old_in[position], name),
                )
                table[stand_in] = self.laid(operand, source, target)
            else:  # the rule has transformed it itself
                table[stand_in] = self.plain(operand)
        args = [substitute(argument, table) for argument in made.args]
        result = _operator(made, args, self.transform)
        target = _letters(new_out, old_out, name)
        if old_out == target:
            return result
        if has_blocks(old_out):  # others name axes of blocks, which no rule of theirs moves
            return self.transform(result, target, old_out)
        return Moved(result, old_out, target)

    def laid(self, expr: Expr, source: str, target: str) -> Expr:
        """Return a value, which the graph has in `source`, in `target`."""
        value = self.values[id(expr)]
        if isinstance(value, Moved) and value.source == source:
            return self.transform(value.expr, value.target, target)
        return self.transform(self.plain(expr), source, target)

    def _same_type(self, call: Call, made: Expr, stand_ins: Sequence[Var]) -> Expr:
        operands = [self.plain(a) for a in call.args]
        result: Expr = substitute(made, dict(zip(stand_ins, operands, strict=True)))
        if result.type is not None and result.type != call.type:
            raise LoweringError(
                f"the rule for {call.op.name} gives {result.type} in the place of {call.type}"
            )
        return result


def _letters(layout: str, old: str, name: str) -> str:
    if sorted(set(parse_layout(layout).letters)) != sorted(parse_layout(old).letters):
        raise LoweringError(f"{name}: layout {layout!r} does not order the axes of {old!r}")
    return layout


def _operator(
    call: Call, args: Sequence[Expr], transform: Callable[[Expr, str, str], Expr]
) -> Call:
    """Return `call` on `args`: over blocked data the operator for such, with a blocked kernel."""
    attrs = call.attrs
    data = parse_layout(getattr(attrs, "data_layout", "") or "N")
    if call.op.name not in CONVS or not has_blocks(data.text):
        return Call(call.op, tuple(args), attrs, call.span)
    if has_blocks(attrs.kernel_layout) and not _CONTRIB_KERNEL.search(attrs.kernel_layout):
        return Call(call.op, tuple(args), attrs, call.span)
    block = data.block_of("C")
    out_block = parse_layout(attrs.out_layout or attrs.data_layout).block_of("C")
    weight = args[1].tensor_type
    kernel = attrs.kernel_layout
    if not has_blocks(kernel):
        whole = parse_layout(kernel).whole_shape(weight.shape)
        plain_kernel = "OI" + "".join(a for a in kernel if a not in "OI")
        depthwise = whole["I"] == 1 and attrs.groups > 1
        layout = f"{plain_kernel}{1 if depthwise else block}i{out_block}o"
        if whole["O"] % out_block or (not depthwise and whole["I"] % block):
            raise LoweringError(
                f"{call.op.name} in {attrs.data_layout}: blocks of {block} do not divide its "
                f"{whole['I']} input and {whole['O']} output channels"
            )
        weight_expr = transform(args[1], kernel, layout)
    else:
        layout, weight_expr = kernel, args[1]
        depthwise = parse_layout(kernel).block_of("I") == 1 and attrs.groups > 1
    name = call.op.name.replace("nn.", "nn.contrib_depthwise_" if depthwise else "nn.contrib_")
    blocked = op_registry.get(f"{name}_nchwc")
    assert blocked.attrs_type is not None
    fields = {f: getattr(attrs, f) for f in blocked.attrs_type.FIELDS}
    fields.update(kernel_layout=layout, out_layout=attrs.out_layout or attrs.data_layout)
    return Call(blocked.op, (args[0], weight_expr), blocked.attrs_type(**fields), call.span)
