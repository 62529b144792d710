// What the pages of profiles and sweeps share: numbers as text, tables, and the drawing of charts.
"use strict";

function withPrefix(value, unit, prefixes = ["", "k", "M", "G", "T", "P"]) {
    let scale = 0;
    while (Math.abs(value) >= 1000 && scale + 1 < prefixes.length) {
        value /= 1000;
        ++scale;
    }
    return `${Number(value.toPrecision(4))} ${prefixes[scale]}${unit}`;
}

const duration = (ns) => ns === 0 ? "0" : withPrefix(ns, "s", ["n", "\u00b5", "m", ""]);
const energy = (nj) => withPrefix(nj, "J", ["n", "\u00b5", "m", ""]);

function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let scale = 0;
    while (value >= 1024 && scale + 1 < units.length) {
        value /= 1024;
        ++scale;
    }
    return `${Number(value.toPrecision(4))} ${units[scale]}`;
}

// Text out of files goes into tooltips, which are HTML.
function escaped(text) {
    return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

function shortened(text, most = 34) {
    return text.length <= most ? text : `${text.slice(0, most - 1)}\u2026`;
}

function element(name, parent, text, className) {
    const made = document.createElement(name);
    made.textContent = text === undefined ? "" : text;
    if (className) {
        made.className = className;
    }
    parent.appendChild(made);
    return made;
}

function table(parent, header, rows, numbers) {
    const made = element("table", parent);
    const head = element("tr", element("thead", made)), body = element("tbody", made);
    header.forEach((name, i) => element("th", head, name, numbers.has(i) ? "n" : ""));
    for (const row of rows) {
        const line = element("tr", body);
        row.forEach((cell, i) => element("td", line, cell, numbers.has(i) ? "n" : ""));
    }
    return made;
}

// Every chart is an option of ECharts, made by a function of the data, in the element of its name.
function drawCharts(charts, data) {
    if (typeof echarts === "undefined") {
        document.getElementById("no-charts").hidden = false;
        document.querySelectorAll(".chart").forEach((chart) => { chart.hidden = true; });
        return;
    }
    const drawn = Object.entries(charts).map(([id, option]) => {
        const chart = echarts.init(document.getElementById(id), null, { renderer: "canvas" });
        chart.setOption(option(data));
        return chart;
    });
    window.onresize = () => drawn.forEach((chart) => chart.resize());
}

