"""Runs airbench94, from the user's clone, on CIFAR-10's binary files. Answers each line on stdin
with one line of JSON.

"run SEED" trains once. The answer has the seconds of airbench94's own clock (training and the
evaluation with 6 views, without loading), those of training alone, the wall time of the call, and
the accuracies. Before it is ready it trains once untimed, as its author does.
"""
import argparse
import contextlib
import glob
import hashlib
import os
import sys
import time

from prepare_data import CLASSES
from torch_answers import import_torch, say

PIXELS = 3 * 32 * 32


def write_tensors(torch, binaries, out):
    """Converts CIFAR-10's binary files to the train.pt and test.pt of airbench94: (N, 32, 32, 3) u8
    and labels."""
    os.makedirs(out, exist_ok=True)
    for split, pattern in (("train", "data_batch_*.bin"), ("test", "test_batch.bin")):
        data = bytearray()
        for path in sorted(glob.glob(os.path.join(binaries, pattern))):
            with open(path, "rb") as file:
                data += file.read()
        rows = torch.frombuffer(data, dtype=torch.uint8).reshape(-1, 1 + PIXELS)
        images = rows[:, 1:].reshape(-1, 3, 32, 32).permute(0, 2, 3, 1).contiguous()
        torch.save({"images": images, "labels": rows[:, 0].long(), "classes": CLASSES}, os.path.join(out, split + ".pt"))


def load_airbench(path, capture):
    """Loads the published module; what it prints per epoch is also added to `capture`."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    import airbench94
    show = airbench94.print_training_details

    def print_training_details(variables, is_final_entry):
        capture.append({k: variables.get(k) for k in ("epoch", "val_acc", "tta_val_acc", "total_time_seconds")})
        show(variables, is_final_entry)

    airbench94.print_training_details = print_training_details
    return airbench94


def train(torch, airbench94, capture, run, seed):
    capture.clear()
    torch.manual_seed(seed)
    torch.cuda.synchronize()
    start = time.monotonic()
    with contextlib.redirect_stdout(sys.stderr):
        airbench94.main(run)
    torch.cuda.synchronize()
    seconds = time.monotonic() - start
    return {"seed": seed, "top1": capture[-2]["val_acc"], "top1_6_views": capture[-1]["tta_val_acc"],
            "train_seconds": capture[-2]["total_time_seconds"], "own_clock_seconds": capture[-1]["total_time_seconds"],
            "wall_seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", required=True, help="airbench94.py")
    parser.add_argument("--data", required=True, help="folder of CIFAR-10's binary files")
    parser.add_argument("--work", required=True, help="folder for its tensors, made if needed")
    args = parser.parse_args()
    torch, _ = import_torch("cpu")  # a GPU is asked for below
    if not glob.glob(os.path.join(args.data, "data_batch_*.bin")):
        return say(not_run=f"{args.data} is not CIFAR-10 in its binary layout")
    write_tensors(torch, args.data, os.path.join(args.work, "cifar10"))
    if not torch.cuda.is_available():
        return say(not_run="airbench94 needs a CUDA device and PyTorch sees none")
    script = os.path.abspath(args.script)
    with open(script, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    os.chdir(args.work)
    capture = []
    airbench94 = load_airbench(script, capture)
    warmup = train(torch, airbench94, capture, "warmup", 0)
    say(ready=True, torch=torch.__version__, warmup_seconds=warmup["wall_seconds"], script_sha256=digest)
    for line in sys.stdin:
        say(**train(torch, airbench94, capture, 0, int(line.split()[1])))


if __name__ == "__main__":
    main()
