"""What the peers share that are programs around PyTorch: they answer with lines of JSON, which runner.Conversation reads."""
import json
import sys


def say(**values):
    print(json.dumps(values), flush=True)


def import_torch(device):
    """Returns torch and torchvision. Where one is missing, or torch sees no such device, the program says so and ends."""
    try:
        import torch
        import torchvision
    except ImportError as error:
        say(not_run=f"this Python has no PyTorch with torchvision: {error}")
        sys.exit(0)
    if device != "cpu" and not torch.cuda.is_available():
        say(not_run="PyTorch sees no CUDA device")
        sys.exit(0)
    return torch, torchvision
