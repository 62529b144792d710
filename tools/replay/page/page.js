// The page of a profile: draws the data that stands in it, with ECharts where the page has it. Every chart is the
// result of a function of the data alone, so that a test can draw it without a browser. common.js stands before it.

const COLORS = { "launch": "#8a94a3", "matrix": "#3b7dd8", "vector": "#2aa198", "special": "#8f5fd0", "scalar": "#4a6fa5",
                 "scratchpad": "#c98b1f",
                 "DMA": "#d2643c", "network": "#c24d8a", "DRAM": "#c0392b", "host link": "#6b7d3a" };

// --- Charts: options of ECharts

function timelineChart(data) {
    const { rows, bars } = data.timeline;
    const kernels = data.profile.kernels;
    const height = Math.max(4, Math.min(18, 260 / rows.length - 3));
    return {
        animation: false,
        grid: { left: 160, right: 20, top: 10, bottom: 70 },
        tooltip: {
            formatter: (item) => {
                const [row, begin, end, kernel] = item.value;
                return `<b>${escaped(kernels[kernel].name)}</b><br>${escaped(rows[row])}: ${duration(end - begin)}` +
                    `<br>from ${duration(begin)} to ${duration(end)}<br>bound by ${kernels[kernel].bound}`;
            },
        },
        dataZoom: [{ type: "slider", filterMode: "weakFilter", labelFormatter: duration, bottom: 8 },
                   { type: "inside", filterMode: "weakFilter" }],
        xAxis: { min: 0, max: data.profile.total_ns, axisLabel: { formatter: duration } },
        yAxis: { type: "category", data: rows, inverse: true, axisTick: { show: false } },
        series: [{
            type: "custom",
            encode: { x: [1, 2], y: 0 },
            data: bars.map((bar) => ({ value: bar, itemStyle: { color: COLORS[kernels[bar[3]].bound] } })),
            renderItem: (params, api) => {
                const begin = api.coord([api.value(1), api.value(0)]);
                const end = api.coord([api.value(2), api.value(0)]);
                const area = params.coordSys;
                const left = Math.max(begin[0], area.x), right = Math.min(end[0], area.x + area.width);
                if (right < area.x || left > area.x + area.width) {
                    return null;
                }
                return { type: "rect", style: api.style(),
                         shape: { x: left, y: begin[1] - height / 2, width: Math.max(right - left, 1), height } };
            },
        }],
    };
}

function rooflineChart(data) {
    const machine = data.machine, kernels = data.profile.kernels.filter((kernel) => kernel.operations > 0);
    // Operations of a byte of DRAM; what moves none is as far right as the picture goes.
    const points = kernels.map((kernel) => ({
        name: kernel.name,
        x: kernel.dram_bytes > 0 ? kernel.operations / kernel.dram_bytes : Infinity,
        y: kernel.operations / kernel.time_ns,
        kernel,
    }));
    const ridges = machine.roofs.map((roof) => roof.gops / machine.dram_gbs);
    const finite = points.map((point) => point.x).filter((x) => isFinite(x) && x > 0).concat(ridges);
    const least = Math.min(...finite) / 4, most = Math.max(...finite) * 4;
    const total = data.profile.kernels.reduce((sum, kernel) => sum + kernel.time_ns, 0);
    const roofs = machine.roofs.map((roof) => ({
        type: "line", name: `${roof.name}: ${withPrefix(roof.gops * 1e9, "op/s")}`, showSymbol: false, silent: true,
        lineStyle: { width: 1.5 }, emphasis: { disabled: true },
        data: [[least, least * machine.dram_gbs], [roof.gops / machine.dram_gbs, roof.gops], [most, roof.gops]],
    }));
    return {
        animation: false,
        grid: { left: 70, right: 20, top: 40, bottom: 50 },
        legend: { top: 0 },
        tooltip: {
            formatter: (item) => {
                const kernel = item.data.kernel;
                return `<b>${escaped(kernel.name)}</b><br>${duration(kernel.time_ns)} in ${kernel.count}, bound by ` +
                    `${kernel.bound}<br>${withPrefix(item.value[1] * 1e9, "op/s")}, ${Number(item.value[0].toPrecision(3))} ` +
                    `operations a byte<br>${(kernel.time_ns / kernel.roofline_ns).toPrecision(3)} times the roofline's time`;
            },
        },
        xAxis: { type: "log", min: least, max: most, name: "operations a byte of DRAM", nameLocation: "middle", nameGap: 28,
                 axisLabel: { formatter: (x) => Number(x.toPrecision(2)) } },
        yAxis: { type: "log", name: "Gop/s", axisLabel: { formatter: (y) => Number(y.toPrecision(2)) } },
        series: [...roofs, {
            type: "scatter", z: 5,
            data: points.filter((point) => point.y > 0).map((point) => ({
                name: point.name, kernel: point.kernel,
                value: [Math.min(point.x, most), point.y],
                symbolSize: 7 + 34 * Math.sqrt(point.kernel.time_ns / total),
                itemStyle: { color: COLORS[point.kernel.bound], opacity: 0.75 },
            })),
        }],
    };
}

