#!/usr/bin/env python3
"""Checks that other software reads our models and computes what both engines compute.

    exported_models_test.py PROGRAM                  small forms of all models, by ONNX Runtime
    exported_models_test.py PROGRAM --full MODEL...  at full size, the CPU engine alone; also by
                                                     torchvision, which loads the safetensors file
                                                     by name

Each reader is used where it is installed. Exit code 77: none of them is. PROGRAM is
exported_models.
"""
import argparse
import importlib.util
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

TOLERANCE = 1e-4  # of the largest logit


def read_case(folder):
    import numpy as np

    case = json.loads((folder / "case.json").read_text())
    shape = (case["rows"], case["height"], case["width"], 3)
    pixels = np.fromfile(folder / "images.bin", np.uint8).reshape(shape).astype(np.float32) / 255
    images = (pixels - np.float32(case["mean"])) / np.float32(case["stddev"])
    case["images"] = np.ascontiguousarray(images.transpose(0, 3, 1, 2)[:, : case["channels"]])
    case["logits"] = {
        file.stem: np.fromfile(file, np.float32).reshape(case["rows"], case["outputs"])
        for file in (folder / "cpu.bin", folder / "device.bin")
        if file.exists()
    }
    return case


def difference(case, name, logits):
    """Returns the largest difference from any engine, relative to the largest logit."""
    import numpy as np

    largest = max(float(np.abs(logits).max()), 1e-30)
    each = {e: float(np.abs(own - logits).max()) / largest for e, own in case["logits"].items()}
    print(f"{name:32}" + "".join(f"  {engine} {value:.1e}" for engine, value in each.items()))
    return max(each.values())


def has(module):
    return importlib.util.find_spec(module) is not None


def by_onnx(folder, case):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    assert json.loads(session.get_modelmeta().custom_metadata_map["mean"]) == case["mean"]
    return session.run(["logits"], {"input": case["images"]})[0]


def read_safetensors(path):
    import torch

    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        begin, end = entry["data_offsets"]
        values = bytearray(data[8 + length + begin : 8 + length + end])
        tensors[name] = torch.frombuffer(values, dtype=torch.float32).reshape(entry["shape"])
    return tensors


def by_torchvision(folder, case):
    """Returns the logits, or None if torchvision does not have the model."""
    import torch
    import torchvision

    name = folder.name
    if not hasattr(torchvision.models, name):
        return None
    options = {"num_classes": case["outputs"]}
    if name in ("googlenet", "inception_v3"):
        options.update(aux_logits=True, init_weights=False)
    model = getattr(torchvision.models, name)(**options)
    state = read_safetensors(folder / "model.safetensors")
    for key in model.state_dict():
        if key.endswith("num_batches_tracked"):
            state[key] = torch.tensor(0)
    model.load_state_dict(state)  # strict: every name and every shape
    with torch.no_grad():
        return model.eval()(torch.from_numpy(case["images"])).numpy()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--full", nargs="+", default=[], metavar="MODEL")
    arguments = parser.parse_args()
    readers = {}
    if has("onnxruntime"):
        readers["ONNX Runtime"] = by_onnx
    if arguments.full and has("torchvision"):
        readers["torchvision"] = by_torchvision
    if not has("numpy") or not readers:
        print("neither ONNX Runtime nor what else could read the models is installed")
        return 77
    wrong = []
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([arguments.program, out, *arguments.full], check=True)
        folders = sorted(pathlib.Path(out).iterdir())
        assert folders
        for folder in folders:
            case = read_case(folder)
            for reader, read in readers.items():
                logits = read(folder, case)
                if logits is None:
                    continue
                name = f"{folder.name}, {reader}"
                if not difference(case, name, logits) <= TOLERANCE:
                    wrong.append(name)
    for name in wrong:
        print(f"differs by more than {TOLERANCE}: {name}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
