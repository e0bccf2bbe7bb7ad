"""The instruments of a trial on anybody's own pipeline.

In the trial's process:

=============  ==================================================================================
``target``     a file or module, and a function in it: found, imported, called
``adapt``      what the function returns, as batches that can be counted
``delivered``  what each epoch delivered: shapes, samples, order
``stages``     what tf.data knows of a pipeline: what it rewrote, and its slowest stage
``pages``      how much memory an epoch takes anew where a generator is called through TensorFlow
``question``   the question that this makes of it, for ``loaders._trial``
=============  ==================================================================================

In the command's process, from the records:

=============  ==================================================================================
``asked``      what is run, and the trials of it
``found``      verdicts: bottleneck, growth, epochs; pure
``gates``      limits that are kept, broken, or cannot be decided; pure
``words``      all that in sentences, for the terminal, a pull request and the page
``pair``       two pipelines against each other
=============  ==================================================================================
"""
