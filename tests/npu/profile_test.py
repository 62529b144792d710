"""Cost records as people see them: `fornax run --records`, `fornax profile` and `fornax sweep`.

FORNAX_COMMAND is the command. Charts are drawn by Node.js (FORNAX_NODE) with ECharts (FORNAX_CHARTS), and by Chromium
where there is one; the trace is read with the definitions of the package perfetto, and queried with its trace processor
where FORNAX_TRACE_PROCESSOR names one (the package downloads it otherwise); tables with pyarrow. What is not installed is
skipped.
"""

import csv
import importlib.util
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "models" / "digits.onnx"

SPACE = """base = "edge-4"
[cores]
clusters = [1, 2]
[dram]
bandwidth_gbs = [8.5, 17, 34]
"""


def has(package):
    return importlib.util.find_spec(package) is not None


def node():
    found = os.environ.get("FORNAX_NODE", "")
    return found if os.access(found, os.X_OK) else shutil.which("node")


def chromium():
    return os.environ.get("FORNAX_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def fornax(*arguments, **environment):
    command = [os.environ["FORNAX_COMMAND"], *map(str, arguments)]
    clean = {key: value for key, value in os.environ.items() if key != "FORNAX_NPU"}
    return subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True, timeout=280)


class ProfileCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="fornax_profile_")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.records = cls.folder / "digits.jsonl"
        ran = fornax("run", DIGITS, "--dim", "N=16", "--no-cache", "--records", cls.records)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "cost records of one run" in ran.stdout, ran.stdout
        cls.out = cls.folder / "out"
        cls.profiled = fornax("profile", cls.records, "--npu", "edge-4", "-o", cls.out)
        assert cls.profiled.returncode == 0, cls.profiled.stderr
        cls.profile = json.loads((cls.out / "profile.json").read_text())

    def fails(self, code, pattern, *arguments, **environment):
        ran = fornax(*arguments, **environment)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        self.assertRegex(ran.stderr, pattern)
        self.assertTrue(ran.stderr.rstrip().endswith("."), ran.stderr)
        self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)


