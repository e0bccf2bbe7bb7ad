"""Training: how long a step waits for its batch.

*Asked.* A training step takes 20 or 50 ms for a batch of 32. Which loaders keep up with it, so that no step waits, and
what do they need for that? A loader that works ahead hides its work behind the step; one that does not adds it.

*Held fixed.* The loaders are those of ``batching``, with its photographs (at most 640) and its output. After each batch
the consumer does as much work as keeps one core busy for a ``step``, without Python's lock, as TensorFlow's operations
do. So on two cores one is left to the loader; if it takes more, the step takes longer.

*Not measured.* A step on an accelerator, which leaves all cores to the loader; the copy to it. What it takes to hand
NumPy arrays over to TensorFlow, where a strategy yields these (see ``batching``). The memory of buffers that a slower
step fills (see ``batching``).

*Invisible when* a step takes much longer than loading its batch on one core: no loader that works ahead makes it wait.

Waits are those of all steady epochs, without the first of each epoch, which is in the epoch's time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loaders._registry import Case, Question, also
from loaders.questions import batching
from loaders.questions.batching import (
    datasets,
    generator,
    grain,
    keras,
    mapped,
    memory,
    pool,
    ray,
    spdl,
    tf1,
    tfdata,
    torch,
    turboloader,
    webdataset,
)

if TYPE_CHECKING:
    from loaders._corpus import Corpus

STEPS = {"20ms": 0.02, "50ms": 0.05}
"""Seconds."""


def _prepare(corpus: Corpus, case: Case, seed: int) -> batching.Files:  # noqa: ARG001 - the step is the consumer's
    return batching.QUESTION.prepare(corpus, {"data": "x16", "augment": "off"}, seed)


QUESTION = Question(
    prepare=_prepare,
    check=batching.QUESTION.check,
    when="train, in steps that keep one core busy for 20 ms, on a folder of photographs, without augmenting them",
    axes={"step": tuple(STEPS)},
    laws_from="batching",
    training_step=lambda case: STEPS[case["step"]],
    ranked_by="steady_time",
    epochs=2,
    quick_epochs=2,
    fresh=True,  # what a trial retains varies by MiB: hundreds of rounds would show forks to differ by less than one
)

QUICK = (memory.load_all, mapped.memory_map, pool.path_generator_pool, pool.pool_from_generator_mmap_threshold)
"""What published results advise, and what was advised before."""

also("training", generator.path_generator, baseline=True, quick=True)
for build in (
    generator.path_generator_from_generator,
    pool.path_generator_pool,
    pool.pool_from_generator,
    pool.pool_from_generator_mmap_threshold,
    pool.pool_simplejpeg,
    pool.pool_reduced,
    memory.load_all,
    mapped.memory_map,
    mapped.memory_map_uint8,
    tf1.tf1_queue,
    tfdata.tfdata_paths_autotune,
    tfdata.tfdata_numpy_function,
    tfdata.tfdata_reduced,
    keras.keras_pydataset_2,
    keras.keras_image_dataset,
    torch.torch_dataloader_0,
    torch.torch_dataloader_2,
    torch.torch_dataloader_2_persistent,
    grain.grain_threads,
    grain.grain_threads_few,
    grain.grain_processes,
    spdl.spdl_threads,
    datasets.hf_datasets,
    webdataset.webdataset,
    webdataset.webdataset_workers,
    turboloader.turboloader,
    ray.ray_data,
):
    also("training", build, quick=build in QUICK)