function memoryChart(data) {
    const line = (name, points, axis, unit) => ({
        name, type: "line", step: "end", showSymbol: false, data: points, xAxisIndex: axis, yAxisIndex: axis,
        areaStyle: { opacity: 0.15 }, lineStyle: { width: 1 }, tooltip: { valueFormatter: unit },
    });
    const rate = (value) => withPrefix(value * 1e9, "B/s");
    const peak = (value, name) => ({ silent: true, symbol: "none", lineStyle: { color: "#c0392b" },
                                     label: { formatter: name, position: "insideEndTop" }, data: [{ yAxis: value }] });
    const curves = data.curves, machine = data.machine;
    const dram = line("DRAM", curves.dram_gbs, 0, rate);
    dram.markLine = peak(machine.dram_gbs, `peak ${machine.dram_gbs} GB/s`);
    const scratchpad = line("scratchpad granted, all cores", curves.scratchpad_bytes, 1, bytes);
    scratchpad.markLine = peak(machine.scratchpad_bytes, bytes(machine.scratchpad_bytes));
    const time = { type: "value", min: 0, max: data.profile.total_ns };
    return {
        animation: false,
        legend: { top: 0 },
        tooltip: { trigger: "axis" },
        axisPointer: { link: [{ xAxisIndex: "all" }], label: { formatter: (item) => duration(item.value) } },
        grid: [{ left: 70, right: 20, top: 34, height: 100 }, { left: 70, right: 20, top: 160, height: 100 }],
        dataZoom: [{ type: "slider", xAxisIndex: [0, 1], labelFormatter: duration, bottom: 8 },
                   { type: "inside", xAxisIndex: [0, 1] }],
        xAxis: [{ ...time, gridIndex: 0, axisLabel: { show: false } },
                { ...time, gridIndex: 1, axisLabel: { formatter: duration } }],
        yAxis: [{ gridIndex: 0, name: "GB/s", max: (range) => Math.max(range.max, machine.dram_gbs) },
                { gridIndex: 1, axisLabel: { formatter: bytes }, interval: machine.scratchpad_bytes / 4,
                  max: (range) => Math.max(range.max, machine.scratchpad_bytes) }],
        series: [dram, line("network", curves.network_gbs, 0, rate), scratchpad],
    };
}

function energyChart(data) {
    const parts = Object.entries(data.profile.energy_nj).filter(([name, nj]) => name !== "total" && nj > 0);
    return {
        animation: false,
        tooltip: { formatter: (item) => `${escaped(item.name)}: ${energy(item.value)} (${item.percent} %)` },
        series: [{
            type: "pie", radius: ["38%", "68%"],
            label: { formatter: (item) => `${item.name} ${energy(item.value)}` },
            data: parts.map(([name, value]) => ({ name, value, itemStyle: { color: COLORS[name] || "#b4bcc8" } })),
        }],
    };
}

