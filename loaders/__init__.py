"""Which way of loading data into TensorFlow is fastest, leanest and safe from running out of memory?

The rooms
---------
Each module or package of ``loaders.questions`` is one *question*. Its docstring explains the question, and its
functions are the strategies that answer it. Anyone may add one: see ``CONTRIBUTING.md``.

=================  =================================================================
``batching``       loading everything into memory, or a batch at a time
``caching``        where to put ``cache()``
``calibration``    what the instruments read where the truth is known
``decode``         from a JPEG file to pixels
``known_issues``   what bug reports say of loaders, and whether it is so here
``python_map``     how ``map`` runs a Python body, and what piles up behind it
``read_order``     walking the records of a sharded, labelled data set
``record_format``  what to put into a TFRecord
``resize``         scaling one photograph
``selection``      drawing samples without replacement from an in-memory array
``service``        tf.data service, for who outgrows one machine
``training``       how long a step waits for its batch
=================  =================================================================

A room with an underscore is machinery:

================  ==================================================================
``_registry``     how questions and strategies are declared and found
``_contract``     what every strategy must deliver, and the check of its output
``_corpus``       the photographs, and the records made from them, on disk
``_trial``        the instrument: one strategy, run once, in a process of its own
``_compare``      comparison runs: rounds of trials by need, resumable
``_rows``         trial records to the rows of a comparison
``_stats``        estimates and ratios with their intervals
``_judge``        the one judge: samples to a ratio, its interval and a word
``_law``          how a strategy's memory grows with the amount of data
``_resolution``   what each instrument reads against known values
``_claims``       the write-ups' claims, each with the rule that decides it
``_check``        whether a change made a strategy slower or fatter
``_advise``       which strategy a reader should take
``_probe``        the instruments on a pipeline of somebody's own
``_folder``       advice on somebody's own folder of images, with a loader for it
``_scale``        how far tf.data service scales, from what a few workers cost
``_faults``       what arrived while processes of tf.data service failed
``_evidence``     how often the judge and the check are wrong
``_report``       the comparison page, the README's figures, asv's plugin
``_submit``       what is handed in of somebody's own results
``_cli``          the command line, one module for each command
``_terminal``     progress bars and tables in a terminal
``_malloc``       what TensorFlow does to malloc, and how it is set back
``_words``        figures in words, with units and uncertainty
``_figures``      the declaration of a figure: unit, heading, scale, meaning
``_units``        the range of valid values for figures and names
``_errors``       the exceptions that end a run with a message
``_interrupt``    Ctrl-C and SIGTERM: both end a command, and neither is lost
``_durable``      files that are written completely or not at all
``_garbage``      Python's garbage collector, and when it rests
================  ==================================================================

Importing this package imports neither TensorFlow nor OpenCV nor NumPy.
"""

from loaders._registry import Batch, Job, Question, Skip, variant

__all__ = ["Batch", "Job", "Question", "Skip", "variant"]