class Profile(ProfileCase):
    def test_tables(self):
        stamp = self.profile["stamp"]
        self.assertRegex(stamp, r"^modelled, uncalibrated \(edge-4, description [0-9a-f]{16}, model \d+\)$")
        self.assertTrue(self.profiled.stdout.startswith(stamp))
        self.assertIn("times it", self.profiled.stdout)
        text = (self.out / "profile.txt").read_text()
        for kernel in self.profile["kernels"]:
            self.assertIn(kernel["name"], text)
            self.assertGreaterEqual(kernel["time_ns"], kernel["roofline_ns"])
        lines = self.records.read_text().splitlines()
        self.assertEqual(json.loads(lines[0])["records"], len(lines) - 2)
        self.assertEqual(sum(kernel["count"] for kernel in self.profile["kernels"]), len(lines) - 2)
        again = fornax("profile", self.records, "--json", FORNAX_NPU="edge-4")
        self.assertEqual(json.loads(again.stdout), self.profile)

    def test_command(self):
        script = (f"import os, shutil; shutil.copy({str(self.records)!r}, "
                  "os.environ['FORNAX_NPU_RECORDS'].replace('%p', str(os.getpid()))); "
                  "assert 'fornax_icd' in os.environ['VK_DRIVER_FILES']; os.chdir('/'); raise SystemExit({})")
        out = self.folder / "command"
        out.mkdir()
        (out / "records.1.jsonl").write_text("of another run")
        ran = fornax("profile", "--npu", "edge-4", "-o", out, "--", sys.executable, "-c", script.format(0))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(json.loads((out / "profile.json").read_text()), self.profile)
        [records] = out.glob("records.*.jsonl")
        self.assertEqual(records.read_bytes(), self.records.read_bytes())
        for name in ("trace.perfetto-trace", "profile.html"):
            self.assertEqual((out / name).read_bytes(), (self.out / name).read_bytes(), name)
        # The command's status is the profile's, which is there all the same.
        ran = fornax("profile", "--npu", "edge-4", "--", sys.executable, "-c", script.format(7))
        self.assertEqual(ran.returncode, 7)
        self.assertIn("ended with 7", ran.stderr)
        self.assertIn("times it", ran.stdout)
        self.fails(1, "left no cost records", "profile", "--npu", "edge-4", "-o", out, "--", "true")
        self.assertFalse(list(out.glob("records*")))

    def test_a_program_through_the_driver(self):
        """The driver writes the records of a program that knows nothing of it."""
        out = self.folder / "driver"
        ran = fornax("profile", "--npu", "edge-4", "-o", out, "--", os.environ["FORNAX_COMMAND"], "run", DIGITS,
                     "--dim", "N=16", "--no-cache")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        profile = json.loads((out / "profile.json").read_text())
        [records] = out.glob("records.*.jsonl")
        lines = [json.loads(line) for line in records.read_text().splitlines()[1:-1]]
        self.assertTrue(any("dispatch" in line for line in lines), lines)
        self.assertEqual(sum(kernel["count"] for kernel in profile["kernels"]), len(lines))
        for kernel in profile["kernels"]:
            self.assertGreaterEqual(kernel["time_ns"], kernel["roofline_ns"])

    def test_programs_at_once(self):
        other = self.folder / "other.jsonl"
        other.write_bytes(self.records.read_bytes())
        ran = fornax("profile", self.records, other, "--npu", "edge-4", "--json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        found = json.loads(ran.stdout)
        self.assertEqual([program["name"] for program in found["programs"]], ["digits", "other"])
        for program in found["programs"]:
            self.assertEqual(program["alone_ns"], self.profile["total_ns"])
            self.assertGreaterEqual(program["together_ns"], program["alone_ns"])
        self.assertEqual(max(program["together_ns"] for program in found["programs"]), found["total_ns"])
        # They contend, and yet are done before one after the other.
        self.assertGreater(found["total_ns"], self.profile["total_ns"])
        self.assertLess(found["total_ns"], 2 * self.profile["total_ns"])
        names = {kernel["name"] for kernel in self.profile["kernels"]}
        self.assertEqual({kernel["name"] for kernel in found["kernels"]},
                         {f"{program}: {name}" for program in ("digits", "other") for name in names})
        # The processes of a command are such programs.
        script = f"for i in 1 2; do cp {self.records} $(echo $FORNAX_NPU_RECORDS | sed s/%p/$i/); done"
        ran = fornax("profile", "--npu", "edge-4", "--", "sh", "-c", script)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("us beside the others", ran.stdout)
        self.assertIn("records.2", ran.stdout)

    def test_bad_input(self):
        self.fails(2, "either files of cost records or a command", "profile", "--npu", "edge-4")
        self.fails(2, "No machine is named", "profile", self.records)
        self.fails(1, "none is no preset", "profile", self.records, "--npu", "none")
        self.fails(1, "none.jsonl", "profile", self.folder / "none.jsonl", "--npu", "edge-4")
        damaged = self.folder / "damaged.jsonl"
        text = self.records.read_text()
        damaged.write_text(text.replace('"bytes":', '"bytes":1', 1))
        self.fails(1, "damaged.jsonl, line [0-9]+: the checksum is not that", "profile", damaged, "--npu", "edge-4")
        damaged.write_text(text[:len(text) // 2])
        self.fails(1, "damaged.jsonl", "profile", damaged, "--npu", "edge-4", "-o", self.folder / "unmade")
        self.assertFalse((self.folder / "unmade" / "profile.html").exists())
        self.fails(1, "No space left", "run", DIGITS, "--no-cache", "--records", "/dev/full")


class Trace(ProfileCase):
    """Slices, counters and flows as tables, by the public definitions of the format."""

    def setUp(self):
        if not has("perfetto"):
            self.skipTest("the package perfetto is not installed")
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
        self.proto = perfetto_trace_pb2

    def tables(self):
        file = self.proto.Trace()
        file.ParseFromString((self.out / "trace.perfetto-trace").read_bytes())
        trace = self.proto.Trace()
        for packet in file.packet:
            self.assertTrue(packet.HasField("compressed_packets"))
            trace.MergeFromString(zlib.decompress(packet.compressed_packets))
        size = trace.ByteSize()
        trace.DiscardUnknownFields()
        self.assertEqual(trace.ByteSize(), size, "a field that the format does not have")
        database = sqlite3.connect(":memory:")
        database.executescript("create table slice (id, track, name, ts, dur, args);"
                               "create table counter (track, ts, value); create table flow (id, slice)")
        event_types = self.proto.TrackEvent
        names, arguments, strings, tracks, open_slices, number = {}, {}, {}, {}, {}, 0
        for packet in trace.packet:
            for entry in packet.interned_data.event_names:
                names[entry.iid] = entry.name
            for entry in packet.interned_data.debug_annotation_names:
                arguments[entry.iid] = entry.name
            for entry in packet.interned_data.debug_annotation_string_values:
                strings[entry.iid] = entry.str.decode()
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                tracks[track.uuid] = track.name or track.process.process_name
                continue
            event = packet.track_event
            track = tracks[event.track_uuid]
            if event.type == event_types.TYPE_SLICE_BEGIN:
                number += 1
                values = {}
                for argument in event.debug_annotations:
                    kind = argument.WhichOneof("value")
                    value = getattr(argument, kind)
                    values[arguments[argument.name_iid]] = strings[value] if kind == "string_value_iid" else value
                open_slices[event.track_uuid] = (number, track, names[event.name_iid], packet.timestamp, values)
                database.executemany("insert into flow values (?, ?)", [(flow, number) for flow in event.flow_ids])
            elif event.type == event_types.TYPE_SLICE_END:
                found, track, name, begin, values = open_slices.pop(event.track_uuid)
                database.execute("insert into slice values (?, ?, ?, ?, ?, ?)",
                                 (found, track, name, begin, packet.timestamp - begin, json.dumps(values)))
            else:
                self.assertEqual(event.type, event_types.TYPE_COUNTER)
                database.execute("insert into counter values (?, ?, ?)",
                                 (track, packet.timestamp, event.double_counter_value))
        self.assertFalse(open_slices)
        return database, tracks

    def test_queries(self):
        database, tracks = self.tables()
        self.assertIn(self.profile["stamp"], tracks.values())

        def one(query, *values):
            return database.execute(query, values).fetchone()[0]

        dram = self.profile["dram_read_bytes"] + self.profile["dram_written_bytes"]
        total = "select sum(json_extract(args, ?)) from slice where track = ? or track like ?"
        self.assertEqual(one(total, "$.bytes", "DRAM", "DRAM (%"), dram)
        self.assertEqual(one(total, "$.bytes", "network", "network (%"), self.profile["network_bytes"])
        self.assertEqual(one(total, "$.dram_bytes", "DMA", "DMA (%"), dram)
        self.assertEqual(one(total, "$.dram_bytes", "kernels", "kernels (%"), dram)
        self.assertEqual(one("select count(*) from slice where track like 'kernels%'"), self.profile["records"])
        # The counter's integral, but for times that are whole nanoseconds.
        moved = one("select sum(value * width) from (select value, lead(ts) over (order by ts) - ts as width "
                    "from counter where track = 'DRAM bandwidth')")
        self.assertAlmostEqual(moved / dram, 1, delta=0.02)
        # From the submission over the packets to the kernel and its DMA.
        paths = database.execute(
            "select group_concat(track) from (select flow.id as id, slice.track as track from flow join slice "
            "on flow.slice = slice.id order by flow.id, slice.ts, slice.id) group by id").fetchall()
        self.assertEqual(len(paths), self.profile["records"])
        for (path,) in paths:
            self.assertRegex(path, r"^queue 0: driver,command processor,command processor,kernels[^,]*(,DMA[^,]*)+$")
        self.assertEqual(one("select max(ts + dur) from slice") <= self.profile["total_ns"], True)

    def test_trace_processor(self):
        shell = os.environ.get("FORNAX_TRACE_PROCESSOR")
        if not shell:
            self.skipTest("FORNAX_TRACE_PROCESSOR names no trace processor")
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
        with TraceProcessor(trace=str(self.out / "trace.perfetto-trace"),
                            config=TraceProcessorConfig(bin_path=shell)) as processor:
            rows = list(processor.query(
                "select sum(extract_arg(arg_set_id, 'debug.bytes')) as bytes from slice join track on slice.track_id = "
                "track.id where track.name glob 'DRAM*'"))
            self.assertEqual(rows[0].bytes, self.profile["dram_read_bytes"] + self.profile["dram_written_bytes"])
            self.assertGreater(len(list(processor.query("select * from flow"))), 0)
            problems = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
            self.assertEqual([(row.name, row.value) for row in processor.query(problems)], [])
            kernels = list(processor.query("select count(*) as n from slice join track on slice.track_id = track.id "
                                           "where track.name glob 'kernels*'"))
            self.assertEqual(kernels[0].n, self.profile["records"])


def drawn(case, script, html):
    """What Node.js draws of a page."""
    charts = os.environ.get("FORNAX_CHARTS", "")
    if not node() or not pathlib.Path(charts).exists():
        case.skipTest("there is no Node.js, or no ECharts")
    found = subprocess.run([node(), ROOT / "tests/npu/draw_page.js", ROOT / "tools/replay/page", script, charts, html],
                           capture_output=True, text=True, timeout=120)
    case.assertEqual(found.returncode, 0, found.stderr)
    return json.loads(found.stdout)


def shown(case, html, charts, picture):
    """The document that Chromium makes of a page, of which it also makes a picture."""
    if not chromium():
        case.skipTest("there is no Chromium")
    if "Apache Software Foundation" not in html.read_text():
        case.skipTest("the command was built without ECharts")
    common = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1240,2600",
              "--virtual-time-budget=5000", f"--user-data-dir={case.folder / 'browser'}"]
    document = subprocess.run([*common, "--dump-dom", html.as_uri()], capture_output=True, text=True, timeout=120)
    case.assertEqual(document.returncode, 0, document.stderr)
    case.assertEqual(document.stdout.count("<canvas"), charts)
    path = case.folder / picture
    subprocess.run([*common, f"--screenshot={path}", html.as_uri()], capture_output=True, timeout=120, check=True)
    case.assertGreater(path.stat().st_size, 50_000)
    if os.environ.get("FORNAX_KEEP_PICTURES"):
        shutil.copy(path, os.environ["FORNAX_KEEP_PICTURES"])
    return document.stdout


class Page(ProfileCase):
    def test_structure(self):
        page = (self.out / "profile.html").read_text()
        self.assertIn(self.profile["stamp"], page)
        ids = set(re.findall(r'id="([a-z-]+)"', page))
        self.assertLessEqual({"tiles", "changes", "timeline", "roofline", "memory", "energy", "units", "slowest", "kernels",
                              "machine", "data"}, ids)
        data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])
        self.assertEqual(data["profile"], self.profile)
        replays = data["what_if"]["replays"]
        self.assertEqual(len(replays), 2 ** len(data["what_if"]["names"]))
        # Each is what a replay of that description says.
        mine = self.folder / "mine.toml"
        mine.write_text('base = "edge-4"\ndram.bandwidth_gbs = 17\nnetwork.bandwidth_gbs = 32\ncores.clusters = 2\n')
        found = json.loads(fornax("profile", self.records, "--npu", mine, "--json").stdout)
        self.assertEqual(replays[3]["hash"], found["description_hash"])
        self.assertEqual(replays[3]["time_ns"], found["total_ns"])

    def test_charts(self):
        found = drawn(self, "page.js", self.out / "profile.html")
        self.assertEqual(set(found["charts"]), {"timeline", "roofline", "memory", "energy", "units", "slowest"})
        for name, chart in found["charts"].items():
            self.assertGreater(chart["shapes"], 5, name)
        slowest = found["charts"]["slowest"]["texts"]
        self.assertIn(self.profile["kernels"][0]["name"][:30], " ".join(slowest))
        self.assertIn("DRAM", found["charts"]["timeline"]["texts"])
        self.assertGreaterEqual(found["answers"]["bandwidth"]["speedup"], 1)

    def test_browser(self):
        document = shown(self, self.out / "profile.html", 6, "page.png")
        self.assertEqual(len(re.findall(r"<tr>", document.split('id="kernels"')[1].split("</section>")[0])),
                         len(self.profile["kernels"]) + 1)