function unitsChart(data) {
    const units = Object.entries(data.profile.units);
    const part = (key) => units.map(([, unit]) => {
        const all = unit.busy + unit.stall + unit.idle;
        return all > 0 ? 100 * unit[key] / all : 0;
    });
    return {
        animation: false,
        grid: { left: 130, right: 30, top: 30, bottom: 30 },
        legend: { top: 0 },
        tooltip: { trigger: "axis", valueFormatter: (value) => `${value.toFixed(1)} %` },
        xAxis: { type: "value", max: 100, axisLabel: { formatter: "{value} %" } },
        yAxis: { type: "category", data: units.map(([name]) => name), inverse: true },
        series: [["busy", "#3b7dd8"], ["stall", "#e0a23b"], ["idle", "#e6eaf0"]].map(([name, color]) => ({
            name, type: "bar", stack: "all", itemStyle: { color }, data: part(name) })),
    };
}

function slowestChart(data) {
    const kernels = data.profile.kernels.slice(0, 12);
    return {
        animation: false,
        grid: { left: 240, right: 90, top: 6, bottom: 30 },
        tooltip: { formatter: (item) => `${escaped(kernels[item.dataIndex].name)}: ${duration(item.value)}` },
        xAxis: { type: "value", axisLabel: { formatter: duration } },
        yAxis: { type: "category", data: kernels.map((kernel) => shortened(kernel.name)), inverse: true },
        series: [{
            type: "bar",
            label: { show: true, position: "right", formatter: (item) => duration(item.value) },
            data: kernels.map((kernel) => ({ value: kernel.time_ns, itemStyle: { color: COLORS[kernel.bound] } })),
        }],
    };
}

const CHARTS = { timeline: timelineChart, roofline: rooflineChart, memory: memoryChart, energy: energyChart,
                 units: unitsChart, slowest: slowestChart };

// --- Tables

const KERNEL_COLUMNS = [
    ["kernel", (kernel) => kernel.name],
    ["time", (kernel) => kernel.time_ns, duration],
    ["count", (kernel) => kernel.count, String],
    ["bound by", (kernel) => kernel.bound],
    ["most of that on line", (kernel) => kernel.line ? `${kernel.line} (${kernel.line_percent} %)` : ""],
    ["launch", (kernel) => kernel.launch_ns, duration],
    ["roofline", (kernel) => kernel.roofline_ns, duration],
    ["times it", (kernel) => kernel.roofline_ns > 0 ? kernel.time_ns / kernel.roofline_ns : 0, (value) => value.toFixed(1)],
    ["operations", (kernel) => kernel.operations, (value) => withPrefix(value, "")],
    ["DRAM", (kernel) => kernel.dram_bytes, bytes],
    ["over-fetch", (kernel) => kernel.over_fetch_bytes, bytes],
    ["spill", (kernel) => kernel.spill_bytes, bytes],
    ["energy", (kernel) => kernel.energy_nj, energy],
];

// What a combination of changes gives beside the machine as it is.
function answerOf(data, chosen) {
    const now = data.what_if.replays[0], then = data.what_if.replays[chosen];
    if (then.failure) {
        return { failure: then.failure };
    }
    return { time_ns: then.time_ns, speedup: now.time_ns / then.time_ns, energy_nj: then.energy_nj,
             energy: then.energy_nj / now.energy_nj, area_mm2: then.area_mm2, area: then.area_mm2 / now.area_mm2,
             hash: then.hash };
}

