#!/usr/bin/env python3
"""The recipes of train/cluster, run as far as one machine without GPUs can: see the table there.

    tests/machines/cluster_test.py BUILD

BUILD has stoker and libstoker_mpi.so. Slurm's daemons are started for the test alone, with a configuration of its own; they need
root and Debian's packages slurm-wlm and munge. kubernetes-validate is a package of Python. What is not there is left out, with a
line that says so. Exit code: 0, 1 if something failed, 77 if nothing could be done.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "train" / "cluster"

# In place of ssh: its arguments are options, the host, the command. Each host has a folder for temporary files of its own, as machines
# have: in a common one Open MPI's daemons make and remove each other's.
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
echo "$1" >>"$AGENT_LOG"
TMPDIR=$AGENT_LOG.$1
export TMPDIR
mkdir "$TMPDIR"
shift
exec sh -c "$*"
"""

# Nodes that the cloud would start are taken to be there; nothing is started.
SLURM = """ClusterName=test
SlurmctldHost={host}
SlurmUser=root
AuthType=auth/munge
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/log
SlurmctldPidFile={folder}/pid
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
GresTypes=gpu
ResumeProgram=/bin/true
SuspendProgram=/bin/true
SuspendTime=100000
NodeName=gpu[1-4] NodeAddr=127.0.0.1 CPUs=64 Gres=gpu:8 State=CLOUD
PartitionName=gpus Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class LeftOut(Exception):
    pass


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False, **options)


def need(holds, message):
    if not holds:
        raise AssertionError(message)


def test_mpirun(build, folder):
    stoker = build / "stoker"
    if not (build / "libstoker_mpi.so").exists() or shutil.which("mpirun") is None:
        raise LeftOut("no mpirun or no libstoker_mpi.so")
    if "Open MPI" not in run("mpirun", "--version").stdout:
        raise LeftOut("mpirun is not Open MPI's")
    run(stoker, "make-shapes", "--out", folder / "shapes", "--count", 256, "--test-count", 32)
    agent, log = folder / "agent", folder / "hosts"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    train = [stoker, "train", "--data", folder / "shapes", "--model", "airnet-narrow", "--batch", 64, "--micro-batch", 16,
             "--max-steps", 3, "--epochs", 2]
    environment = {**os.environ, "AGENT_LOG": str(log), "OMP_NUM_THREADS": "1"}
    # Real machines have shared memory of their own; these two would take each other's.
    network = ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"]
    as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    spread = run("mpirun", *as_root, "-np", 4, "--host", "127.0.0.2:2,127.0.0.3:2", "--mca", "plm_rsh_agent", agent, *network, *train,
                 "--devices", "cpu", "--out", folder / "spread", env=environment)
    need(spread.returncode == 0, spread.stdout + spread.stderr)
    need(sorted(log.read_text().split()) == ["127.0.0.2", "127.0.0.3"], f"hosts that were reached: {log.read_text()}")
    alone = run(*train, "--devices", "cpu:4", "--out", folder / "alone")
    need(alone.returncode == 0, alone.stderr)
    same = run(stoker, "receipt", "diff", folder / "alone", folder / "spread")
    need(same.returncode == 0, same.stdout + same.stderr)


def test_slurm(_, folder):
    if shutil.which("slurmctld", path="/usr/sbin:/sbin") is None or shutil.which("munged", path="/usr/sbin") is None:
        raise LeftOut("no slurmctld or no munged")
    if os.getuid() != 0:
        raise LeftOut("slurmctld's configuration here is for root")
    if run("munge", "-n").returncode != 0:
        Path("/run/munge").mkdir(exist_ok=True)
        shutil.chown("/run/munge", "munge", "munge")
        run("su", "-s", "/bin/sh", "munge", "-c", "/usr/sbin/munged")
    (folder / "state").mkdir()
    configuration = folder / "slurm.conf"
    # A port of its own, so that a controller of the machine is left alone.
    configuration.write_text(SLURM.format(host=os.uname().nodename, folder=folder, port=20000 + os.getpid() % 20000))
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    daemon = subprocess.Popen(["/usr/sbin/slurmctld", "-D"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            if "UP" in run("scontrol", "ping", env=environment).stdout:
                break
            need(daemon.poll() is None, (folder / "log").read_text())
            time.sleep(0.1)
        script = RECIPES / "slurm.sbatch"
        taken = run("sbatch", "--test-only", script, "--data", "DIR", env=environment)
        need(taken.returncode == 0 and "using 128 processors on nodes gpu[1-2]" in taken.stderr, taken.stderr)
        four = run("sbatch", "--test-only", "--nodes", 4, script, env=environment)
        need(four.returncode == 0 and "gpu[1-4]" in four.stderr, four.stderr)
        refused = run("sbatch", "--test-only", "--nodes", 5, script, env=environment)
        need(refused.returncode != 0, refused.stderr)
    finally:
        daemon.terminate()
        daemon.wait(30)


def test_kubernetes(build, _):
    manifest = RECIPES / "kubernetes.yaml"
    validate = shutil.which("kubernetes-validate") or Path(sys.executable).with_name("kubernetes-validate")
    if not Path(validate).exists():
        raise LeftOut("no kubernetes-validate (pip install kubernetes-validate)")
    good = run(validate, "--strict", manifest)
    need(good.returncode == 0, good.stdout + good.stderr)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as broken:
        broken.write(manifest.read_text().replace("completionMode:", "completionmode:"))
        broken.flush()
        need(run(validate, "--strict", broken.name).returncode != 0, "a misspelt field is not refused")
    # A program without GPUs understands the environment and says what it lacks: that is how far it goes here.
    pod = {"RANK": "3", "WORLD_SIZE": "16", "MASTER_ADDR": "stoker-0.stoker", "MASTER_PORT": "29500"}
    text = manifest.read_text()
    for name, value in pod.items():
        need(name in text and (name == "RANK" or value in text), f"{name} is not in the manifest")
    with tempfile.TemporaryDirectory() as folder:
        run(build / "stoker", "make-shapes", "--out", folder, "--count", 20, "--test-count", 10)
        found = run(build / "stoker", "train", "--data", folder, "--devices", "cpu", "--out", folder + "/run",
                    env={**os.environ, **pod})
    need(found.returncode != 0 and "16" in found.stderr, found.stderr)


def main():
    build = Path(sys.argv[1]).resolve()
    done, failed = 0, False
    for test in (test_mpirun, test_slurm, test_kubernetes):
        name = test.__name__.removeprefix("test_")
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(build, Path(folder))
                done += 1
                print(f"passed: {name}")
            except LeftOut as why:
                print(f"left out: {name}: {why}")
            except AssertionError as why:
                failed = True
                print(f"FAILED: {name}: {why}")
    return 1 if failed else 0 if done else 77


if __name__ == "__main__":
    sys.exit(main())
