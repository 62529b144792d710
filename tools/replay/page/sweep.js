// The page of a sweep. common.js comes before it.

const isNumber = (value) => typeof value === "number";

// Points of rows against time; the third quantity is the colour.
function scatterChart(data, y, yName, yText, color, colorName, colorText) {
    const value = (row) => ({ value: [row.time_ns, row[y], row[color]], row });
    const values = data.rows.map((row) => row[color]);
    const tooltip = (item) => data.axes.map((axis, i) => `${escaped(axis)} = ${escaped(item.data.row.values[i])}`).concat(
        [`time ${duration(item.data.row.time_ns)}`, `${yName} ${yText(item.data.row[y])}`,
         `${colorName} ${colorText(item.data.row[color])}`]).join("<br>");
    const series = (name, rows, style) => ({ name, type: "scatter", data: rows.map(value), ...style });
    return {
        animation: false,
        grid: { left: 80, right: 130, top: 30, bottom: 50 },
        tooltip: { formatter: tooltip },
        visualMap: { min: Math.min(...values), max: Math.max(...values), dimension: 2, right: 0, top: "center", text: [colorName, ""],
                     formatter: colorText, inRange: { color: ["#3b7dd8", "#2aa198", "#e0a23b", "#c0392b"] } },
        xAxis: { type: "value", name: "time", nameLocation: "middle", nameGap: 28, scale: true,
                 axisLabel: { formatter: duration } },
        yAxis: { type: "value", name: yName, scale: true, axisLabel: { formatter: yText } },
        series: [series("others", data.rows.filter((row) => !row.is_best), { symbolSize: 6, itemStyle: { opacity: 0.6 } }),
                 series("front", data.rows.filter((row) => row.is_best),
                        { symbolSize: 11, z: 5, itemStyle: { borderColor: "#1c2430", borderWidth: 1.5 } })],
    };
}

const areaText = (mm2) => `${Number(mm2.toPrecision(4))} mm\u00b2`;

const energyChart = (data) => scatterChart(data, "energy_nj", "energy", energy, "area_mm2", "area proxy", areaText);
const areaChart = (data) => scatterChart(data, "area_mm2", "area proxy", areaText, "energy_nj", "energy", energy);

function valuesChart(data) {
    const columns = data.axes.map((name, i) => ({ name, of: (row) => row.values[i] })).concat([
        { name: "time", of: (row) => row.time_ns, text: duration }, { name: "energy", of: (row) => row.energy_nj, text: energy },
        { name: "area proxy", of: (row) => row.area_mm2, text: areaText }]);
    const axis = (column, dim) => {
        const values = data.rows.map(column.of);
        if (values.every(isNumber)) {
            return { dim, name: column.name, scale: true, axisLabel: { formatter: column.text || String } };
        }
        return { dim, name: column.name, type: "category", data: [...new Set(values)] };
    };
    const lines = (rows, color, opacity) => ({
        type: "parallel", lineStyle: { color, opacity, width: 1 }, data: rows.map((row) => columns.map((column) => column.of(row))) });
    return {
        animation: false,
        parallel: { left: 60, right: 80, top: 40, bottom: 30, parallelAxisDefault: { nameTextStyle: { fontSize: 11 } } },
        parallelAxis: columns.map(axis),
        series: [lines(data.rows.filter((row) => !row.is_best), "#8a94a3", 0.25),
                 lines(data.rows.filter((row) => row.is_best), "#c0392b", 0.9)],
    };
}

const CHARTS = { energy: energyChart, area: areaChart, values: valuesChart };

function show(data) {
    if (data.left_out > 0) {
        document.getElementById("sampled").textContent =
            `${data.left_out} descriptions that others beat are not drawn; the table of the sweep has them all.`;
    }
    const best = data.rows.filter((row) => row.is_best).sort((a, b) => a.time_ns - b.time_ns);
    const header = [...data.axes, "time", "energy", "area proxy", "description"];
    table(document.getElementById("front"), header, best.map((row) => [...row.values.map(String), duration(row.time_ns),
        energy(row.energy_nj), areaText(row.area_mm2), row.hash.slice(0, 16)]), new Set(header.keys()));
    drawCharts(CHARTS, data);
}

if (typeof document !== "undefined") {
    show(JSON.parse(document.getElementById("data").textContent));
} else {
    module.exports = { CHARTS };
}