function showKernels(data) {
    const parent = document.getElementById("kernels"), most = 500;
    let column = 1, descending = true;
    const show = () => {
        const value = KERNEL_COLUMNS[column][1];
        const sorted = [...data.profile.kernels].sort((a, b) => {
            const [x, y] = [value(a), value(b)];
            return (x < y ? -1 : x > y ? 1 : 0) * (descending ? -1 : 1);
        });
        parent.replaceChildren();
        const numbers = new Set(KERNEL_COLUMNS.keys());
        numbers.delete(0);
        numbers.delete(3);
        numbers.delete(4);
        const made = table(parent, KERNEL_COLUMNS.map(([name]) => name), sorted.slice(0, most).map((kernel) =>
            KERNEL_COLUMNS.map(([, of, text]) => text ? text(of(kernel)) : of(kernel))), numbers);
        if (sorted.length > most) {
            element("p", parent, `${sorted.length - most} kernels more are in profile.json.`, "quiet");
        }
        made.querySelectorAll("th").forEach((cell, i) => {
            cell.classList.add("sorts");
            cell.onclick = () => {
                descending = i === column ? !descending : true;
                column = i;
                show();
            };
        });
    };
    show();
}

function showChanges(data) {
    const parent = document.getElementById("changes"), answer = document.getElementById("answer");
    let chosen = 0;
    const show = () => {
        const found = answerOf(data, chosen);
        answer.replaceChildren();
        if (found.failure) {
            element("p", answer, found.failure, "quiet");
            return;
        }
        table(answer, ["", "modelled", "beside now"], [
            ["time", duration(found.time_ns), `${found.speedup.toFixed(2)} times as fast`],
            ["energy", energy(found.energy_nj), `${found.energy.toFixed(2)} times`],
            ["area proxy", `${found.area_mm2.toFixed(1)} mm\u00b2`, `${found.area.toFixed(2)} times`],
            ["description", found.hash.slice(0, 16), ""]], new Set([1, 2]));
    };
    data.what_if.names.forEach((change, i) => {
        const label = element("label", parent), box = element("input", label);
        box.type = "checkbox";
        box.id = `change-${change.key}`;
        label.appendChild(document.createTextNode(` ${change.meaning}`));
        box.onchange = () => {
            chosen ^= 1 << i;
            show();
        };
    });
    show();
}

function show(data) {
    const profile = data.profile, tiles = document.getElementById("tiles");
    for (const [name, text] of [
        ["modelled time", duration(profile.total_ns)], ["dispatches and copies", String(profile.records)],
        ["energy", energy(profile.energy_nj.total)],
        ["power", withPrefix(profile.total_ns > 0 ? profile.energy_nj.total / profile.total_ns : 0, "W")],
        ["DRAM", bytes(profile.dram_read_bytes + profile.dram_written_bytes)], ["spilt", bytes(profile.spill_bytes)]]) {
        const tile = element("div", tiles, "", "tile");
        element("b", tile, text);
        element("span", tile, name, "quiet");
    }
    if (data.timeline.left_out > 0) {
        document.getElementById("timeline-note").textContent =
            `${data.timeline.left_out} intervals more are left out; trace.perfetto-trace has them all.`;
    }
    for (const bound of Object.keys(COLORS).filter((name) => profile.kernels.some((kernel) => kernel.bound === name))) {
        element("span", document.getElementById("bounds"), bound, "bound").style.background = COLORS[bound];
    }
    if (profile.programs.length > 0) {
        const programs = document.getElementById("programs");
        programs.hidden = false;
        table(programs, ["program", "records", "alone", "beside the others", "times as long"], profile.programs.map((program) =>
            [program.name, String(program.records), duration(program.alone_ns), duration(program.together_ns),
             program.alone_ns > 0 ? (program.together_ns / program.alone_ns).toFixed(2) : ""]), new Set([1, 2, 3, 4]));
    }
    showChanges(data);
    showKernels(data);
    table(document.getElementById("machine"), ["key", "value", "unit"], data.machine.keys, new Set([1]));
    drawCharts(CHARTS, data);
}

if (typeof document !== "undefined") {
    show(JSON.parse(document.getElementById("data").textContent));
} else {
    module.exports = { CHARTS, answerOf };
}