class Sweep(ProfileCase):
    def setUp(self):
        self.space = self.folder / "space.toml"
        self.space.write_text(SPACE)

    def test_csv(self):
        table = self.folder / "table.csv"
        ran = fornax("sweep", self.space, self.records, "-o", table, "--threads", 2)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout, r"modelled, uncalibrated \(sweep of 6 descriptions of edge-4, model \d+\)")
        self.assertIn("no other description beats", ran.stdout)
        with table.open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["cores.clusters"], row["dram.bandwidth_gbs"]) for row in rows],
                         [(c, b) for c in "12" for b in ("8.5", "17", "34")])
        self.assertEqual(rows[0]["description_hash"], self.profile["description_hash"])
        self.assertEqual(float(rows[0]["modelled_time_ns"]), self.profile["total_ns"])
        self.assertEqual(float(rows[0]["modelled_energy_nj"]), self.profile["energy_nj"]["total"])
        self.assertIn("1", {row["pareto"] for row in rows})
        # Two programs have a column each.
        ran = fornax("sweep", self.space, self.records, self.records, "-o", table)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with table.open(newline="") as file:
            row = next(csv.DictReader(file))
        self.assertEqual(row["modelled_time_ns:digits"], row["modelled_time_ns:digits_2"])

    def test_page(self):
        page, table = self.folder / "sweep.html", self.folder / "of_page.csv"
        ran = fornax("sweep", self.space, self.records, "-o", table, "--page", page)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with table.open(newline="") as file:
            best = sum(row["pareto"] == "1" for row in csv.DictReader(file))
        found = drawn(self, "sweep.js", page)
        self.assertEqual(set(found["charts"]), {"energy", "area", "values"})
        self.assertIn("dram.bandwidth_gbs", found["charts"]["values"]["texts"])
        document = shown(self, page, 3, "sweep.png")
        self.assertIn("modelled, uncalibrated (sweep of 6 descriptions of edge-4", document)
        self.assertEqual(len(re.findall(r"<tr>", document.split('id="front"')[1].split("</section>")[0])), best + 1)

    def test_parquet(self):
        if not has("pyarrow"):
            self.skipTest("the package pyarrow is not installed")
        import pyarrow.parquet
        outputs = [self.folder / "table.parquet", self.folder / "same.csv"]
        for path in outputs:
            ran = fornax("sweep", self.space, self.records, "-o", path)
            self.assertEqual(ran.returncode, 0, ran.stderr)
        table = pyarrow.parquet.read_table(outputs[0])
        self.assertRegex(table.schema.metadata[b"stamp"].decode(), "^modelled, uncalibrated")
        with outputs[1].open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(table.column_names, list(rows[0]))
        for name in table.column_names:
            kind = type(table[name][0].as_py())
            self.assertEqual(table[name].to_pylist(), [kind(row[name]) for row in rows], name)

    def test_bad_input(self):
        def space(text):
            self.space.write_text(text)
            return self.space

        self.fails(1, "varies no key", "sweep", space('base = "edge-4"\n'), self.records)
        self.fails(1, "line 2: dram.bandwidth_gbs is a list of 0 values; it must have from 1 to 1000000",
                   "sweep", space('base = "edge-4"\ndram.bandwidth_gbs = []\n'), self.records)
        self.fails(1, "line 2: dram.speed is no key", "sweep", space('base = "edge-4"\ndram.speed = [1]\n'), self.records)
        self.fails(1, "line 2: cores.clock_ghz is 0; it must be from 0.001 to 100 GHz", "sweep",
                   space('base = "edge-4"\ncores.clock_ghz = [0]\n'), self.records)
        odd = space('base = "edge-4"\nscratchpad.bytes = [524288, 1000000]\n')
        table = self.folder / "none.csv"
        self.fails(1, "with scratchpad.bytes = 1000000, scratchpad.bytes is 1000000; it must be a multiple of", "sweep", odd,
                   self.records, "-o", table)
        self.assertFalse(table.exists())
        ran = fornax("sweep", odd, self.records, "--skip-contradictions")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("1 of them without a time", ran.stdout)
        self.space.write_text(SPACE)
        self.fails(1, "is no file of cost records", "sweep", self.space, self.space)
        ran = fornax("sweep", self.space, self.records, "-o", "table.txt")
        self.assertEqual(ran.returncode, 2)
        full = self.folder / "full.csv"
        full.symlink_to("/dev/full")
        self.fails(1, "No space left", "sweep", self.space, self.records, "-o", full)


if __name__ == "__main__":
    unittest.main()
