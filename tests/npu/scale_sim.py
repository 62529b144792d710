"""SCALE-Sim's cycles for products, by running its package.

Version 3.0.0 calls int() on arrays of one element, which NumPy 2.4 refuses; its own max() would give the element.
"""

import builtins
import contextlib
import io
import pathlib
import tempfile

import numpy as np
import scalesim.memory.double_buffered_scratchpad_mem as memory
from scalesim.scale_sim import scalesim

memory.max = lambda *values: np.max(values[0]) if len(values) == 1 else builtins.max(*values)

DATAFLOWS = {"weight-stationary": "ws", "output-stationary": "os", "input-stationary": "is"}

CONFIG = """[general]
run_name = run
[architecture_presets]
ArrayHeight: {rows}
ArrayWidth: {columns}
IfmapSramSzkB: 1024
FilterSramSzkB: 1024
OfmapSramSzkB: 1024
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Dataflow: {dataflow}
ReadRequestBuffer: 32
WriteRequestBuffer: 32
[layout]
IfmapCustomLayout: False
IfmapSRAMBankBandwidth: 10
IfmapSRAMBankNum: 10
IfmapSRAMBankPort: 2
FilterCustomLayout: False
FilterSRAMBankBandwidth: 10
FilterSRAMBankNum: 10
FilterSRAMBankPort: 2
[sparsity]
SparsitySupport: false
SparseRep: ellpack_block
OptimizedMapping: false
BlockSize: 8
RandomNumberGeneratorSeed: 40
[run_presets]
InterfaceBandwidth: CALC
UseRamulatorTrace: False
"""


def cycles(rows, columns, dataflow, products):
    """The cycles of each product (m, n, k) on an array, without stalls of its memory."""
    with tempfile.TemporaryDirectory(prefix="fornax_scale_sim_") as folder:
        folder = pathlib.Path(folder)
        config, topology = folder / "array.cfg", folder / "products.csv"
        config.write_text(CONFIG.format(rows=rows, columns=columns, dataflow=DATAFLOWS[dataflow]), encoding="ascii")
        lines = ["Layer, M, N, K,"] + [f"product{i}, {m}, {n}, {k}," for i, (m, n, k) in enumerate(products)]
        topology.write_text("\n".join(lines) + "\n", encoding="ascii")
        with contextlib.redirect_stdout(io.StringIO()):
            # It wants a layout, and reads none where no layout is asked for.
            simulation = scalesim(save_disk_space=True, verbose=False, config=str(config), topology=str(topology),
                                  layout=str(topology), input_type_gemm=True)
            simulation.run_scale(top_path=str(folder))
        # The report's first item counts what is loaded before as well, the third stalls.
        reports = [layer.get_compute_report_items() for layer in simulation.runner.single_layer_sim_object_list]
        assert all(report[2] == 0 for report in reports), reports
        return [int(report[1]) for report in reports]
