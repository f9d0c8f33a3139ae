"""A step that feeds PyTorch and JAX with stoker's Python package."""
import glob
import os

from runner import Failed, NotRun, json_of, last_words, run
from steps_machine import need_gpu
from steps_train import folder_of

HERE = os.path.dirname(os.path.abspath(__file__))


def python(check, timeout):
    """The Python package on the GPU: its tensors are the host's, and images/s of a PyTorch training that it feeds, beside
    torchvision's DataLoader."""
    need_gpu(check)
    end, pictures = check.clock() + timeout, folder_of(check, "pictures")
    environment = {**os.environ, "PYTHONPATH": package_folder(check, timeout / 2), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [check.options.python, os.path.join(HERE, "torch_loader.py"), "--data", pictures]
    code, output, _ = run(words, end - check.clock(), check.log, environment)
    # If a part failed, the program ends with 1 after it has printed all figures, which name the part.
    found = json_of("torch_loader.py", 0 if "\n{" in "\n" + output else code, output)
    if "not_run" in found:
        raise NotRun(found["not_run"])
    return found


def package_folder(check, timeout):
    """Returns the folder to import stoker from: that of wheels, installed, or of a build."""
    wheels = sorted(glob.glob(os.path.join(check.options.wheels or "", "*.whl"))) if check.options.wheels else []
    if not wheels:
        built = os.path.join(check.layout.root, "python")
        if glob.glob(os.path.join(built, "stoker", "_core*")):
            return built
        raise NotRun("no Python package: --wheels DIR takes the wheels that tools/wheel --cuda makes")
    folder = os.path.join(check.work, "site")
    words = [check.options.python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", "--upgrade", "--target", folder]
    code, output, _ = run([*words, *wheels], timeout, check.log)
    if code != 0:
        raise Failed(f"pip ended with {code}: {last_words(output)}")
    return folder
