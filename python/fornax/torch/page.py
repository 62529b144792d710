"""The page of fornax.torch.explain(): HTML with drawings, in one file."""

import html as escape
import itertools

from . import reports

_MAX_DRAWN = 300
_BOX, _GAP, _ROW, _HEIGHT = 150, 16, 58, 26
_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1200px; padding: 0 1rem; color: #1c2430;
       background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
table { border-collapse: collapse; font-size: 13px; } th { text-align: left; color: #5a6675; font-weight: 600; }
td, th { padding: 2px 14px 2px 0; vertical-align: top; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
tr:hover td { background: #f2f5f9; } .scroll { overflow-x: auto; border: 1px solid #dde3ea; border-radius: 6px;
padding: 8px; } details > summary { cursor: pointer; color: #5a6675; margin: .6rem 0; } pre { font-size: 12px; }
svg text { font: 11px system-ui, sans-serif; fill: #1c2430; } svg path { fill: none; stroke: #9aa6b5; }
svg rect { stroke: #fff; } .bar { display: inline-block; height: 9px; border-radius: 2px; background: #3b7dd8; }
.warn { color: #a33; } .quiet { color: #5a6675; }
"""


def _text(value):
    return escape.escape(str(value))


def _color(number):
    """One colour for each kernel; grey for what is none."""
    return "#d5dbe3" if number is None else f"hsl({number * 47 % 360} 70% 82%)"


def _table(header, rows, numbers=()):
    cells = [f"<tr>{''.join(f'<th>{_text(name)}</th>' for name in header)}</tr>"]
    for row in rows:
        cells.append("<tr>" + "".join(
            f"<td{' class=n' if i in numbers else ''}>{cell if isinstance(cell, _Html) else _text(cell)}</td>"
            for i, cell in enumerate(row)) + "</tr>")
    return f"<table>{''.join(cells)}</table>"


class _Html(str):
    pass


def _places(names, sources):
    """{name: (column, row)}: each below all that it reads, near the middle of these."""
    rows, depth = {}, {}
    for name in names:
        depth[name] = max((depth[source] + 1 for source in sources[name] if source in depth), default=0)
        rows.setdefault(depth[name], []).append(name)
    places = {}
    for row in sorted(rows):
        def middle(name):
            above = [places[source][0] for source in sources[name] if source in places]
            return sum(above) / len(above) if above else 0
        wanted = sorted(rows[row], key=middle)
        column = -1.0
        for name in wanted:
            column = max(column + 1, round(middle(name)))
            places[name] = (column, row)
    return places


def _drawing(boxes):
    """A graph: boxes are (name, label, hint, colour, names that it reads), in an order in which these come first."""
    if len(boxes) > _MAX_DRAWN:
        return f"<p class=quiet>{len(boxes)} nodes are too many to draw; the table has them.</p>"
    places = _places([box[0] for box in boxes], {box[0]: box[4] for box in boxes})
    parts = []

    def corner(name):
        column, row = places[name]
        return column * (_BOX + _GAP) + 4, row * _ROW + 4

    for name, _, _, _, sources in boxes:
        x, y = corner(name)
        for source in sources:
            if source in places:
                sx, sy = corner(source)
                sx, sy, tx = sx + _BOX / 2, sy + _HEIGHT, x + _BOX / 2
                parts.append(f'<path d="M{sx:g} {sy}C{sx:g} {sy + 24} {tx:g} {y - 24} {tx:g} {y}"/>')
    for name, label, hint, color, _ in boxes:
        x, y = corner(name)
        short = label if len(label) <= 22 else label[:21] + "\u2026"
        parts.append(f'<g><title>{_text(hint)}</title><rect x="{x:g}" y="{y}" width="{_BOX}" height="{_HEIGHT}" rx="5" '
                     f'fill="{color}"/><text x="{x + 8:g}" y="{y + 17}">{_text(short)}</text></g>')
    width = max((place[0] for place in places.values()), default=0) * (_BOX + _GAP) + _BOX + 8
    height = max((place[1] for place in places.values()), default=0) * _ROW + _HEIGHT + 8
    return f'<div class=scroll><svg width="{width:g}" height="{height}">{"".join(parts)}</svg></div>'


def _before(graph):
    kernels = graph.kernel_of() if graph.report is not None else {}
    boxes = []
    for name, what, kind, reads, line in graph.nodes:
        hint = f"{name}: {what} {kind} {line}" + (f"; step {kernels[name]}" if name in kernels else "")
        boxes.append((name, what.removeprefix("aten.") if what != "placeholder" else name, hint, _color(kernels.get(name)),
                      reads.split(", ") if reads else []))
    return _drawing(boxes)


def _after(graph):
    report = graph.report
    writer = {}  # the last step that wrote a block
    boxes = [(("block", i), block["name"], f"{block['kind']} {block['name']}: {block['type']}", _color(None), [])
             for i, block in enumerate(report["blocks"]) if block["kind"] in ("input", "state")]
    for i, block in enumerate(report["blocks"]):
        if block["kind"] in ("input", "state"):
            writer[i] = ("block", i)
    for i, step in enumerate(report["steps"]):
        sources = list(dict.fromkeys(writer[block] for block in step["reads"] if block in writer))
        boxes.append((i, f"{i} {step['name']}", f"step {i}: {step['name']}", _color(i), sources))
        writer.update((block, i) for block in step["writes"] if block is not None)
    for number, port in enumerate(report["outputs"]):
        source = writer.get(port["block"])
        boxes.append((("output", number), port["name"], f"output {port['name']}: {port['type']}", _color(None),
                      [] if source is None else [source]))
    return _drawing(boxes)


def _kernels(graph):
    steps = graph.steps()
    total = sum(row[2] or 0 for row in steps) or 1
    rows = []
    for i, kind, time, operations, size, nodes in steps:
        bar = _Html("" if time is None else f'<span class=bar style="width:{160 * time / total:.1f}px"></span>')
        rows.append((_Html(f'<span class=bar style="width:12px;background:{_color(i)}"></span> {i}'), kind,
                     "" if time is None else f"{time / 1e3:.1f}", bar, reports.count(operations), reports.count(size),
                     f"{size / time:.1f}" if time and size is not None else "", ", ".join(nodes)))
    return _table(("step", "kind", "us", "", "operations", "bytes", "GB/s", "nodes"), rows, (2, 4, 5, 6))


def _memory(graph):
    """The arena: steps from left to right, addresses upwards."""
    report = graph.report
    arena, steps = report["memory"]["arena"], max(len(report["steps"]), 1)
    blocks = [(i, block) for i, block in enumerate(report["blocks"])
              if block["kind"] == "temporary" and block["size"] and block["offset"] is not None]
    if not blocks or not arena:
        return "<p class=quiet>No tensor lies in memory between kernels.</p>"
    width, height = min(max(steps * 24, 400), 4000), 260
    parts = []
    for i, block in blocks:
        x, w = block["first"] * width / steps, (block["last"] - block["first"] + 1) * width / steps
        h = max(block["size"] * height / arena, 1)
        y = height - block["offset"] * height / arena - h
        hint = (f"{block['name']} {block['type']}: {block['size']:,} bytes at {block['offset']:,}, "
                f"steps {block['first']} to {block['last']}")
        parts.append(f'<g><title>{_text(hint)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" '
                     f'fill="{_color(i)}"/></g>')
    return (f'<div class=scroll><svg width="{width}" height="{height}">{"".join(parts)}</svg></div>'
            f"<p class=quiet>Steps 0 to {steps - 1} from left to right, {reports.size_text(arena)} of memory upwards.</p>")


def _graph(graph):
    parts = [f"<h2>{_text(graph.name)}</h2>"]
    report = graph.report
    if report is not None:
        time = sum(row[2] or 0 for row in graph.steps())
        (operations, read, written), _ = reports.work(report)
        parts.append(f"<p>{len(graph.nodes)} nodes in {len(report['steps'])} steps on {_text(report['device'])}: "
                     f"{time / 1e3:.1f} us, {operations:,} operations, {reports.size_text(read + written)} of reads and "
                     f"writes.</p>")
    if graph.fallbacks:
        parts += ["<h3 class=warn>Runs in torch</h3>",
                  _table(("node", "operator", "line", "because"), graph.fallbacks)]
    parts += ["<h3>Before fusion</h3>", _before(graph), "<details><summary>All nodes</summary>",
              _table(("node", "operator", "type", "reads", "line"), graph.nodes), "</details>"]
    if report is not None:
        boundaries = [(item["node"], item["operation"], item["type"], ", ".join(item["readers"]), item["reason"])
                      for item in report["boundaries"]]
        memory = report["memory"]
        parts += ["<h3>After fusion</h3>", _after(graph), "<h3>Kernels</h3>", _kernels(graph),
                  "<h3>Memory over time</h3>", _memory(graph),
                  f"<p>Temporaries {reports.size_text(memory['arena'])}, constants "
                  f"{reports.size_text(memory['constants'])}, inputs and outputs {reports.size_text(memory['ports'])}.</p>",
                  "<details><summary>Why values lie in memory</summary>",
                  _table(("node", "operation", "type", "read by", "because"), boundaries), "</details>",
                  "<details><summary>The compiler's graph</summary><pre>", _text(report["graph"]), "</pre></details>",
                  "<details><summary>The plan</summary><pre>", _text(report["plan"]), "</pre></details>"]
    return "".join(parts)


def html(explanation):
    """The page."""
    return "".join(itertools.chain(
        ["<!doctype html><html lang=en><head><meta charset=utf-8>", f"<title>{_text(explanation.title)} on Fornax</title>",
         f"<style>{_STYLE}</style></head><body><h1>{_text(explanation.title)} on Fornax</h1>"],
        map(_graph, explanation.graphs), ["</body></html>\n"]))
