// Draws the charts of a page without a browser, and prints what is in them as JSON.
// Usage: node draw_page.js FOLDER SCRIPT echarts.js PAGE.html, where FOLDER has common.js and SCRIPT
"use strict";

const fs = require("fs");
const path = require("path");

const [folder, script, library, html] = process.argv.slice(2);
const source = ["common.js", script].map((name) => fs.readFileSync(path.join(folder, name), "utf8")).join("");
const page = { exports: {} };
new Function("module", source)(page);
const { CHARTS, answerOf } = page.exports;
const echarts = require(path.resolve(library));

const text = fs.readFileSync(html, "utf8");
const begin = '<script id="data" type="application/json">';
const from = text.indexOf(begin) + begin.length;
const data = JSON.parse(text.slice(from, text.indexOf("</script>", from)));

const found = { charts: {}, answers: {} };
for (const [name, option] of Object.entries(CHARTS)) {
    const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: 1100, height: 340 });
    chart.setOption(option(data));
    const svg = chart.renderToSVGString();
    chart.dispose();
    if (svg.includes("NaN")) {
        throw new Error(`${name} has shapes without a place`);
    }
    found.charts[name] = {
        shapes: (svg.match(/<path /g) || []).length,
        texts: [...svg.matchAll(/<text [^>]*>([^<]*)</g)].map((match) => match[1]),
    };
}
(data.what_if ? data.what_if.names : []).forEach((change, i) => { found.answers[change.key] = answerOf(data, 1 << i); });
console.log(JSON.stringify(found));
