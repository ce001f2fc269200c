"""apache-tvm's MetaSchedule, for ``benchmarks tuning --beside metaschedule``.

Run by the Python of an environment of its own (apache-tvm 0.27, xgboost, psutil, cloudpickle),
which needs nothing of Slipway.  Reads a request from each line of standard input, and answers with
a line of JSON: {"search": layers, "seconds": N, "population": N}, {"load": layer, "arrays": npz}
and {"run": layer, "number": N}.

A layer is tuned as its own pipeline for static shapes does, weights packed ahead included.  Its
search has no end in seconds: here a task is over when its time is, so that what was measured is
joined and in the database, which killing the process would lose.
"""

import functools
import importlib
import inspect
import json
import os
import sys
import time
from pathlib import Path

os.environ["TVM_NUM_THREADS"] = "1"

import numpy as np
import tvm
from tvm import relax, topi
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.relax_integration import (
    extract_tasks,
    extracted_tasks_to_tune_contexts,
)
from tvm.s_tir.meta_schedule.search_strategy import EvolutionarySearch, PySearchStrategy

BATCH = 8  # trials of a task before the next has its turn
MOST = 1_000_000  # trials: the seconds end first


def convolve(data, weight, stride, groups, out):
    pad = tuple(int(k) // 2 for k in weight.shape[2:])
    if groups == 1:
        return topi.nn.conv2d_nchw(data, weight, stride, pad, 1, out)
    if int(weight.shape[1]) == 1 and groups == int(data.shape[1]):
        return topi.nn.depthwise_conv2d_nchw(data, weight, stride, pad, 1, out)
    return topi.nn.group_conv2d_nchw(data, weight, stride, pad, 1, groups, out)


def module_of(layer):
    """Return a layer as a module of relax; its weight is a parameter, that may be packed ahead."""
    kind, data_shape, weight_shape, stride, groups, dtype = layer
    out = "int32" if dtype == "int8" else dtype
    builder = relax.BlockBuilder()
    data = relax.Var("data", relax.TensorType(data_shape, dtype))
    weight = relax.Var("weight", relax.TensorType(weight_shape, dtype))
    inputs = 2 if kind == "batch_matmul" else 1
    with builder.function("main", [data, weight], attrs={"num_input": inputs}):
        with builder.dataflow():
            if kind == "conv":
                result = builder.emit_te(convolve, data, weight, stride, groups, out)
            elif kind == "dense":
                result = builder.emit_te(topi.nn.dense, data, weight, None, out)
            else:
                result = builder.emit_te(topi.nn.batch_matmul, data, weight, out_dtype=out)
            result = builder.emit_output(result)
        builder.emit_func_output(result)
    return tvm.transform.Sequential(
        [
            relax.transform.DecomposeOpsForInference(),
            relax.transform.CanonicalizeBindings(),
            relax.get_pipeline("zero"),
            relax.transform.AttachAttrLayoutFreeBuffers(),
        ]
    )(builder.get())


def compiled(module, target, params):
    """Compile a candidate as its own builder does, which imports all tensor intrinsics for each."""
    from tvm.driver import build
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    return build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target)


@derived_object
class UntilThen(PySearchStrategy):
    """Its evolutionary search, for which nothing is left to try from some time on."""

    def __init__(self, population, end):
        self.population, self.end = population, end
        self.search = EvolutionarySearch(
            population_size=population, init_min_unmeasured=min(50, population // 2)
        )

    def _initialize_with_tune_context(self, context):
        self.search._initialize_with_tune_context(context)

    def pre_tuning(self, *arguments):
        self.search.pre_tuning(*arguments)

    def post_tuning(self):
        self.search.post_tuning()

    def generate_measure_candidates(self):
        if time.monotonic() > self.end:
            return None
        return self.search.generate_measure_candidates()

    def notify_runner_results(self, candidates, results):
        self.search.notify_runner_results(candidates, results)

    def clone(self):
        return UntilThen(self.population, self.end)


class Peer:
    """What was found, and the layers that were compiled with it."""

    def __init__(self, folder):
        self.folder, self.layers, self.tasks, self.loaded = folder, {}, {}, {}
        host = tvm.target.codegen
        self.target = tvm.target.Target(
            {"kind": "llvm", "mcpu": host.llvm_get_system_cpu(), "num-cores": 1}
        )
        self.database = None

    def search(self, layers, seconds, population):
        self.layers = {name: module_of(layer) for name, layer in layers.items()}
        tasks = []
        for name, module in self.layers.items():
            found = extract_tasks(module, self.target)
            self.tasks[name] = [task.dispatched[0] for task in found]
            for task in found:
                tasks.append(
                    ms.ExtractedTask(name, task.mod, task.target, task.dispatched, task.weight)
                )
        start = time.monotonic()
        strategy = UntilThen(population, start + seconds)
        contexts, weights = extracted_tasks_to_tune_contexts(
            tasks, self.folder, strategy=strategy, num_threads=os.cpu_count()
        )
        self.database = ms.tune.tune_tasks(
            tasks=contexts, task_weights=weights, work_dir=self.folder,
            max_trials_global=MOST, num_trials_per_iter=BATCH,
            builder=ms.builder.LocalBuilder(f_build=compiled),
        )  # fmt: skip
        records = Path(self.folder, "database_tuning_record.json").read_text().splitlines()
        return {"trials": len(records), "seconds": time.monotonic() - start}

    def load(self, name, path):
        """Compile a layer, run it once, and keep its output beside its arguments."""
        module, arrays = self.layers[name], np.load(path)
        found = [
            self.database.query_tuning_record(task, self.target, name) is not None
            for task in self.tasks[name]
        ]
        with self.target, self.database:
            module = tvm.transform.Sequential(
                [
                    relax.transform.MetaScheduleApplyDatabase(),
                    relax.transform.SplitLayoutRewritePreproc(),
                    relax.transform.LiftTransformParams(),
                    relax.transform.FoldConstant(),
                ]
            )(module)
            machine = relax.VirtualMachine(tvm.compile(module, self.target), tvm.cpu())
        arguments = [tvm.runtime.tensor(arrays[n]) for n in ("data", "weight")]
        if int(module["main"].attrs["num_input"]) == 1:
            arguments += list(machine["main_transform_params"]([arguments.pop()]))
        self.loaded[name] = machine, arguments
        np.savez(path, output=machine["main"](*arguments).numpy())
        return {"has_record": all(found)}

    def run(self, name, number):
        machine, arguments = self.loaded[name]
        timer = machine.time_evaluator("main", tvm.cpu(), number=number)
        return {"seconds": timer(*arguments).mean}


def load_intrinsics():
    """Load what the first search would: in 9 s, not 20 with the source of each frame."""
    inspect.stack = functools.partial(inspect.stack, 0)
    importlib.import_module("tvm.s_tir.tensor_intrin")


def main():
    # The libraries write to standard output: answers have a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    load_intrinsics()
    peer = Peer(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "search" in request:
                reply = peer.search(request["search"], request["seconds"], request["population"])
            elif "load" in request:
                reply = peer.load(request["load"], request["arrays"])
            else:
                reply = peer.run(request["run"], request["number"])
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    main()
